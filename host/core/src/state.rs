//! The state of the cluster and the questions that are asked of it.

use crate::promise::Promise;
use crate::records::{
    Attempt, Element, Elements, Job, JobEntry, LedgerEntry, LedgerKey, Meta, Node, OpenToken, PolicySlot, Uncharged,
};
use crate::rows::{Row, RowKey};
use ephor_model::{
    Account, AccountId, Allocation, Amounts, AttemptKey, Digest, JobId, NodeId, Queue, QueueId, Slot, Uid, User,
};
use imbl::{OrdMap, OrdSet};
use std::sync::Arc;

/// Everything the controller knows. A clone is cheap (shared structure), so that queries and the scheduler read a
/// snapshot while the sequencer goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Counters.
    pub meta: Meta,
    /// Queues.
    pub queues: OrdMap<QueueId, Arc<Queue>>,
    /// Accounts.
    pub accounts: OrdMap<AccountId, Arc<Account>>,
    /// Users.
    pub users: OrdMap<Uid, Arc<User>>,
    /// Nodes.
    pub nodes: OrdMap<NodeId, Arc<Node>>,
    /// Jobs and arrays, by first id.
    pub jobs: OrdMap<JobId, Arc<JobEntry>>,
    /// Live attempts, by job.
    pub attempts: OrdMap<JobId, Arc<Attempt>>,
    /// Ledger.
    pub ledger: OrdMap<LedgerKey, LedgerEntry>,
    /// Ended attempts that are not charged.
    pub uncharged: OrdMap<AttemptKey, Arc<Uncharged>>,
    /// Policy slots.
    pub policies: OrdMap<Slot, Arc<PolicySlot>>,
    /// Open join tokens.
    pub tokens: OrdMap<Digest, OpenToken>,
    /// What is promised to waiting jobs.
    pub promises: OrdMap<JobId, Arc<Promise>>,
    /// What follows from the rest, kept for speed; not stored.
    pub derived: Derived,
}

/// Indexes that follow from the rest of the state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Derived {
    /// What attempts hold on each node.
    pub held: OrdMap<NodeId, Held>,
    /// Jobs that have a promise on a node; no entry where there is none.
    pub promised: OrdMap<NodeId, OrdSet<JobId>>,
    /// Jobs (first ids) that wait for a job (first id).
    pub dependents: OrdMap<JobId, OrdSet<JobId>>,
    /// Jobs that are not finished, by user.
    pub live_by_user: OrdMap<Uid, u32>,
    /// Jobs that are not finished.
    pub unfinished: u64,
    /// Jobs that are finished and not yet forgotten.
    pub finished: u64,
    /// Numbers of nodes by name.
    pub node_names: OrdMap<String, NodeId>,
}

/// What attempts hold on one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    /// Amounts.
    pub amounts: Amounts,
    /// Thousandths of each GPU, by index.
    pub devices: OrdMap<u32, i64>,
    /// Jobs.
    pub jobs: OrdSet<JobId>,
}

impl State {
    /// The record that an id belongs to, and its ordinal in it.
    pub fn find(&self, id: JobId) -> Option<(&Arc<JobEntry>, usize)> {
        let (first, entry) = self.jobs.get_prev(&id)?;
        let ordinal = (id.0 - first.0) as usize;
        (ordinal < entry.elements.len()).then_some((entry, ordinal))
    }

    /// The element with that id.
    pub fn element(&self, id: JobId) -> Option<(&Arc<JobEntry>, &Arc<Element>)> {
        let (entry, ordinal) = self.find(id)?;
        entry.elements.get(ordinal).map(|e| (entry, e))
    }

    /// How people write the id: `12`, or `12_3` for an element.
    pub fn display_id(&self, id: JobId) -> String {
        self.find(id).map_or_else(|| id.to_string(), |(entry, ordinal)| display_id(&entry.job, ordinal as u32))
    }

    /// The queue of that name.
    pub fn queue_by_name(&self, name: &str) -> Option<(QueueId, &Arc<Queue>)> {
        self.queues.iter().find(|(_, q)| q.name == name).map(|(id, q)| (*id, q))
    }

    /// The account of that name.
    pub fn account_by_name(&self, name: &str) -> Option<(AccountId, &Arc<Account>)> {
        self.accounts.iter().find(|(_, a)| a.name == name).map(|(id, a)| (*id, a))
    }

    /// The node of that name.
    pub fn node_by_name(&self, name: &str) -> Option<&Arc<Node>> {
        self.derived.node_names.get(name).and_then(|id| self.nodes.get(id))
    }

    /// Name of a node, for texts.
    pub fn node_name(&self, id: NodeId) -> String {
        self.nodes.get(&id).map_or_else(|| format!("node {id}"), |n| n.spec.name.clone())
    }

    /// What is free on a node; negative entries where it shrank below what is held.
    pub fn free(&self, id: NodeId) -> Amounts {
        let mut free = self.nodes.get(&id).map(|n| n.capacity()).unwrap_or_default();
        if let Some(held) = self.derived.held.get(&id) {
            free.sub(&held.amounts);
        }
        free
    }

    /// Content of a row as it is now; `None`: it is not there, or as it would be without a row.
    pub fn row(&self, key: &RowKey) -> Option<Row> {
        Some(match key {
            RowKey::Meta => Row::Meta(self.meta.clone()),
            RowKey::Queue(id) => Row::Queue(self.queues.get(id)?.clone()),
            RowKey::Account(id) => Row::Account(self.accounts.get(id)?.clone()),
            RowKey::User(id) => Row::User(self.users.get(id)?.clone()),
            RowKey::Node(id) => Row::Node(self.nodes.get(id)?.clone()),
            RowKey::Job(id) => Row::Job(self.jobs.get(id)?.job.clone()),
            RowKey::Element(id) => {
                let (entry, element) = self.element(*id)?;
                if **element == Element::fresh(&entry.job) {
                    return None;
                }
                Row::Element((**element).clone())
            }
            RowKey::Attempt(id) => Row::Attempt(self.attempts.get(id)?.clone()),
            RowKey::Ledger(key) => Row::Ledger(*self.ledger.get(key)?),
            RowKey::Uncharged(key) => Row::Uncharged(self.uncharged.get(key)?.clone()),
            RowKey::Policy(slot) => Row::Policy(self.policies.get(slot)?.clone()),
            RowKey::Token(digest) => Row::Token(self.tokens.get(digest)?.clone()),
            RowKey::Promise(id) => Row::Promise(self.promises.get(id)?.clone()),
        })
    }

    /// Keys of all rows: with [`Self::row`], the whole state.
    pub fn row_keys(&self) -> Vec<RowKey> {
        let mut keys = vec![RowKey::Meta];
        keys.extend(self.queues.keys().map(|id| RowKey::Queue(*id)));
        keys.extend(self.accounts.keys().map(|id| RowKey::Account(*id)));
        keys.extend(self.users.keys().map(|id| RowKey::User(*id)));
        keys.extend(self.nodes.keys().map(|id| RowKey::Node(*id)));
        for (id, entry) in &self.jobs {
            keys.push(RowKey::Job(*id));
            let fresh = Element::fresh(&entry.job);
            let touched = entry.elements.iter().enumerate().filter(|(_, e)| ***e != fresh);
            keys.extend(touched.map(|(i, _)| RowKey::Element(JobId(id.0 + i as u64))));
        }
        keys.extend(self.attempts.keys().map(|id| RowKey::Attempt(*id)));
        keys.extend(self.ledger.keys().map(|key| RowKey::Ledger(*key)));
        keys.extend(self.uncharged.keys().map(|key| RowKey::Uncharged(*key)));
        keys.extend(self.policies.keys().map(|slot| RowKey::Policy(slot.clone())));
        keys.extend(self.tokens.keys().map(|digest| RowKey::Token(*digest)));
        keys.extend(self.promises.keys().map(|id| RowKey::Promise(*id)));
        keys
    }

    /// The state that these rows are, in any order.
    ///
    /// # Errors
    /// Rows that do not belong together, as after damage: the text names the row.
    pub fn from_rows(rows: impl IntoIterator<Item = (RowKey, Row)>) -> Result<Self, String> {
        let mut state = Self::default();
        let (mut elements, mut promises) = (Vec::new(), Vec::new());
        for (key, row) in rows {
            match (key, row) {
                (RowKey::Meta, Row::Meta(meta)) => state.meta = meta,
                (RowKey::Queue(id), Row::Queue(q)) => drop(state.queues.insert(id, q)),
                (RowKey::Account(id), Row::Account(a)) => drop(state.accounts.insert(id, a)),
                (RowKey::User(id), Row::User(u)) => drop(state.users.insert(id, u)),
                (RowKey::Node(id), Row::Node(n)) => {
                    state.derived.node_names.insert(n.spec.name.clone(), id);
                    state.nodes.insert(id, n);
                }
                (RowKey::Job(_), Row::Job(job)) => state.insert_job(job),
                (RowKey::Element(id), Row::Element(element)) => elements.push((id, element)),
                (RowKey::Attempt(_), Row::Attempt(attempt)) => state.insert_attempt(attempt),
                (RowKey::Ledger(key), Row::Ledger(entry)) => drop(state.ledger.insert(key, entry)),
                (RowKey::Uncharged(key), Row::Uncharged(u)) => drop(state.uncharged.insert(key, u)),
                (RowKey::Policy(slot), Row::Policy(p)) => drop(state.policies.insert(slot, p)),
                (RowKey::Token(digest), Row::Token(t)) => drop(state.tokens.insert(digest, t)),
                (RowKey::Promise(id), Row::Promise(p)) => promises.push((id, p)),
                (key, _) => return Err(format!("row {key:?} holds something else")),
            }
        }
        for (id, element) in elements {
            let known = state.change_element(id, |e| *e = element);
            if !known {
                return Err(format!("element {id} belongs to no job"));
            }
        }
        let starting: Vec<JobId> = state.attempts.keys().copied().collect();
        for id in starting {
            if state.find(id).is_none() {
                return Err(format!("the attempt of job {id} belongs to no job"));
            }
            state.count_running(id, 1);
        }
        for (id, promise) in promises {
            if !state.set_promise(id, promise) {
                return Err(format!("job {id}, which has a promise, does not wait to be started"));
            }
        }
        Ok(state)
    }

    pub(crate) fn insert_job(&mut self, job: Arc<Job>) {
        let elements = Elements::fresh(&job);
        let count = elements.len() as u32;
        for dependency in &job.waiting {
            self.derived.dependents.entry(dependency.job).or_default().insert(job.id);
        }
        self.derived.unfinished += u64::from(count);
        *self.derived.live_by_user.entry(job.spec.owner.uid).or_default() += count;
        self.jobs.insert(job.id, Arc::new(JobEntry { job, elements, unfinished: count, running: 0 }));
    }

    /// Changes an element and keeps the counts true; false where it is not there.
    pub(crate) fn change_element(&mut self, id: JobId, change: impl FnOnce(&mut Element)) -> bool {
        let Some((entry, ordinal)) = self.find(id) else { return false };
        let first = entry.job.id;
        let Some(entry) = self.jobs.get_mut(&first).map(Arc::make_mut) else { return false };
        let Some(element) = entry.elements.get_mut(ordinal) else { return false };
        let was = element.state.is_final();
        change(element);
        let is = element.state.is_final();
        if was != is {
            let step: i64 = if is { -1 } else { 1 };
            entry.unfinished = entry.unfinished.saturating_add_signed(step as i32);
            let uid = entry.job.spec.owner.uid;
            self.derived.unfinished = self.derived.unfinished.saturating_add_signed(step);
            self.derived.finished = self.derived.finished.saturating_add_signed(-step);
            let live = self.derived.live_by_user.entry(uid).or_default();
            *live = live.saturating_add_signed(step as i32);
        }
        true
    }

    pub(crate) fn count_running(&mut self, id: JobId, step: i32) {
        let Some((entry, _)) = self.find(id) else { return };
        let first = entry.job.id;
        if let Some(entry) = self.jobs.get_mut(&first).map(Arc::make_mut) {
            entry.running = entry.running.saturating_add_signed(step);
        }
    }

    pub(crate) fn insert_attempt(&mut self, attempt: Arc<Attempt>) {
        self.hold(attempt.key.job, &attempt.allocation, true);
        self.attempts.insert(attempt.key.job, attempt);
    }

    /// Books an allocation on its nodes, or takes the booking back.
    pub(crate) fn hold(&mut self, job: JobId, allocation: &Allocation, take: bool) {
        for part in &allocation.parts {
            let held = self.derived.held.entry(part.node).or_default();
            if take {
                held.amounts.add(&part.amounts);
                for device in &part.devices {
                    *held.devices.entry(*device).or_default() += part.milli_per_device();
                }
                held.jobs.insert(job);
            } else {
                held.amounts.sub(&part.amounts);
                for device in &part.devices {
                    let left = held.devices.remove(device).unwrap_or(0) - part.milli_per_device();
                    if left > 0 {
                        held.devices.insert(*device, left);
                    }
                }
                held.jobs.remove(&job);
            }
        }
    }
}

/// How people write the id of an element of a job.
pub fn display_id(job: &Job, ordinal: u32) -> String {
    match &job.spec.array {
        None => job.id.to_string(),
        Some(array) => format!("{}_{}", job.id, array.index(ordinal).unwrap_or(ordinal)),
    }
}
