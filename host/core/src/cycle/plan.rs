//! What a cycle leaves behind: groups to commit, and what it learned about those that wait.

use super::Cycle;
use crate::command::{Group, Start};
use ephor_model::{JobId, ReasonCode, Timestamp};
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

impl Cycle {
    pub(super) fn take_plan(&mut self) -> Plan {
        let mut groups: Vec<Group> = Vec::new();
        let mut last = None;
        for start in self.starts.drain(..) {
            if last != Some(start.group) {
                groups.push(Group::default());
                last = Some(start.group);
            }
            if let Some(group) = groups.last_mut() {
                group.starts.push(Start { job: start.job, allocation: start.allocation });
            }
        }
        let notes = std::mem::take(&mut self.notes);
        Plan { groups, notes, out_of_budget: self.work.0 == 0 }
    }
}
