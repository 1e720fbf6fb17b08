//! Cancel, hold, release, requeue.

use super::{Tx, bounds};
use crate::command::{Action, Actor, Refusal, RefusalKind, Reply};
use crate::event::Event;
use crate::records::AttemptPhase;
use ephor_model::{AttemptKey, EndCause, Hold, JobId, JobState};

pub(super) fn act(tx: &mut Tx<'_>, action: Action, job: JobId, whole: bool, by: &Actor) -> Result<Reply, Refusal> {
    let Some((entry, ordinal)) = tx.state.find(job) else {
        return Err(Refusal::new(RefusalKind::NotFound, format!("there is no job {job} in the queue")));
    };
    let ids: Vec<JobId> = match whole && ordinal == 0 {
        true => (0..entry.elements.len() as u64).map(|i| JobId(job.0 + i)).collect(),
        false => vec![job],
    };
    let mut done = 0;
    let mut first_refusal = None;
    for id in ids {
        match one(tx, action, id, by) {
            Ok(()) => done += 1,
            Err(refusal) => first_refusal = first_refusal.or(Some(refusal)),
        }
    }
    // Of an array, what could be done was meant: that some elements had ended already is no error.
    match first_refusal {
        Some(refusal) if done == 0 => Err(refusal),
        _ => Ok(Reply::Done),
    }
}

fn one(tx: &mut Tx<'_>, action: Action, id: JobId, by: &Actor) -> Result<(), Refusal> {
    let Some((_, element)) = tx.state.element(id) else {
        return Err(Refusal::new(RefusalKind::NotFound, format!("there is no job {id} in the queue")));
    };
    let (state, hold) = (element.state, element.hold);
    let conflict = |text: &str| Err(Refusal::new(RefusalKind::Conflict, text.to_owned()));
    match (action, state) {
        (Action::Cancel, JobState::Pending) => {
            tx.emit(Event::CancelledPending { job: id, by: by.name.as_str().into() });
            tx.settle_dependents(id);
            Ok(())
        }
        (Action::Cancel, s) if s.is_final() => conflict(&format!("the job has ended already: {s}")),
        (Action::Cancel, _) => order_end(tx, id, EndCause::Cancelled),
        (Action::Hold, JobState::Pending) => {
            let wanted = if by.operator { Hold::Admin } else { Hold::User };
            if hold == Hold::None {
                tx.emit(Event::HoldSet { job: id, hold: wanted });
            }
            Ok(())
        }
        (Action::Hold, s) => conflict(&format!("only a pending job can be held; this one is {s}")),
        (Action::Release, JobState::Pending) => match hold {
            Hold::Admin if !by.operator => conflict("an operator holds the job; ask one to release it"),
            Hold::None => Ok(()),
            _ => {
                tx.emit(Event::HoldSet { job: id, hold: Hold::None });
                Ok(())
            }
        },
        (Action::Release, s) => conflict(&format!("only a pending job can be released; this one is {s}")),
        (Action::Requeue, JobState::Pending) => conflict("the job is pending already"),
        (Action::Requeue, s) if s.is_final() => {
            if let Some((entry, _)) = tx.state.element(id) {
                bounds::room_for(tx, &entry.job, 1)?;
            }
            tx.emit(Event::Requeued { job: id });
            Ok(())
        }
        (Action::Requeue, _) => order_end(tx, id, EndCause::Requeued),
    }
}

/// Orders the end of a running attempt. A second order changes the cause only where it weighs more: a job that is
/// cancelled while it is being requeued does not run again.
pub(super) fn order_end(tx: &mut Tx<'_>, id: JobId, cause: EndCause) -> Result<(), Refusal> {
    let Some(attempt) = tx.state.attempts.get(&id) else {
        return Err(Refusal::new(RefusalKind::Conflict, "the job does not run"));
    };
    let key: AttemptKey = attempt.key;
    let stronger = match &attempt.phase {
        AttemptPhase::Ending { cause: before, .. } => cause == EndCause::Cancelled && *before != EndCause::Cancelled,
        _ => true,
    };
    if stronger {
        tx.emit(Event::EndOrdered { key, cause });
    }
    Ok(())
}
