//! The counters of the pools that something bounds, kept true by the fold.

use super::{Draw, Metric, Scope, scopes};
use crate::records::{Attempt, Job};
use crate::state::State;
use ephor_model::{Allocation, Amounts, JobId, Span};
use imbl::OrdMap;
use std::sync::Arc;

/// What the jobs of a scope use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Jobs that wait or run.
    pub submitted: i64,
    /// Jobs that run.
    pub running: i64,
    /// Amounts that they hold; licences and nodes among them.
    pub in_use: Amounts,
    /// These times the minutes that they were granted.
    pub minutes: Amounts,
}

impl Use {
    /// How much of one thing. Time limits do not add up.
    pub fn of(&self, metric: Metric) -> i64 {
        match metric {
            Metric::Submitted => self.submitted,
            Metric::Running => self.running,
            Metric::InUse(id) => self.in_use.get(id),
            Metric::Minutes(id) => self.minutes.get(id),
            Metric::Wall => 0,
        }
    }

    fn draw(&mut self, draw: &Draw, times: i64) {
        self.running += times;
        self.in_use.add_scaled(&draw.amounts, times);
        let minutes: Amounts = draw.amounts.iter().map(|(id, n)| (id, draw.minutes(n))).collect();
        self.minutes.add_scaled(&minutes, times);
    }
}

impl State {
    /// Counts elements of a job as submitted, or no longer.
    pub(crate) fn count_submitted(&mut self, job: &Arc<Job>, more: i64) {
        self.count_in_pools(job, |u| u.submitted += more);
    }

    /// Counts an attempt as running (`times` 1) or no longer (-1). It draws what it holds for the time that it was
    /// granted at its start.
    pub(crate) fn count_draw(&mut self, id: JobId, allocation: &Allocation, granted: Span, times: i64) {
        let Some(job) = self.find(id).map(|(entry, _)| entry.job.clone()) else { return };
        self.count_in_pools(&job, |u| u.draw(&Draw::held(&job, allocation, granted), times));
    }

    fn count_in_pools(&mut self, job: &Arc<Job>, change: impl Fn(&mut Use)) {
        for scope in scopes(self, job) {
            put(&mut self.derived.pools, scope, &change);
        }
    }

    /// Counts these scopes anew, after what bounds them or who is in them changed.
    pub(crate) fn recount(&mut self, which: impl Fn(Scope) -> bool) {
        let mut pools: OrdMap<Scope, Use> = count(self, &which);
        let kept = self.derived.pools.iter().filter(|(scope, _)| !which(**scope));
        pools.extend(kept.map(|(scope, u)| (*scope, u.clone())));
        self.derived.pools = pools;
    }
}

fn put(pools: &mut OrdMap<Scope, Use>, scope: Scope, change: impl Fn(&mut Use)) {
    let counted = pools.entry(scope).or_default();
    change(counted);
    if *counted == Use::default() {
        pools.remove(&scope);
    }
}

pub(super) fn count(state: &State, which: impl Fn(Scope) -> bool) -> OrdMap<Scope, Use> {
    let mut pools = OrdMap::new();
    for entry in state.jobs.values().filter(|e| e.unfinished > 0) {
        for scope in scopes(state, &entry.job).into_iter().filter(|s| which(*s)) {
            put(&mut pools, scope, |u| u.submitted += i64::from(entry.unfinished));
        }
    }
    for attempt in state.attempts.values() {
        let Some((entry, _)) = state.find(attempt.key.job) else { continue };
        let draw = Draw::held(&entry.job, &attempt.allocation, granted(attempt));
        for scope in scopes(state, &entry.job).into_iter().filter(|s| which(*s)) {
            put(&mut pools, scope, |u| u.draw(&draw, 1));
        }
    }
    pools
}

/// The time that an attempt was granted at its start.
pub(crate) fn granted(attempt: &Attempt) -> Span {
    Span(attempt.expected_end.0.saturating_sub(attempt.started.0))
}
