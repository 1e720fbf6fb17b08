//! Jobs as clients see them: rows of the live state and of the history.

use ephor_core::records::JobEntry;
use ephor_core::reservations::why_not_inside;
use ephor_core::scheduler::Notes;
use ephor_core::{Element, Job, State};
use ephor_model::{ArraySpec, DependencyKind, Hold, JobId, JobState, ReasonCode, ResourceId, Span, Timestamp};
use ephor_proto::convert::{dependencies_to_wire, request_to_wire, words_to_wire};
use ephor_proto::limits::licences_to_wire;
use ephor_proto::v1;
use ephor_store::HistoryJob;

/// What rows of the live state are made from.
pub(super) struct Source<'a> {
    pub state: &'a State,
    pub notes: &'a Notes,
    pub now: Timestamp,
}

impl Source<'_> {
    /// The row of one element; `None`: there is none with that ordinal.
    pub fn element(&self, entry: &JobEntry, ordinal: u32) -> Option<v1::Job> {
        let element = entry.elements.get(ordinal as usize)?;
        let id = JobId(entry.job.id.0 + u64::from(ordinal));
        let mut row = row(HistoryJob::from_entry(self.state, entry, ordinal)?);
        let (reason, detail) = self.reason(&entry.job, id, element);
        row.reason = reason.name().into();
        row.reason_detail = detail;
        row.licences = licences_to_wire(&entry.job.spec.licences);
        row.reservation = entry.job.spec.reservation.clone();
        row.words = words_to_wire(&entry.job.spec.words);
        row.stdin = entry.job.spec.stdin.clone();
        row.dependency_any = entry.job.spec.dependency_any;
        let end = self.state.attempts.get(&id).map(|attempt| attempt.expected_end);
        row.expected_end = end.filter(|t| *t != Timestamp::NEVER).map(|t| t.0);
        row.promised_start = self.state.promises.get(&id).map(|promise| promise.start.0);
        Some(row)
    }

    /// One row for all elements of an array that nothing has touched, with their indices.
    pub fn rest(&self, entry: &JobEntry, ordinals: &[u32]) -> Option<v1::Job> {
        let mut row = self.element(entry, *ordinals.first()?)?;
        let indices = indices(entry.job.spec.array.as_ref()?, ordinals);
        row.display_id = format!("{}_[{indices}]", entry.job.id);
        row.array_index = None;
        row.promised_start = None;
        row.array_pending = Some(indices);
        Some(row)
    }

    /// Why an element waits, or ended as it did.
    fn reason(&self, job: &Job, id: JobId, element: &Element) -> (ReasonCode, String) {
        let own = || (element.reason, element.detail.as_deref().unwrap_or_default().to_owned());
        if element.state != JobState::Pending {
            return match self.state.attempts.get(&id).is_some_and(|a| a.lost) {
                true => (ReasonCode::NodeSilent, "its node is silent: what became of it is not known".into()),
                false => own(),
            };
        }
        match element.hold {
            Hold::User => return (ReasonCode::JobHeldUser, String::new()),
            Hold::Admin => return (ReasonCode::JobHeldAdmin, String::new()),
            Hold::None => {}
        }
        if job.never || element.never {
            return (ReasonCode::DependencyNeverSatisfied, String::new());
        }
        if job.keeps_waiting(element) {
            return (ReasonCode::Dependency, open_dependencies(self.state, job));
        }
        if element.eligible.is_some_and(|at| at > self.now) {
            return (ReasonCode::BeginTime, String::new());
        }
        if self.state.queues.get(&job.queue).is_none_or(|q| !q.state.starts()) {
            return (ReasonCode::PartitionDown, format!("queue '{}' starts no jobs now", job.spec.queue));
        }
        if let Some(text) = not_yet_inside(self.state, job, self.now) {
            return (ReasonCode::Reservation, text);
        }
        match self.notes.get(&id) {
            Some(note) => (note.code, note.text.to_string()),
            None if self.state.promises.contains_key(&id) => (ReasonCode::Resources, String::new()),
            // The cycle did not come to it: jobs before it fill or block the cluster.
            None if !self.notes.is_empty() => (ReasonCode::Priority, String::new()),
            None => own(),
        }
    }
}

/// Why a job cannot run in the reservation that it asks for, whatever is free there.
pub(super) fn not_yet_inside(state: &State, job: &Job, now: Timestamp) -> Option<String> {
    let name = job.spec.reservation.as_deref()?;
    why_not_inside(state, job, name, now, job.spec.time_limit.unwrap_or(Span(i64::MAX)))
}

/// A record as a row.
pub(super) fn row(record: HistoryJob) -> v1::Job {
    let total = if record.allocated.is_empty() { record.request.total() } else { record.allocated.clone() };
    let default_output = if record.array.is_some() { "ephor-%A_%a.out" } else { "ephor-%j.out" };
    v1::Job {
        display_id: record.display_id(),
        id: record.id.0,
        array_id: record.array.map(|place| place.array.0),
        array_index: record.array.map(|place| place.index),
        array_pending: None,
        name: record.name,
        user: record.owner.name,
        uid: record.owner.uid.0,
        account: record.account,
        queue: record.queue,
        state: record.state.name().into(),
        reason: record.reason.name().into(),
        reason_detail: record.detail.unwrap_or_default(),
        submitted: record.submitted.0,
        eligible: record.eligible.map(|t| t.0),
        started: record.started.map(|t| t.0),
        ended: record.ended.map(|t| t.0),
        expected_end: None,
        time_limit: record.time_limit.map(|t| t.0),
        attempts: record.attempts,
        exit_code: record.exit.code,
        exit_signal: record.exit.signal,
        nodes: record.nodes,
        request: Some(request_to_wire(&record.request)),
        cpus: total.get(ResourceId::CPU),
        priority: 0,
        nice: record.nice,
        work_dir: record.work_dir,
        stdout: record.stdout.unwrap_or_else(|| default_output.to_owned()),
        stderr: record.stderr.unwrap_or_default(),
        command: record.command,
        dependencies: dependencies_to_wire(&record.dependencies),
        begin: record.begin.map(|t| t.0),
        cpu_ms: record.usage.cpu_ms,
        peak_mem_mib: record.usage.peak_mem_mib,
        devices: record.devices,
        comment: record.comment,
        charge: record.charge,
        requeue: record.requeue.unwrap_or(false),
        qos: record.qos,
        licences: Vec::new(),
        words: Vec::new(),
        stdin: None,
        dependency_any: false,
        reservation: None,
        deadline: record.deadline.map(|t| t.0),
        promised_start: None,
    }
}

/// The dependencies that are open, in words.
pub(super) fn open_dependencies(state: &State, job: &Job) -> String {
    let open = job.waiting.iter().take(10).map(|d| {
        if d.kind == DependencyKind::Singleton {
            return format!("jobs named '{}' that were submitted before", job.spec.name);
        }
        let what = state.element(d.job).map_or("gone", |(_, e)| e.state.name());
        format!("{} of job {} ({what})", d.kind.name(), state.display_id(d.job))
    });
    let joined = open.collect::<Vec<_>>().join(if job.spec.dependency_any { " or " } else { ", " });
    match job.waiting.len().saturating_sub(10) {
        0 => joined,
        more => format!("{joined} and {more} more"),
    }
}

/// Indices of ordinals as runs, with the array's throttle: `5-9,12%2`.
fn indices(array: &ArraySpec, ordinals: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for index in ordinals.iter().filter_map(|o| array.index(*o)) {
        match runs.last_mut() {
            Some(run) if run.1.checked_add(1) == Some(index) => run.1 = index,
            _ => runs.push((index, index)),
        }
    }
    let texts = runs.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") });
    let joined = texts.collect::<Vec<_>>().join(",");
    array.throttle.map_or_else(|| joined.clone(), |n| format!("{joined}%{n}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_written_as_runs() {
        let array = ArraySpec::parse("0-30:10,31,40%2").unwrap();
        assert_eq!(indices(&array, &[0, 1, 2, 3, 4, 5]), "0,10,20,30-31,40%2");
    }
}
