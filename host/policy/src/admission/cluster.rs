//! What an admission policy may see of the cluster.

use super::DraftCall;
use crate::bindings::admission::ephor::admission::drafts;
use crate::call::Call;
use ephor_core::State;
use ephor_model::{Queue, Uid, limits};
use wasmtime::Result;

impl Call<DraftCall> {
    /// Pays for a look through the queues or accounts: they have no index by name.
    fn pay(&mut self, text: &str, looked: impl Fn(&State) -> usize) -> Result<()> {
        self.base.handed_over(text.len())?;
        let looked = looked(&self.role.cluster.state);
        self.base.work(1 + looked as u64 / 16)
    }
}

impl drafts::Host for Call<DraftCall> {
    fn queue(&mut self, name: String) -> Result<Option<drafts::QueueInfo>> {
        self.pay(&name, |s| s.queues.len())?;
        Ok(self.role.cluster.state.queue_by_name(&name).map(|(_, queue)| info(queue)))
    }

    fn default_queue(&mut self) -> Result<Option<drafts::QueueInfo>> {
        self.pay("", |s| s.queues.len())?;
        Ok(self.role.cluster.state.queues.values().find(|q| q.default).map(|q| info(q)))
    }

    fn queues(&mut self) -> Result<Vec<String>> {
        self.pay("", |s| s.queues.len() * 16)?;
        let queues = &self.role.cluster.state.queues;
        self.base.hand_in((queues.len() * (limits::NAME_BYTES + 8)) as u64)?;
        Ok(queues.values().map(|q| q.name.clone()).collect())
    }

    fn may_use_account(&mut self, user: u32, account: String) -> Result<bool> {
        let state = &self.role.cluster.state;
        let listed = state.users.get(&Uid(user)).map_or(0, |u| u.accounts.len());
        self.pay(&account, |s| s.accounts.len() + listed)?;
        let state = &self.role.cluster.state;
        let there = state.account_by_name(&account).is_some();
        let user = state.users.get(&Uid(user));
        Ok(there && user.is_none_or(|u| u.accounts.is_empty() || u.accounts.contains(&account)))
    }

    fn default_account(&mut self, user: u32) -> Result<Option<String>> {
        self.base.work(1)?;
        Ok(self.role.cluster.state.users.get(&Uid(user)).and_then(|u| u.default_account.clone()))
    }

    fn live_jobs(&mut self, user: u32) -> Result<u32> {
        self.base.work(1)?;
        Ok(self.role.cluster.state.derived.live_by_user.get(&Uid(user)).copied().unwrap_or(0))
    }
}

fn info(queue: &Queue) -> drafts::QueueInfo {
    drafts::QueueInfo {
        name: queue.name.clone(),
        takes: queue.state.takes(),
        is_default: queue.default,
        default_time: queue.default_time.map(|t| t.0),
        max_time: queue.max_time.map(|t| t.0),
        max_nodes: queue.max_nodes,
        default_mem_per_cpu: queue.default_mem_per_cpu,
    }
}
