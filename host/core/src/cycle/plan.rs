//! What a cycle leaves behind: groups to commit, and what it learned about those that wait.

use super::Cycle;
use crate::command::{Group, Kept, Start};
use crate::promise::LiftCause;
use ephor_model::{Allocation, JobId, ReasonCode, Timestamp};
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
    Lift(LiftCause),
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
            Change::Keep(..) | Change::Lift(_) => None,
        }
    }

    pub(super) fn take_plan(&mut self) -> Plan {
        let mut groups: Vec<Group> = Vec::new();
        for of_group in self.planned.chunk_by(|a, b| a.group == b.group) {
            groups.push(group(of_group));
        }
        self.planned.clear();
        let notes = std::mem::take(&mut self.notes);
        Plan { groups, notes, out_of_budget: self.work.0 == 0 }
    }
}

/// Of several changes to one job the last one stands.
fn group(changes: &[Planned]) -> Group {
    let last: BTreeMap<JobId, usize> = changes.iter().enumerate().map(|(at, change)| (change.job, at)).collect();
    let mut group = Group::default();
    for (at, Planned { job, what, .. }) in changes.iter().enumerate() {
        if last.get(job) != Some(&at) {
            continue;
        }
        match what {
            Change::Start(allocation) => group.starts.push(Start { job: *job, allocation: allocation.clone() }),
            Change::Keep(start, allocation) => {
                group.promises.push(Kept { job: *job, start: *start, allocation: allocation.clone() });
            }
            Change::Lift(why) => group.lifts.push((*job, *why)),
        }
    }
    group
}
