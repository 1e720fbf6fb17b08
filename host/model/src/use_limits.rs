//! What jobs may use together: the one record of limits that queues, accounts, QOS and users have.

use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bounds on the jobs of some scope together; what is not named has no bound. A bound of 0 lets nothing through.
///
/// Resources are named as people write them: `cpu`, `mem`, `gpu`, `gpu.mem`, `node`, and `licence:NAME` for a licence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UseLimits {
    /// Jobs that run at a time.
    pub running: Option<u32>,
    /// Jobs that wait or run at a time; each element of an array counts.
    pub submitted: Option<u32>,
    /// Amounts that running jobs hold together, in the unit of each resource.
    pub in_use: BTreeMap<String, i64>,
    /// Amounts times minutes of time limit that running jobs were granted together. Time that has passed counts until
    /// its job ends.
    pub minutes: BTreeMap<String, i64>,
    /// Longest time limit of one job.
    pub wall: Option<Span>,
}

impl UseLimits {
    /// Whether nothing is bounded.
    pub fn is_empty(&self) -> bool {
        // Field by field: this is asked for every scope of every job, and a default to compare with is made and dropped.
        let Self { running, submitted, in_use, minutes, wall } = self;
        running.is_none() && submitted.is_none() && in_use.is_empty() && minutes.is_empty() && wall.is_none()
    }

    /// Every resource that is named, perhaps twice.
    pub fn resources(&self) -> impl Iterator<Item = &str> {
        self.in_use.keys().chain(self.minutes.keys()).map(String::as_str)
    }
}

/// Limits of one user in one account: Slurm's association.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Association {
    /// The account, by name.
    pub account: String,
    /// What the user's jobs in it (and in the accounts below) may use; in place of what the account says per user.
    pub limits: UseLimits,
}
