//! What a cycle leaves behind: groups to commit, and what it learned about those that wait.

use super::{Cycle, Reports};
use crate::command::{Group, Kept, Start};
use crate::eviction::Eviction;
use crate::promise::LiftCause;
use ephor_model::{Allocation, AttemptKey, JobId, ReasonCode, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a job waits, as the last cycle found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Reason.
    pub code: ReasonCode,
    /// In numbers.
    pub text: Arc<str>,
    /// What the policy added.
    pub said: Option<String>,
    /// When it could start, where the policy asked and promised it.
    pub earliest: Option<Timestamp>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Groups in the order in which they were made.
    pub groups: Vec<Group>,
    /// Notes by job.
    pub notes: BTreeMap<JobId, Note>,
    /// What the policy said in numbers.
    pub reports: Reports,
    /// Whether the work units ended before the policy did.
    pub out_of_budget: bool,
}

/// One change that a cycle planned.
pub(super) struct Planned {
    pub job: JobId,
    pub what: Change,
    /// Changes with the same number are neighbours and make one group.
    pub group: u32,
}

/// What is to happen to a job.
pub(super) enum Change {
    Start(Arc<Allocation>),
    Keep(Timestamp, Arc<Allocation>),
    /// The same as a claim.
    Claim(Timestamp, Arc<Allocation>),
    Lift(LiftCause),
    Evict(AttemptKey, Arc<Eviction>),
}

impl Cycle {
    /// Writes a change down as a group of its own.
    pub(super) fn plan(&mut self, job: JobId, what: Change) {
        self.planned.push(Planned { job, what, group: self.next_group });
        self.next_group += 1;
    }

    /// What a job gets that this cycle starts.
    pub(super) fn planned_start(&self, job: JobId) -> Option<&Allocation> {
        let of_job = |planned: &&Planned| planned.job == job;
        match &self.planned.iter().rev().find(of_job)?.what {
            Change::Start(allocation) => Some(allocation),
            _ => None,
        }
    }

    pub(super) fn take_plan(&mut self) -> Plan {
        let mut groups: Vec<Group> = Vec::new();
        for of_group in self.planned.chunk_by(|a, b| a.group == b.group) {
            groups.push(group(of_group));
        }
        self.planned.clear();
        let notes = std::mem::take(&mut self.notes);
        let reports = std::mem::take(&mut self.reports);
        Plan { groups, notes, reports, out_of_budget: self.work.0 == 0 }
    }
}

/// Of several changes to one job the last one stands; that an attempt gives way stands beside what its job gets.
fn group(changes: &[Planned]) -> Group {
    let of_jobs = changes.iter().enumerate().filter(|(_, change)| !matches!(change.what, Change::Evict(..)));
    let last: BTreeMap<JobId, usize> = of_jobs.map(|(at, change)| (change.job, at)).collect();
    let mut group = Group::default();
    for (at, Planned { job, what, .. }) in changes.iter().enumerate() {
        if let Change::Evict(key, eviction) = what {
            group.evictions.push((*key, eviction.clone()));
            continue;
        }
        if last.get(job) != Some(&at) {
            continue;
        }
        let kept = |start: &Timestamp, allocation: &Arc<Allocation>, claim| Kept {
            job: *job,
            start: *start,
            allocation: allocation.clone(),
            claim,
        };
        match what {
            Change::Start(allocation) => group.starts.push(Start { job: *job, allocation: allocation.clone() }),
            Change::Keep(start, allocation) => group.promises.push(kept(start, allocation, false)),
            Change::Claim(start, allocation) => group.promises.push(kept(start, allocation, true)),
            Change::Lift(why) => group.lifts.push((*job, *why)),
            Change::Evict(..) => {}
        }
    }
    group
}
