//! Queues, accounts and users of a cluster, for admission policies.

use std::collections::BTreeMap;

use crate::admission::{QueueInfo, Site};

/// The cluster around a job. All fields may be set.
#[derive(Clone, Debug, Default)]
pub struct FakeSite {
    /// The queues.
    pub queues: Vec<QueueInfo>,
    /// Accounts that a user may use, the first being the user's default.
    pub accounts: BTreeMap<u32, Vec<String>>,
    /// Jobs of each user that are not finished.
    pub live_jobs: BTreeMap<u32, u32>,
}

/// A queue that takes jobs and limits nothing.
pub fn queue(name: &str) -> QueueInfo {
    QueueInfo {
        name: name.to_owned(),
        takes: true,
        is_default: false,
        default_time: None,
        max_time: None,
        max_nodes: None,
        default_mem_per_cpu: None,
    }
}

impl Site for FakeSite {
    fn queue(&self, name: &str) -> Option<QueueInfo> {
        self.queues.iter().find(|queue| queue.name == name).cloned()
    }
    fn default_queue(&self) -> Option<QueueInfo> {
        self.queues.iter().find(|queue| queue.is_default).cloned()
    }
    fn queues(&self) -> Vec<String> {
        self.queues.iter().map(|queue| queue.name.clone()).collect()
    }
    fn may_use_account(&self, user: u32, account: &str) -> bool {
        self.accounts.get(&user).is_some_and(|accounts| accounts.iter().any(|one| one == account))
    }
    fn default_account(&self, user: u32) -> Option<String> {
        self.accounts.get(&user).and_then(|accounts| accounts.first().cloned())
    }
    fn live_jobs(&self, user: u32) -> u32 {
        self.live_jobs.get(&user).copied().unwrap_or(0)
    }
}
