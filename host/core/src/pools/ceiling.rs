//! What is bounded in a scope, how far, and how much of it a job draws.

use super::{Scope, resource_by_name};
use crate::records::Job;
use crate::state::State;
use ephor_model::{Allocation, Amounts, ResourceId, Span, limits};

/// One thing that a scope bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Jobs that wait or run.
    Submitted,
    /// Jobs that run.
    Running,
    /// An amount that running jobs hold.
    InUse(ResourceId),
    /// An amount times the minutes that running jobs were granted.
    Minutes(ResourceId),
    /// The time limit of each job, in milliseconds. Nothing adds up.
    Wall,
}

/// The bounds of a scope; a resource that is not there any more bounds nothing.
pub(super) fn ceilings(state: &State, scope: Scope) -> Vec<(Metric, i64)> {
    let mut found = Vec::new();
    match scope {
        Scope::Licence(id) => {
            found.extend(state.licences.get(&id).map(|l| (Metric::InUse(id), i64::from(l.count))));
        }
        Scope::Reservation(no) => {
            found.extend(state.reservations.get(&no).map(|r| (Metric::InUse(ResourceId::NODE), r.nodes.len() as i64)));
        }
        Scope::Queue(id) => {
            let limit = state.queues.get(&id).map(|q| q.limit.clone()).unwrap_or_default();
            found.extend(limit.iter().map(|(resource, most)| (Metric::InUse(resource), most)));
        }
        _ => {}
    }
    let Some(limits) = scope.limits(state) else { return found };
    found.extend(limits.submitted.map(|n| (Metric::Submitted, i64::from(n))));
    found.extend(limits.running.map(|n| (Metric::Running, i64::from(n))));
    found.extend(limits.wall.map(|most| (Metric::Wall, most.0)));
    for (name, most) in &limits.in_use {
        found.extend(resource_by_name(state, name).map(|id| (Metric::InUse(id), *most)));
    }
    for (name, most) in &limits.minutes {
        found.extend(resource_by_name(state, name).map(|id| (Metric::Minutes(id), *most)));
    }
    found
}

/// What one job takes from its pools while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Amounts that it holds, licences and nodes among them.
    pub amounts: Amounts,
    /// Its time limit.
    pub wall: Span,
}

impl Draw {
    /// What a waiting job asks for, at its fewest nodes.
    pub fn asked(job: &Job) -> Self {
        Self::new(job, job.spec.request.total(), job.spec.time_limit.unwrap_or(Span(i64::MAX)))
    }

    /// What a job with that allocation and time limit takes.
    pub fn held(job: &Job, allocation: &Allocation, wall: Span) -> Self {
        let amounts = allocation.total().with(ResourceId::NODE, allocation.parts.len() as i64);
        Self::new(job, amounts, wall)
    }

    fn new(job: &Job, mut amounts: Amounts, wall: Span) -> Self {
        for (licence, count) in &job.licences {
            amounts.set(*licence, i64::from(*count));
        }
        // A job without a limit, and one whose end is never, may run for as long as any.
        Self { amounts, wall: Span(wall.0.clamp(0, limits::TIME_LIMIT_MS)) }
    }

    /// What it takes of one thing.
    pub fn of(&self, metric: Metric) -> i64 {
        match metric {
            Metric::Submitted => 0,
            Metric::Running => 1,
            Metric::InUse(id) => self.amounts.get(id),
            Metric::Minutes(id) => self.minutes(self.amounts.get(id)),
            Metric::Wall => self.wall.0,
        }
    }

    /// That amount for its whole time limit, begun minutes as whole ones; no more than can be counted.
    pub(super) fn minutes(&self, amount: i64) -> i64 {
        let minutes = (self.wall.0 + 59_999) / 60_000;
        amount.saturating_mul(minutes).min(limits::AMOUNT)
    }
}
