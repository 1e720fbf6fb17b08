//! Promises: capacity that is kept for a waiting job until its start comes.
//!
//! A job has at most one. It ends with the wait: when the job starts, is cancelled or held, or can no longer run; or when
//! it is lifted. The fold sees to that, so that no event has to say it twice.

use crate::records::Element;
use crate::rows::RowKey;
use crate::state::State;
use ephor_model::{Allocation, JobId, JobState, NodeId, Span, Timestamp, limits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is kept, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// When the job shall start.
    pub start: Timestamp,
    /// When it then ends at the latest.
    pub until: Timestamp,
    /// What is kept. Of GPUs only their number is meant: which of them is decided at the start.
    pub allocation: Arc<Allocation>,
    /// Whether it counts on attempts that were told to end: the host starts its job as soon as there is room.
    pub claim: bool,
}

impl Promise {
    /// How long it is kept beyond its time.
    pub fn patience(&self) -> Span {
        Span(if self.claim { limits::CLAIM_LATE_MS } else { limits::PROMISE_LATE_MS })
    }
}

/// Why a promise was lifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LiftCause {
    /// The scheduling policy gave it up.
    Policy,
    /// That node went down, was drained or deleted, or became smaller.
    Node(NodeId),
    /// Its time passed long ago, or its job is not looked at any more.
    Expired,
    /// A reservation of nodes was made over it.
    Reservation,
    /// Its job asks for something else now.
    Changed,
}

impl State {
    /// Writes a promise down, in place of the one that the job had; false where the job does not wait to be started.
    pub(crate) fn set_promise(&mut self, job: JobId, promise: Arc<Promise>) -> bool {
        if !self.awaits_start(job) {
            return false;
        }
        self.remove_promise(job);
        for part in &promise.allocation.parts {
            self.derived.promised.entry(part.node).or_default().insert(job);
        }
        self.promises.insert(job, promise);
        true
    }

    /// Strikes a promise out; false where there is none.
    pub(crate) fn remove_promise(&mut self, job: JobId) -> bool {
        let Some(promise) = self.promises.remove(&job) else { return false };
        for part in &promise.allocation.parts {
            let empty = self.derived.promised.get_mut(&part.node).is_some_and(|jobs| {
                jobs.remove(&job);
                jobs.is_empty()
            });
            if empty {
                self.derived.promised.remove(&part.node);
            }
        }
        true
    }

    /// Strikes out the promise of a job that no longer waits to be started.
    pub(crate) fn settle_promise(&mut self, job: JobId, touched: &mut BTreeSet<RowKey>) {
        if self.promises.contains_key(&job) && !self.awaits_start(job) {
            touched.insert(RowKey::Promise(job));
            self.remove_promise(job);
        }
    }

    fn awaits_start(&self, job: JobId) -> bool {
        let waits = |e: &Element| e.state == JobState::Pending && e.eligible.is_some();
        self.element(job).is_some_and(|(_, e)| waits(e)) || self.is_moving(job)
    }
}
