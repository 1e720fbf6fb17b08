//! The scheduler's copy of what is promised: by job, with its reservation in the cluster, and by time.

use super::Replica;
use crate::promise::Promise;
use crate::state::State;
use ephor_model::{JobId, Timestamp};
use ephor_placement::ReservationId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// See the module.
#[derive(Debug, Default)]
pub struct Promises {
    by_job: BTreeMap<JobId, Kept>,
    by_start: BTreeSet<(Timestamp, JobId)>,
    /// When a cycle is due for a promise: at its start, and when it has been late for too long.
    wakes: BTreeSet<(Timestamp, JobId)>,
    /// Jobs that may have a promise without being looked at, as in a queue that starts no jobs now.
    orphans: BTreeSet<JobId>,
    /// Those whose promise is a claim.
    claims: BTreeSet<JobId>,
}

/// A promise and the number of its reservation.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The reservation.
    pub reservation: ReservationId,
    /// What it keeps.
    pub promise: Arc<Promise>,
}

impl Kept {
    fn is_late(&self, now: Timestamp) -> bool {
        self.promise.start + self.promise.patience() <= now
    }
}

impl Promises {
    /// What is promised to a job.
    pub fn get(&self, job: JobId) -> Option<&Kept> {
        self.by_job.get(&job)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_job.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_job.is_empty()
    }

    /// All jobs with a promise, ascending.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.by_job.keys().copied()
    }

    /// Jobs with a promise among those with ids from `first` on, so many of them.
    pub fn jobs_among(&self, first: JobId, count: u64) -> impl Iterator<Item = JobId> + '_ {
        self.by_job.range(first..JobId(first.0.saturating_add(count))).map(|(job, _)| *job)
    }

    /// Jobs whose promised time has come.
    pub fn due(&self, now: Timestamp) -> impl Iterator<Item = JobId> + '_ {
        self.by_start.iter().take_while(move |(start, _)| *start <= now).map(|(_, job)| *job)
    }

    /// Jobs whose promised time passed too long ago.
    pub fn late(&self, now: Timestamp) -> impl Iterator<Item = JobId> + '_ {
        let is_late = move |job: &JobId| self.by_job.get(job).is_some_and(|kept| kept.is_late(now));
        self.due(now).filter(is_late)
    }

    /// Jobs that have a claim.
    pub fn claims(&self) -> &BTreeSet<JobId> {
        &self.claims
    }

    /// When the next cycle is due for a promise.
    pub fn next_time(&self) -> Option<Timestamp> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// These times have come: each makes one cycle due.
    pub fn advance(&mut self, now: Timestamp) {
        while let Some((at, job)) = self.wakes.first().copied().filter(|(at, _)| *at <= now) {
            self.wakes.pop_first();
            if let Some(kept) = self.by_job.get(&job).filter(|kept| kept.promise.start == at) {
                self.wakes.insert((at + kept.promise.patience(), job));
            }
        }
    }

    fn insert(&mut self, job: JobId, kept: Kept) {
        self.by_start.insert((kept.promise.start, job));
        self.wakes.insert((kept.promise.start, job));
        if kept.promise.claim {
            self.claims.insert(job);
        }
        self.by_job.insert(job, kept);
    }

    fn remove(&mut self, job: JobId) -> Option<Kept> {
        let kept = self.by_job.remove(&job)?;
        let start = kept.promise.start;
        self.by_start.remove(&(start, job));
        self.wakes.remove(&(start, job));
        self.wakes.remove(&(start + kept.promise.patience(), job));
        self.claims.remove(&job);
        Some(kept)
    }
}

impl Replica {
    /// Brings one job's promise in line with the state.
    pub(super) fn refresh_promise(&mut self, job: JobId, state: &State) {
        let wanted = state.promises.get(&job);
        let has = self.promises.get(job).map(|kept| &kept.promise);
        if has == wanted {
            return;
        }
        if let Some(kept) = self.promises.remove(job) {
            self.cluster.withdraw(kept.reservation);
            if kept.promise.start <= self.cluster.now() {
                self.freed.extend(kept.promise.allocation.parts.iter().map(|part| part.node));
            }
        }
        if let Some(promise) = wanted {
            let reservation = self.cluster.promise(&promise.allocation, promise.start, promise.until);
            self.promises.insert(job, Kept { reservation, promise: promise.clone() });
        }
    }

    /// Promises that nothing will come of: late for too long, or to jobs that are not looked at any more.
    pub(crate) fn stale_promises(&self, now: Timestamp) -> Vec<JobId> {
        // A claim may belong to a job that has not ended yet; nobody is to look at it.
        let is_promise = |job: &JobId| self.promises.get(*job).is_some_and(|kept| !kept.promise.claim);
        let gone = |job: &JobId| is_promise(job) && self.pending(*job).is_none();
        let orphans = self.promises.orphans.iter().copied().filter(gone);
        let stale: BTreeSet<JobId> = self.promises.late(now).chain(orphans).collect();
        stale.into_iter().collect()
    }

    /// After queues changed or on a load: whose promises have nobody who looks at them.
    pub(super) fn find_orphans(&mut self) {
        self.promises.orphans = self.promises.jobs().filter(|job| self.pending(*job).is_none()).collect();
    }
}
