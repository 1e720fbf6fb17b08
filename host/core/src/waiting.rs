//! How a job's conditions on others, and its specification itself, change: the part of the fold about what jobs wait for.

use crate::command::expected_end;
use crate::fold::settle_eligibility;
use crate::pools::granted;
use crate::records::Job;
use crate::rows::RowKey;
use crate::state::State;
use ephor_model::{Dependency, JobId, QueueId, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;

impl State {
    /// Folds the decision on one dependency of a job.
    pub(crate) fn dependency_decided(
        &mut self,
        id: JobId,
        index: u32,
        satisfied: bool,
        at: Timestamp,
        touched: &mut BTreeSet<RowKey>,
    ) -> bool {
        let Some(entry) = self.jobs.get_mut(&id).map(Arc::make_mut) else { return false };
        let count = entry.job.spec.count();
        let index = index as usize;
        if index >= entry.job.waiting.len() {
            return false;
        }
        touched.insert(RowKey::Job(id));
        let before = entry.job.waiting.clone();
        let job = Arc::make_mut(&mut entry.job);
        job.waiting.remove(index);
        // One satisfied condition settles an "any"; one impossible condition settles an "all".
        match (job.spec.dependency_any, satisfied) {
            (true, true) => job.waiting.clear(),
            (false, false) => job.never = true,
            (true, false) if job.waiting.is_empty() => job.never = true,
            _ => {}
        }
        self.refresh_dependents(id, &before);
        // A fresh element is what `Element::fresh` makes of the job as it is now, at the time of submission; what is
        // eligible from a later time on is no longer fresh and gets its row.
        for ordinal in 0..count {
            let element = JobId(id.0 + u64::from(ordinal));
            self.change(element, touched, |job, e| settle_eligibility(job, e, at));
        }
        true
    }

    /// Brings the index of who waits for whom up to date, after a job's open dependencies were others `before`.
    fn refresh_dependents(&mut self, id: JobId, before: &[Dependency]) {
        let Some(job) = self.jobs.get(&id).map(|entry| entry.job.clone()) else { return };
        let waits = |other: JobId| job.waiting.iter().any(|d| d.job == other);
        for other in before.iter().map(|d| d.job).filter(|other| !waits(*other)) {
            self.stop_waiting(id, other);
        }
        for dependency in &job.waiting {
            self.derived.dependents.entry(dependency.job).or_default().insert(id);
        }
        self.refresh_name(id);
    }

    /// Takes a job out of those that wait for another one.
    pub(crate) fn stop_waiting(&mut self, id: JobId, other: JobId) {
        let empty = self.derived.dependents.get_mut(&other).is_some_and(|waiters| {
            waiters.remove(&id);
            waiters.is_empty()
        });
        if empty {
            self.derived.dependents.remove(&other);
        }
    }

    /// Puts a job's new specification in place of the old one.
    pub(crate) fn modified(&mut self, now: Job, at: Timestamp, touched: &mut BTreeSet<RowKey>) -> bool {
        let first = now.id;
        self.note_deadline(first, false);
        self.count_job(first, -1);
        let Some(entry) = self.jobs.get_mut(&first).map(Arc::make_mut) else { return false };
        touched.insert(RowKey::Job(first));
        let was = std::mem::replace(&mut entry.job, Arc::new(now));
        let now = entry.job.clone();
        self.note_deadline(first, true);
        self.refresh_dependents(first, &was.waiting);
        let others = was.spec.dependencies != now.spec.dependencies;
        let waits_otherwise = others || was.waiting != now.waiting || was.never != now.never;
        for element in (0..now.spec.count()).map(|i| JobId(first.0 + u64::from(i))) {
            if waits_otherwise || was.spec.begin != now.spec.begin {
                self.change(element, touched, |job, e| {
                    if others {
                        (e.met, e.never) = (0, false);
                    }
                    let since = e.eligible.take().filter(|since| *since <= at);
                    settle_eligibility(job, e, at);
                    // Who could have run before has not begun to wait only now.
                    e.eligible = e.eligible.map(|from| since.filter(|_| from <= at).unwrap_or(from));
                });
            }
            if let Some(attempt) = self.attempts.get_mut(&element)
                && was.spec.time_limit != now.spec.time_limit
            {
                touched.insert(RowKey::Attempt(element));
                let attempt = Arc::make_mut(attempt);
                attempt.expected_end = expected_end(attempt.started, &now.spec);
            }
        }
        self.count_job(first, 1);
        if was.queue != now.queue {
            self.move_use(&now, was.queue, at, touched);
        }
        true
    }

    /// What the running elements of a job hold counts for its new queue from now on.
    fn move_use(&mut self, job: &Job, from: QueueId, at: Timestamp, touched: &mut BTreeSet<RowKey>) {
        for element in (0..u64::from(job.spec.count())).map(|i| JobId(job.id.0 + i)) {
            if let Some(held) = self.attempts.get(&element).map(|attempt| attempt.allocation.total()) {
                self.note_use(from, &held, -1, at, touched);
                self.note_use(job.queue, &held, 1, at, touched);
            }
        }
    }

    /// Counts what a job draws on pools with all its elements, as it is (`times` 1), or takes that back (-1).
    fn count_job(&mut self, first: JobId, times: i64) {
        let Some(entry) = self.jobs.get(&first).cloned() else { return };
        self.count_submitted(&entry.job, times * i64::from(entry.unfinished));
        for element in (0..u64::from(entry.job.spec.count())).map(|i| JobId(first.0 + i)) {
            if let Some(attempt) = self.attempts.get(&element).cloned() {
                self.count_draw(element, &attempt.allocation, granted(&attempt), times);
            }
        }
    }
}
