//! The state of the cluster and the questions that are asked of it.

use crate::alike::Alike;
use crate::names::NameKey;
use crate::past_use::PastUse;
use crate::pools::{Scope, Use};
use crate::promise::Promise;
use crate::records::{
    Attempt, Element, Elements, Job, JobEntry, LedgerEntry, LedgerKey, Meta, Node, OpenToken, PolicySlot, Uncharged,
};
use crate::rows::{Row, RowKey};
use ephor_model::{
    Account, AccountId, Allocation, Amounts, AttemptKey, Digest, JobId, JobState, Licence, NodeId, Qos, QosId, Queue,
    QueueId, Reservation, ReservationNo, ResourceId, Slot, Span, Timestamp, Uid, User,
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
    /// What the jobs of each queue held over time.
    pub past_use: OrdMap<QueueId, PastUse>,
    /// Ended attempts that are not charged.
    pub uncharged: OrdMap<AttemptKey, Arc<Uncharged>>,
    /// Policy slots.
    pub policies: OrdMap<Slot, Arc<PolicySlot>>,
    /// Open join tokens.
    pub tokens: OrdMap<Digest, OpenToken>,
    /// What is promised to waiting jobs.
    pub promises: OrdMap<JobId, Arc<Promise>>,
    /// Qualities of service.
    pub qos: OrdMap<QosId, Arc<Qos>>,
    /// Licences, by the number of their resource.
    pub licences: OrdMap<ResourceId, Arc<Licence>>,
    /// Reservations of nodes, those that are over among them.
    pub reservations: OrdMap<ReservationNo, Arc<Reservation>>,
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
    /// Numbers of accounts by name.
    pub account_names: OrdMap<String, AccountId>,
    /// What jobs use of the pools that something bounds; only where that is not nothing.
    pub pools: OrdMap<Scope, Use>,
    /// Unfinished jobs by user and name, where one of them waits to be alone.
    pub names: OrdMap<NameKey, OrdSet<JobId>>,
    /// Jobs of which something waits and that have a deadline, by the latest time at which they may start.
    pub deadlines: OrdSet<(Timestamp, JobId)>,
    /// What equal jobs share.
    pub alike: Alike,
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
        // Most ids are those of single jobs or of arrays; a search for the one before takes several times as long.
        if let Some(entry) = self.jobs.get(&id) {
            return Some((entry, 0));
        }
        let (first, entry) = self.jobs.get_prev(&id)?;
        let ordinal = (id.0 - first.0) as usize;
        (ordinal < entry.elements.len()).then_some((entry, ordinal))
    }

    /// The element with that id.
    pub fn element(&self, id: JobId) -> Option<(&Arc<JobEntry>, &Element)> {
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
        let id = *self.derived.account_names.get(name)?;
        self.accounts.get(&id).map(|account| (id, account))
    }

    /// The quality of service of that name.
    pub fn qos_by_name(&self, name: &str) -> Option<(QosId, &Arc<Qos>)> {
        self.qos.iter().find(|(_, q)| q.name == name).map(|(id, q)| (*id, q))
    }

    /// The licence of that name, and the number of its resource.
    pub fn licence_by_name(&self, name: &str) -> Option<(ResourceId, &Arc<Licence>)> {
        self.licences.iter().find(|(_, l)| l.name == name).map(|(id, l)| (*id, l))
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
        let Some(node) = self.nodes.get(&id) else { return Amounts::new() };
        let mut free = node.capacity();
        if let Some(held) = self.derived.held.get(&id) {
            free.sub(&held.amounts);
        }
        if !node.devices_out.is_empty() {
            free.set(ResourceId::GPU, free.get(ResourceId::GPU) - self.idle_out_of_service(node));
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
                if *element == Element::fresh(&entry.job) {
                    return None;
                }
                Row::Element(element.clone())
            }
            RowKey::Attempt(id) => Row::Attempt(self.attempts.get(id)?.clone()),
            RowKey::Ledger(key) => Row::Ledger(*self.ledger.get(key)?),
            RowKey::Uncharged(key) => Row::Uncharged(self.uncharged.get(key)?.clone()),
            RowKey::Policy(slot) => Row::Policy(self.policies.get(slot)?.clone()),
            RowKey::Token(digest) => Row::Token(self.tokens.get(digest)?.clone()),
            RowKey::Promise(id) => Row::Promise(self.promises.get(id)?.clone()),
            RowKey::Qos(id) => Row::Qos(self.qos.get(id)?.clone()),
            RowKey::Licence(id) => Row::Licence(self.licences.get(id)?.clone()),
            RowKey::Reservation(no) => Row::Reservation(self.reservations.get(no)?.clone()),
            RowKey::PastUse(id) => Row::PastUse(self.past_use.get(id)?.clone()),
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
            let touched = entry.elements.iter().enumerate().filter(|(_, e)| **e != fresh);
            keys.extend(touched.map(|(i, _)| RowKey::Element(JobId(id.0 + i as u64))));
        }
        keys.extend(self.attempts.keys().map(|id| RowKey::Attempt(*id)));
        keys.extend(self.ledger.keys().map(|key| RowKey::Ledger(*key)));
        keys.extend(self.uncharged.keys().map(|key| RowKey::Uncharged(*key)));
        keys.extend(self.policies.keys().map(|slot| RowKey::Policy(slot.clone())));
        keys.extend(self.tokens.keys().map(|digest| RowKey::Token(*digest)));
        keys.extend(self.promises.keys().map(|id| RowKey::Promise(*id)));
        keys.extend(self.qos.keys().map(|id| RowKey::Qos(*id)));
        keys.extend(self.licences.keys().map(|id| RowKey::Licence(*id)));
        keys.extend(self.reservations.keys().map(|no| RowKey::Reservation(*no)));
        keys.extend(self.past_use.keys().map(|id| RowKey::PastUse(*id)));
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
                (RowKey::Account(id), Row::Account(a)) => {
                    state.derived.account_names.insert(a.name.clone(), id);
                    state.accounts.insert(id, a);
                }
                (RowKey::User(id), Row::User(u)) => drop(state.users.insert(id, u)),
                (RowKey::Node(id), Row::Node(n)) => {
                    state.derived.node_names.insert(n.spec.name.clone(), id);
                    state.nodes.insert(id, n);
                }
                (RowKey::Job(_), Row::Job(mut job)) => {
                    if let Some(job) = Arc::get_mut(&mut job) {
                        state.derived.alike.share(&mut job.spec);
                    }
                    state.insert_job(job);
                }
                (RowKey::Element(id), Row::Element(element)) => elements.push((id, element)),
                (RowKey::Attempt(_), Row::Attempt(attempt)) => state.insert_attempt(attempt),
                (RowKey::Ledger(key), Row::Ledger(entry)) => drop(state.ledger.insert(key, entry)),
                (RowKey::Uncharged(key), Row::Uncharged(u)) => drop(state.uncharged.insert(key, u)),
                (RowKey::Policy(slot), Row::Policy(p)) => drop(state.policies.insert(slot, p)),
                (RowKey::Token(digest), Row::Token(t)) => drop(state.tokens.insert(digest, t)),
                (RowKey::Promise(id), Row::Promise(p)) => promises.push((id, p)),
                (RowKey::Qos(id), Row::Qos(q)) => drop(state.qos.insert(id, q)),
                (RowKey::Licence(id), Row::Licence(l)) => drop(state.licences.insert(id, l)),
                (RowKey::Reservation(no), Row::Reservation(r)) => drop(state.reservations.insert(no, r)),
                (RowKey::PastUse(id), Row::PastUse(past)) => drop(state.past_use.insert(id, past)),
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
        // Only now is everything there that says what is bounded.
        state.recount(|_| true);
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
        let id = job.id;
        self.jobs.insert(id, Arc::new(JobEntry { job, elements, unfinished: count, running: 0, pending: count }));
        self.note_deadline(id, true);
        self.refresh_name(id);
    }

    /// Puts a job in among those with a deadline, or takes it out.
    pub(crate) fn note_deadline(&mut self, first: JobId, put: bool) {
        let Some(entry) = self.jobs.get(&first) else { return };
        let Some(latest) = entry.job.spec.latest_start() else { return };
        match put && entry.pending > 0 {
            true => self.derived.deadlines.insert((latest, first)),
            false => self.derived.deadlines.remove(&(latest, first)),
        };
    }

    /// When the next waiting job can no longer end before its deadline: then [`crate::Command::Expire`] is due.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.derived.deadlines.get_min().map(|(latest, _)| *latest + Span(1))
    }

    /// Changes an element and keeps the counts true; false where it is not there.
    pub(crate) fn change_element(&mut self, id: JobId, change: impl FnOnce(&mut Element)) -> bool {
        let Some((entry, ordinal)) = self.find(id) else { return false };
        let first = entry.job.id;
        let Some(entry) = self.jobs.get_mut(&first).map(Arc::make_mut) else { return false };
        let Some(element) = entry.elements.get_mut(ordinal) else { return false };
        let (was, waited) = (element.state.is_final(), element.state == JobState::Pending);
        change(element);
        let (is, waits) = (element.state.is_final(), element.state == JobState::Pending);
        let mut turned = false;
        if waited != waits {
            let before = entry.pending;
            entry.pending = before.saturating_add_signed(if waits { 1 } else { -1 });
            turned = (before == 0) != (entry.pending == 0);
        }
        let mut over = false;
        if was != is {
            let step: i64 = if is { -1 } else { 1 };
            let before = entry.unfinished;
            entry.unfinished = before.saturating_add_signed(step as i32);
            over = (before == 0) != (entry.unfinished == 0);
            let uid = entry.job.spec.owner.uid;
            self.derived.unfinished = self.derived.unfinished.saturating_add_signed(step);
            self.derived.finished = self.derived.finished.saturating_add_signed(-step);
            let live = self.derived.live_by_user.entry(uid).or_default();
            *live = live.saturating_add_signed(step as i32);
            let job = entry.job.clone();
            self.count_submitted(&job, step);
        }
        if turned {
            self.note_deadline(first, true);
        }
        if over {
            self.refresh_name(first);
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
