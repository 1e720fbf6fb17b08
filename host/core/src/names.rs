//! Jobs of one user under one name, for those that must be the only one (`singleton`).
//!
//! A set is kept only for names that some unfinished job waits to be alone under; it holds all unfinished jobs of that
//! user and name. Like every index it follows from the rest of the state.

use crate::records::{Job, JobEntry};
use crate::state::State;
use ephor_model::{DependencyKind, JobId, Uid};
use imbl::OrdSet;

/// Whose name.
pub type NameKey = (Uid, String);

fn key(job: &Job) -> NameKey {
    (job.spec.owner.uid, job.spec.name.clone())
}

fn waits_alone(entry: &JobEntry) -> bool {
    entry.unfinished > 0 && entry.job.waiting.iter().any(|d| d.kind == DependencyKind::Singleton)
}

impl State {
    /// Brings the set of a job's name up to date, after the job came, ended, waits again, or waits for other things.
    pub(crate) fn refresh_name(&mut self, first: JobId) {
        let Some(entry) = self.jobs.get(&first) else { return };
        let key = key(&entry.job);
        let unfinished = entry.unfinished > 0;
        if let Some(set) = self.derived.names.get_mut(&key) {
            match unfinished {
                true => set.insert(first),
                false => set.remove(&first),
            };
            let needed = self
                .derived
                .names
                .get(&key)
                .into_iter()
                .flatten()
                .any(|id| self.jobs.get(id).is_some_and(|e| waits_alone(e)));
            if !needed {
                self.derived.names.remove(&key);
            }
        } else if waits_alone(entry) {
            let of_name = |e: &JobEntry| e.unfinished > 0 && self::key(&e.job) == key;
            let set: OrdSet<JobId> = self.jobs.iter().filter(|(_, e)| of_name(e)).map(|(id, _)| *id).collect();
            self.derived.names.insert(key, set);
        }
    }

    /// Whether no unfinished job of its user and name was submitted before it.
    pub(crate) fn is_first_of_name(&self, first: JobId) -> bool {
        let Some(entry) = self.jobs.get(&first) else { return true };
        self.derived.names.get(&key(&entry.job)).and_then(OrdSet::get_min).is_none_or(|least| *least == first)
    }

    /// The first unfinished job of a job's user and name, where one waits to be alone.
    pub(crate) fn next_of_name(&self, job: &Job) -> Option<JobId> {
        self.derived.names.get(&key(job)).and_then(OrdSet::get_min).copied()
    }

    /// Whether a user has an unfinished job of that name.
    pub(crate) fn has_unfinished_of_name(&self, uid: Uid, name: &str) -> bool {
        match self.derived.names.get(&(uid, name.to_owned())) {
            Some(set) => !set.is_empty(),
            None => {
                self.jobs.values().any(|e| e.unfinished > 0 && e.job.spec.owner.uid == uid && e.job.spec.name == name)
            }
        }
    }
}
