//! Evictions and claims: an attempt that was told to give way, and the job that takes over what it releases.
//!
//! An eviction goes from `Evicted` through its grace to `Ended`, which confirms the release. A claim is a promise that
//! was given on the strength of such releases: it ends with the start of its job, or is lifted when it expires.

use crate::records::{Attempt, AttemptPhase};
use crate::state::State;
use ephor_model::{EndCause, JobId, Span, Timestamp, limits};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An order to give way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eviction {
    /// For the user, as the policy put it.
    pub why: Arc<str>,
    /// How long the attempt has before it is killed.
    pub grace: Span,
    /// Whether its job waits again, if its user lets it run twice; else it is cancelled.
    pub requeue: bool,
}

/// An attempt that has not ended so long after its grace is stuck.
pub(crate) const STUCK: Span = Span(limits::CLAIM_LATE_MS);

impl Attempt {
    /// The order to give way, where there is one.
    pub fn eviction(&self) -> Option<&Arc<Eviction>> {
        match &self.phase {
            AttemptPhase::Ending { eviction, .. } => eviction.as_ref(),
            _ => None,
        }
    }

    /// When it was told to end.
    pub fn told_to_end(&self) -> Option<Timestamp> {
        match self.phase {
            AttemptPhase::Ending { since, .. } => Some(since),
            _ => None,
        }
    }

    /// When what it holds comes free at the latest, unless it gets stuck: at its limit, or after its grace.
    pub fn release(&self) -> Timestamp {
        match &self.phase {
            AttemptPhase::Ending { since, eviction, .. } => {
                let grace = eviction.as_ref().map_or(Span(limits::END_GRACE_MS), |e| e.grace);
                self.expected_end.min(*since + grace)
            }
            _ => self.expected_end,
        }
    }
}

impl State {
    /// Whether the job of an attempt waits again once it was evicted: asked for, and its user lets it run twice.
    pub fn would_run_again(&self, job: JobId, eviction: &Eviction) -> bool {
        eviction.requeue && self.find(job).is_some_and(|(entry, _)| entry.job.spec.requeue.unwrap_or(false))
    }

    /// Whether a job runs that will wait again, since its attempt was evicted.
    pub(crate) fn is_moving(&self, job: JobId) -> bool {
        self.attempts.get(&job).is_some_and(|attempt| match &attempt.phase {
            // One that is cancelled meanwhile does not run again.
            AttemptPhase::Ending { cause: EndCause::Preempted, eviction: Some(eviction), .. } => {
                self.would_run_again(job, eviction)
            }
            _ => false,
        })
    }
}
