//! One job as lists and the history show it, alive or finished.

use ephor_core::State;
use ephor_core::records::JobEntry;
use ephor_model::{
    Allocation, Amounts, Dependency, Exit, JobId, JobState, Owner, Payload, ReasonCode, Request, Span, Timestamp,
    Usage, limits,
};
use serde::{Deserialize, Serialize};

/// Place of an element in its array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayPlace {
    /// Id of the array: that of its first element.
    pub array: JobId,
    /// Index of the element, as the user wrote it.
    pub index: u32,
}

/// Everything that is said of a job: names in full, so that it outlives the objects they belong to.
///
/// Version 1 of the history. The fields up to `started` are read alone when the history is searched: they come first
/// and in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryJob {
    /// The job.
    pub id: JobId,
    /// Its place in an array, where it is an element.
    pub array: Option<ArrayPlace>,
    /// State; final in the history.
    pub state: JobState,
    /// Attempts so far.
    pub attempts: u32,
    /// Name.
    pub name: String,
    /// Who it runs as.
    pub owner: Owner,
    /// Account, by name.
    pub account: String,
    /// Queue, by name.
    pub queue: String,
    /// When it was acknowledged.
    pub submitted: Timestamp,
    /// End of its last attempt, or of its wait.
    pub ended: Option<Timestamp>,
    /// Start of its last attempt.
    pub started: Option<Timestamp>,
    /// When it could first have run.
    pub eligible: Option<Timestamp>,
    /// Not before this time.
    pub begin: Option<Timestamp>,
    /// Longest run.
    pub time_limit: Option<Span>,
    /// Why it ended so, or what went wrong in the last attempt.
    pub reason: ReasonCode,
    /// Text to the reason.
    pub detail: Option<String>,
    /// How its last attempt ended.
    pub exit: Exit,
    /// Nodes of its last attempt, by name.
    pub nodes: Vec<String>,
    /// GPUs of its last attempt by node, such as `n1:0-1,3`.
    pub devices: Vec<String>,
    /// What its last attempt held, over all nodes.
    pub allocated: Amounts,
    /// What it asked for.
    pub request: Request,
    /// What its ended attempts used.
    pub usage: Usage,
    /// Charge of its ended attempts, in accounting units; `None`: nothing was charged yet.
    pub charge: Option<i64>,
    /// Quality of service by name.
    pub qos: Option<String>,
    /// Its nice value.
    pub nice: i64,
    /// Whether it may run again by itself; `None`: the site's default.
    pub requeue: Option<bool>,
    /// Folder it ran in.
    pub work_dir: String,
    /// Pattern of its output file; `None`: the default.
    pub stdout: Option<String>,
    /// Pattern of its error file; `None`: where the output goes.
    pub stderr: Option<String>,
    /// What it ran, as a shell would read it; cut at [`limits::TEXT_BYTES`].
    pub command: String,
    /// Free text.
    pub comment: Option<String>,
    /// Conditions on other jobs, as submitted.
    pub dependencies: Vec<Dependency>,
    /// Whether one of them was enough.
    pub dependency_any: bool,
    /// When it had to have ended.
    pub deadline: Option<Timestamp>,
}

impl HistoryJob {
    /// The record of a job of the live state as it is now; `None`: there is no such job.
    pub fn from_element(state: &State, id: JobId) -> Option<Self> {
        let (entry, ordinal) = state.find(id)?;
        Self::from_entry(state, entry, ordinal as u32)
    }

    /// The same where the entry is at hand already.
    pub fn from_entry(state: &State, entry: &JobEntry, ordinal: u32) -> Option<Self> {
        let (job, spec) = (&entry.job, &entry.job.spec);
        let element = entry.elements.get(ordinal as usize)?;
        let id = JobId(job.id.0 + u64::from(ordinal));
        let waits = element.state == JobState::Pending;
        // A requeued job that waits shows nothing of the attempt before.
        let allocation = match state.attempts.get(&id) {
            Some(attempt) => Some(attempt.allocation.clone()),
            None if waits => None,
            None => element.last.clone(),
        };
        let array =
            spec.array.as_ref().map(|a| ArrayPlace { array: job.id, index: a.index(ordinal).unwrap_or(ordinal) });
        Some(Self {
            id,
            array,
            state: element.state,
            attempts: element.attempts,
            name: spec.name.clone(),
            owner: spec.owner.clone(),
            account: state.accounts.get(&job.account).map_or_else(|| spec.account.clone(), |a| a.name.clone()),
            queue: state.queues.get(&job.queue).map_or_else(|| spec.queue.clone(), |q| q.name.clone()),
            submitted: job.submitted,
            ended: element.ended.filter(|_| !waits),
            started: element.started.filter(|_| !waits),
            eligible: element.eligible,
            begin: spec.begin,
            time_limit: spec.time_limit,
            reason: element.reason,
            detail: element.detail.as_deref().map(str::to_owned),
            exit: element.exit,
            nodes: allocation.iter().flat_map(|a| &a.parts).map(|p| state.node_name(p.node)).collect(),
            devices: allocation.iter().flat_map(|a| devices(state, a)).collect(),
            allocated: allocation.map(|a| a.total()).unwrap_or_default(),
            request: Request::clone(&spec.request),
            usage: element.usage.as_deref().cloned().unwrap_or_default(),
            charge: element.charge,
            qos: spec.qos.clone(),
            nice: spec.nice,
            requeue: spec.requeue,
            work_dir: spec.work_dir.clone(),
            stdout: spec.stdout.clone(),
            stderr: spec.stderr.clone(),
            command: command_text(&spec.payload),
            comment: spec.comment.clone(),
            dependencies: spec.dependencies.clone(),
            dependency_any: spec.dependency_any,
            deadline: spec.deadline,
        })
    }

    /// How people write its id: `12`, or `12_3` for an element.
    pub fn display_id(&self) -> String {
        match self.array {
            None => self.id.to_string(),
            Some(place) => format!("{}_{}", place.array, place.index),
        }
    }
}

fn devices(state: &State, allocation: &Allocation) -> Vec<String> {
    let held = allocation.parts.iter().filter(|p| !p.devices.is_empty());
    held.map(|p| format!("{}:{}", state.node_name(p.node), runs(&p.devices))).collect()
}

/// Ascending numbers as runs: `0-2,5`.
fn runs(numbers: &[u32]) -> String {
    let mut out = Vec::new();
    for run in numbers.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
        match run {
            [one] => out.push(one.to_string()),
            [first, .., last] => out.push(format!("{first}-{last}")),
            [] => {}
        }
    }
    out.join(",")
}

/// A command as a shell would read it; a script shows as `(script)` with its arguments.
pub fn command_text(payload: &Payload) -> String {
    let (mut text, words) = match payload {
        Payload::Script { args } => ("(script)".to_owned(), args),
        Payload::Argv(argv) => (String::new(), argv),
    };
    for word in words {
        if !text.is_empty() {
            text.push(' ');
        }
        let plain = |c: char| c.is_alphanumeric() || "%+,-./:=@_".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            text.push_str(word);
        } else {
            text.push('\'');
            text.push_str(&word.replace('\'', "'\\''"));
            text.push('\'');
        }
        if text.len() > limits::TEXT_BYTES {
            let cut = text.floor_char_boundary(limits::TEXT_BYTES);
            text.truncate(cut);
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_read_as_a_shell_would_read_them() {
        let argv = |words: &[&str]| Payload::Argv(words.iter().map(|w| (*w).to_owned()).collect());
        assert_eq!(command_text(&argv(&["/bin/echo", "it's", "", "a b"])), r"/bin/echo 'it'\''s' '' 'a b'");
        assert_eq!(command_text(&Payload::Script { args: vec!["x\n".into()] }), "(script) 'x\n'");
        let long = command_text(&argv(&["ü".repeat(10_000).as_str()]));
        assert!(long.len() <= limits::TEXT_BYTES && long.len() > limits::TEXT_BYTES - 4);
    }

    #[test]
    fn devices_read_as_runs() {
        assert_eq!(runs(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(runs(&[]), "");
    }
}
