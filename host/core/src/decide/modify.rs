//! Changes jobs that were submitted, after admission has seen the change.

use super::{Tx, bounds, dependencies, submit};
use crate::command::{Actor, Refusal, RefusalKind, Reply};
use crate::event::Event;
use crate::promise::LiftCause;
use crate::records::{Job, JobEntry};
use ephor_model::{Field, JobId, JobSpec, Span, limits};
use std::sync::Arc;

/// A job as somebody saw it, and as it is to be.
#[derive(Clone, Debug)]
pub struct Change {
    /// As it was when the change was decided upon.
    pub was: Arc<JobSpec>,
    /// As it is to be.
    pub spec: Arc<JobSpec>,
}

pub(super) fn modify(
    tx: &mut Tx<'_>,
    first: JobId,
    change: Change,
    known_ends: &dependencies::KnownEnds,
    by: &Actor,
) -> Result<Reply, Refusal> {
    let Change { was, mut spec } = change;
    let conflict = |text: String| Refusal::new(RefusalKind::Conflict, text);
    let Some(entry) = tx.state.jobs.get(&first).cloned() else {
        return Err(match tx.state.find(first) {
            Some(_) => Refusal::new(
                RefusalKind::Invalid,
                "the elements of an array share what they ask for: change the whole array",
            ),
            None => Refusal::new(RefusalKind::NotFound, format!("there is no job {first} in the queue")),
        });
    };
    if *entry.job.spec != *was {
        return Err(conflict("the job was changed by somebody else at the same time; look at it and try again".into()));
    }
    let Some(fields) = Field::differing(&was, &spec) else {
        return Err(Refusal::new(RefusalKind::Invalid, "the change is about something that cannot change"));
    };
    if fields.is_empty() {
        return Ok(Reply::Done);
    }
    if entry.unfinished == 0 {
        return Err(conflict("the job has ended".into()));
    }
    may_change(tx, &entry, &fields, &spec, by)?;
    let (queue, account) = submit::check(tx, &spec, Some(&entry.job))?;
    let (waiting, never) = match fields.contains(&Field::Dependencies) {
        true => {
            if spec.dependencies.iter().any(|d| d.job >= first) {
                let text = "a job waits only for jobs that were submitted before it";
                return Err(Refusal::new(RefusalKind::Invalid, text));
            }
            dependencies::open(tx, &spec, known_ends)?
        }
        false => (entry.job.waiting.clone(), entry.job.never),
    };
    let qos = submit::qos(tx, &mut spec, queue, account)?;
    if let Some(name) = &spec.reservation {
        bounds::check_reservation(tx, &spec, account, name)?;
    }
    tx.state.derived.alike.share(&mut spec);
    let now = Job { spec: spec.clone(), queue, account, qos, ..(*entry.job).clone() };
    bounds::room_for(tx, &now, entry.unfinished, Some(&entry.job))?;
    lift_promises(tx, &entry, &fields, &spec);
    tx.emit(Event::Modified { job: first, spec, queue, account, qos, waiting, never });
    tx.settle_elements(first);
    tx.settle(first);
    Ok(Reply::Done)
}

/// Whether these fields of the job may change as things are.
fn may_change(tx: &Tx<'_>, entry: &JobEntry, fields: &[Field], spec: &JobSpec, by: &Actor) -> Result<(), Refusal> {
    let conflict = |text: String| Err(Refusal::new(RefusalKind::Conflict, text));
    let started = entry.elements.iter().any(|e| e.attempts > 0);
    if started && let Some(field) = fields.iter().find(|f| !f.after_start()) {
        let what = if spec.array.is_some() { "an element of the array" } else { "the job" };
        return conflict(format!("{what} has started, so that its {} can no longer change", field.name()));
    }
    if !fields.contains(&Field::TimeLimit) && !fields.contains(&Field::Deadline) {
        return Ok(());
    }
    let longest = Span(limits::TIME_LIMIT_MS);
    let limit = |spec: &JobSpec| spec.time_limit.unwrap_or(longest);
    for ordinal in 0..entry.elements.len() as u64 {
        let Some(attempt) = tx.state.attempts.get(&JobId(entry.job.id.0 + ordinal)) else { continue };
        if limit(spec) > limit(&entry.job.spec) && !by.operator {
            return conflict("the job runs: only an operator may raise its time limit; its owner may lower it".into());
        }
        if spec.deadline.is_some_and(|deadline| attempt.started + limit(spec) > deadline) {
            return conflict("the job runs, and with this time limit it could end after its deadline".into());
        }
    }
    Ok(())
}

/// Lifts what was promised to the job as it was, and what was promised to others behind it where it may now run longer;
/// the policy promises anew.
fn lift_promises(tx: &mut Tx<'_>, entry: &JobEntry, fields: &[Field], spec: &JobSpec) {
    let placed_alike = [Field::Comment, Field::Nice, Field::Requeue, Field::Throttle, Field::Account, Field::Qos];
    if fields.iter().all(|field| placed_alike.contains(field)) {
        return;
    }
    let longer = spec.time_limit.is_none_or(|new| entry.job.spec.time_limit.is_some_and(|old| new > old));
    for id in (0..entry.elements.len() as u64).map(|i| JobId(entry.job.id.0 + i)) {
        if tx.state.promises.contains_key(&id) {
            tx.emit(Event::PromiseLifted { job: id, why: LiftCause::Changed });
        }
        let runs_on = tx.state.attempts.get(&id).filter(|_| longer).map(|attempt| attempt.allocation.clone());
        for part in runs_on.iter().flat_map(|allocation| &allocation.parts) {
            tx.break_promises(part.node);
        }
    }
}
