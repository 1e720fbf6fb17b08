//! The scheduler's own copy of what matters for placement: free capacity, and pending jobs in order.
//!
//! Fed by the same events as the state, so that submits and queries never wait for a cycle.

mod chunks;
mod promises;
mod waiting;

pub use promises::{Kept, Promises};

use crate::event::{Event, Stamped};
use crate::eviction::STUCK;
use crate::pools::Who;
use crate::promise::LiftCause;
use crate::records::{Job, NodeHealth};
use crate::roles::{PriorityBatch, PriorityRow};
use crate::state::State;
use chunks::Chunks;
use ephor_model::{
    Allocation, AllocationPart, JobId, JobState, NodeId, QueueId, ReservationNo, ResourceId, Span, Timestamp,
};
use ephor_placement::{ClassId, Cluster, Need, NodeView, ReservationId, Work};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use waiting::Waiting;

/// Place of a pending job in the order: rank of its queue, then priority, then submission, then id.
pub type Rank = (Reverse<i64>, Reverse<i64>, Timestamp, JobId);

/// What the scheduler keeps of a pending job.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Its place.
    pub rank: Rank,
    /// Its class.
    pub class: ClassId,
    /// How long it may run.
    pub limit: Span,
    /// When it may start at the earliest.
    pub eligible: Timestamp,
    /// Its queue.
    pub queue: QueueId,
    /// First id of its array, and how many of its elements may run at once.
    pub throttle: Option<(JobId, u32)>,
    /// What decides which limits bind it.
    pub who: Who,
    /// Whether it takes licences.
    pub licensed: bool,
    /// The reservation that it runs in, and nowhere else.
    pub inside: Option<ReservationNo>,
}

impl Pending {
    /// The class as the order has it. A job inside a reservation is of none: that others of its class have no room
    /// says nothing of it.
    fn class_in_order(&self) -> ClassId {
        self.inside.map_or(self.class, |_| ClassId(u32::MAX))
    }
}

/// What decides whether a job is worth a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its class, as the order has it.
    pub class: ClassId,
    /// Whose limits bind it.
    pub whose: Whose,
    /// How long it may run.
    pub limit: Span,
}

/// Stands for a [`Who`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Whose(u32);

impl Whose {
    /// Of a job that takes licences or runs in a reservation: others like it may take other ones.
    pub const OWN: Self = Self(u32::MAX);
}

/// See the module.
#[derive(Debug, Default)]
pub struct Replica {
    /// Free capacity now and later.
    pub cluster: Cluster,
    pending: Chunks<JobId, Pending>,
    order: Chunks<Rank, Kind>,
    /// Those of `order` that came since the last accepted cycle.
    arrived: Chunks<Rank, Kind>,
    /// Numbers of those whose jobs wait or waited.
    whose: BTreeMap<Who, Whose>,
    /// How many of each class are in `order`, and in `arrived`.
    waiting: Waiting,
    /// For each class that was refused for want of capacity, why; until something comes free that could help it.
    parked: Vec<Option<Arc<str>>>,
    /// Nodes on which something came free since parked classes were looked at.
    freed: BTreeSet<NodeId>,
    /// Jobs whose begin time lies ahead.
    timed: BTreeSet<(Timestamp, JobId)>,
    /// Attempts that were told to end, by job, and when what they hold comes free at the latest.
    releasing: BTreeMap<JobId, Timestamp>,
    /// What keeps the nodes of each reservation free.
    set_aside: BTreeMap<ReservationNo, ReservationId>,
    /// When reservations will be over.
    ends: BTreeSet<Timestamp>,
    /// Pending jobs that no priority policy has seen as they are.
    unranked: Chunks<JobId, ()>,
    pub(crate) promises: Promises,
}

impl Replica {
    /// A copy of that state.
    pub fn of(state: &State) -> Self {
        let mut replica = Self::default();
        for id in state.nodes.keys() {
            replica.refresh_node(*id, state);
        }
        for no in state.reservations.keys() {
            replica.refresh_reservation(*no, state);
        }
        for attempt in state.attempts.values() {
            replica.cluster.occupy(attempt.key.job, &attempt.allocation, attempt.release());
            if attempt.told_to_end().is_some() {
                replica.releasing.insert(attempt.key.job, attempt.release());
            }
        }
        for (first, entry) in state.jobs.iter().filter(|(_, e)| e.unfinished > 0) {
            for ordinal in 0..entry.elements.len() as u64 {
                replica.refresh_job(JobId(first.0 + ordinal), state);
            }
        }
        state.promises.keys().for_each(|job| replica.refresh_promise(*job, state));
        replica.find_orphans();
        replica
    }

    /// Takes note of an event; `state` is the state after the batch that the event belongs to.
    pub fn observe(&mut self, stamped: &Stamped, state: &State) {
        match &stamped.event {
            Event::Submitted { job } => self.refresh_all(job.id, u64::from(job.spec.count()), state),
            Event::DependencyDecided { job, .. } => {
                let count = state.jobs.get(job).map_or(0, |e| e.elements.len() as u64);
                self.refresh_all(*job, count, state);
            }
            Event::HoldSet { job, .. }
            | Event::CancelledPending { job, .. }
            | Event::Requeued { job }
            | Event::DeadlinePassed { job }
            | Event::ElementDecided { job, .. } => {
                self.refresh_job(*job, state);
                self.refresh_promise(*job, state);
            }
            Event::Modified { job, .. } => {
                let count = state.jobs.get(job).map_or(0, |e| e.elements.len() as u64);
                self.refresh_all(*job, count, state);
                for attempt in (0..count).filter_map(|i| state.attempts.get(&JobId(job.0 + i))) {
                    self.cluster.extend(attempt.key.job, attempt.release());
                }
            }
            Event::EndOrdered { key, .. } | Event::Evicted { key, .. } => {
                if let Some(attempt) = state.attempts.get(&key.job).filter(|a| a.key == *key) {
                    self.releasing.insert(key.job, attempt.release());
                    self.cluster.extend(key.job, attempt.release());
                }
                self.refresh_promise(key.job, state);
            }
            Event::Promised { job, .. } | Event::PromiseLifted { job, .. } => self.refresh_promise(*job, state),
            Event::Started { key, allocation, expected_end } => {
                self.forget(key.job);
                self.refresh_promise(key.job, state);
                self.cluster.occupy(key.job, allocation, *expected_end);
            }
            Event::Ended { key, .. } => {
                self.freed.extend(self.cluster.nodes_of(key.job));
                self.cluster.vacate(key.job);
                self.releasing.remove(&key.job);
                self.refresh_job(key.job, state);
                self.refresh_promise(key.job, state);
            }
            Event::NodeRegistered { node, .. }
            | Event::NodeDown { node, .. }
            | Event::NodeDrained { node, .. }
            | Event::NodeResumed { node }
            | Event::DeviceTaken { node, .. }
            | Event::DeviceReturned { node, .. }
            | Event::NodeSet { node, .. }
            | Event::NodeDeleted { node } => self.refresh_node(*node, state),
            Event::ReservationSet { reservation, .. } | Event::ReservationDeleted { reservation } => {
                self.refresh_reservation(*reservation, state);
                let name = state.reservations.get(reservation).map(|r| r.name.clone());
                let asks = |entry: &&std::sync::Arc<crate::records::JobEntry>| {
                    entry.unfinished > 0 && name.is_some() && entry.job.spec.reservation == name
                };
                let theirs: Vec<(JobId, u64)> =
                    state.jobs.values().filter(asks).map(|e| (e.job.id, e.elements.len() as u64)).collect();
                theirs.into_iter().for_each(|(first, count)| self.refresh_all(first, count, state));
            }
            Event::QueueSet { queue, .. } | Event::QueueDeleted { queue } => {
                let theirs: Vec<(JobId, u64)> = state
                    .jobs
                    .iter()
                    .filter(|(_, e)| e.job.queue == *queue && e.unfinished > 0)
                    .map(|(id, e)| (*id, e.elements.len() as u64))
                    .collect();
                theirs.into_iter().for_each(|(first, count)| self.refresh_all(first, count, state));
                self.find_orphans();
            }
            _ => {}
        }
    }

    /// Whether such an event can let a job start: only these are worth a cycle.
    pub fn helps(event: &Event) -> bool {
        !matches!(
            event,
            Event::Promised { .. }
                | Event::PromiseLifted { why: LiftCause::Policy | LiftCause::Expired, .. }
                | Event::Began { .. }
                | Event::EndOrdered { .. }
                | Event::Evicted { .. }
                | Event::Started { .. }
                | Event::Charged { .. }
                | Event::Faded { .. }
                | Event::FadingSet { .. }
                | Event::TokenIssued { .. }
                | Event::TokenClosed { .. }
                | Event::Forgotten { .. }
                | Event::NodeDown { .. }
                | Event::NodeDrained { .. }
                | Event::DeviceTaken { .. }
                | Event::LostSet { .. }
        )
    }

    /// Why a class is parked; `None`: it is worth a look.
    pub fn parked(&self, class: ClassId) -> Option<&Arc<str>> {
        self.parked.get(class.0 as usize)?.as_ref()
    }

    /// A class has no room beside what runs.
    pub fn park(&mut self, class: ClassId, why: Arc<str>) {
        let at = class.0 as usize;
        if at >= self.parked.len() {
            self.parked.resize(at + 1, None);
        }
        self.parked[at] = Some(why);
    }

    /// A class is worth a look again.
    pub fn unpark(&mut self, class: ClassId) {
        if let Some(parked) = self.parked.get_mut(class.0 as usize) {
            *parked = None;
        }
    }

    /// Every class is worth a look again.
    pub fn unpark_all(&mut self) {
        self.parked.clear();
        self.freed.clear();
    }

    /// Unparks the classes that have room again, with what came free since the last time.
    pub fn unpark_helped(&mut self, work: &mut Work) {
        let freed = std::mem::take(&mut self.freed);
        if freed.is_empty() {
            return;
        }
        for (i, parked) in self.parked.iter_mut().enumerate().filter(|(_, parked)| parked.is_some()) {
            let class = ClassId(i as u32);
            let helped = freed.iter().any(|node| self.cluster.may_help(class, *node));
            // Where the work ends before the answer, a look costs less than a job that is forgotten.
            if helped && self.cluster.has_room_now(class, work).unwrap_or(true) {
                *parked = None;
            }
        }
    }

    fn refresh_node(&mut self, id: NodeId, state: &State) {
        self.unpark_all();
        self.offer_node(id, state);
        // A reservation keeps what its nodes have now.
        let theirs: Vec<ReservationNo> =
            state.reservations.iter().filter(|(_, r)| r.has(id)).map(|(no, _)| *no).collect();
        theirs.into_iter().for_each(|no| self.refresh_reservation(no, state));
    }

    fn offer_node(&mut self, id: NodeId, state: &State) {
        match state.nodes.get(&id) {
            None => self.cluster.remove_node(id),
            Some(node) => self.cluster.set_node(
                id,
                NodeView {
                    name: node.spec.name.clone(),
                    capacity: node.capacity(),
                    features: node.features(),
                    devices: node.spec.devices.iter().map(|d| d.kind.clone()).collect(),
                    out: node.out_of_service(),
                    up: node.health == NodeHealth::Up && node.drain.is_none(),
                },
            ),
        }
    }

    /// Keeps the nodes of a reservation free for its time, as they are now.
    fn refresh_reservation(&mut self, no: ReservationNo, state: &State) {
        self.unpark_all();
        if let Some(old) = self.set_aside.remove(&no) {
            self.cluster.withdraw(old);
        }
        if let Some(reservation) = state.reservations.get(&no).filter(|r| r.end > state.meta.now) {
            let whole = Arc::new(whole_nodes(state, &reservation.nodes));
            self.set_aside.insert(no, self.cluster.promise(&whole, reservation.start, reservation.end));
            self.ends.insert(reservation.end);
        }
    }

    /// What keeps the nodes of each reservation free.
    pub fn set_aside(&self) -> &BTreeMap<ReservationNo, ReservationId> {
        &self.set_aside
    }

    fn refresh_all(&mut self, first: JobId, count: u64, state: &State) {
        (0..count).for_each(|i| self.refresh_job(JobId(first.0 + i), state));
    }

    fn refresh_job(&mut self, id: JobId, state: &State) {
        self.forget(id);
        let Some((entry, element)) = state.element(id) else { return };
        let (JobState::Pending, Some(eligible)) = (element.state, element.eligible) else { return };
        let Some(queue) = state.queues.get(&entry.job.queue).filter(|q| q.state.starts()) else { return };
        let job = &entry.job;
        let reservation = match &job.spec.reservation {
            None => None,
            Some(name) => match state.reservation_by_name(name) {
                None => return,
                found => found,
            },
        };
        let Some(class) = self.class_of(job, state) else { return };
        let pending = Pending {
            rank: (Reverse(queue.priority), Reverse(0), job.submitted, id),
            class,
            limit: job.spec.time_limit.unwrap_or(Span(i64::MAX)),
            eligible,
            queue: job.queue,
            throttle: job.spec.array.as_ref().and_then(|a| a.throttle).map(|most| (job.id, most)),
            who: Who::of(job),
            licensed: !job.licences.is_empty(),
            inside: reservation.map(|(no, _)| no),
        };
        let from = reservation.map_or(eligible, |(_, r)| r.start.max(eligible));
        if from <= state.meta.now {
            self.let_in(&pending);
        } else {
            self.timed.insert((from, id));
        }
        self.pending.insert(id, pending);
        self.unranked.insert(id, ());
    }

    fn forget(&mut self, id: JobId) {
        if let Some(pending) = self.pending.remove(&id) {
            let (eligible, new) = (self.order.remove(&pending.rank), self.arrived.remove(&pending.rank));
            self.waiting.remove(&pending, eligible.is_some(), new.is_some());
            self.unranked.remove(&id);
            self.timed.remove(&(pending.eligible, id));
        }
    }

    /// Lets in the jobs whose begin time has come.
    pub fn advance(&mut self, now: Timestamp) {
        self.find_stuck(now);
        if self.cluster.advance(now) {
            self.unpark_all();
        }
        while self.is_released_by(now) {
            self.ends.pop_first();
        }
        self.promises.advance(now);
        while let Some((at, id)) = self.timed.first().copied() {
            if at > now {
                break;
            }
            self.timed.pop_first();
            if let Some(pending) = self.pending.get(&id).cloned() {
                self.let_in(&pending);
            }
        }
    }

    /// Who was told to end and did not is no longer counted on.
    fn find_stuck(&mut self, now: Timestamp) {
        let stuck = |(_, release): &(&JobId, &mut Timestamp)| **release < Timestamp::NEVER && **release + STUCK <= now;
        for (job, release) in self.releasing.iter_mut().filter(stuck) {
            *release = Timestamp::NEVER;
            self.cluster.extend(*job, Timestamp::NEVER);
        }
    }

    /// Attempts that were told to end, by job, and when what they hold comes free at the latest; far off for those that
    /// are stuck.
    pub fn releasing(&self) -> &BTreeMap<JobId, Timestamp> {
        &self.releasing
    }

    /// The class of a job that does not wait now.
    pub(crate) fn class_of(&mut self, job: &Job, state: &State) -> Option<ClassId> {
        let node_features = state.queues.get(&job.queue)?.node_features.clone();
        Some(self.cluster.intern(&Need { request: job.spec.request.clone(), queue_features: node_features }))
    }

    /// A job may start from now on.
    fn let_in(&mut self, pending: &Pending) {
        let next = Whose(self.whose.len() as u32);
        self.whose.entry(pending.who).or_insert(next);
        let kind = self.kind_of(pending);
        let (known, new) = (self.order.insert(pending.rank, kind), self.arrived.insert(pending.rank, kind));
        self.waiting.add(pending, known.is_none(), new.is_none());
    }

    /// The kind of a pending job.
    pub(crate) fn kind_of(&self, pending: &Pending) -> Kind {
        let alone = pending.licensed || pending.inside.is_some();
        let whose = if alone { None } else { self.whose.get(&pending.who) };
        Kind { class: pending.class_in_order(), whose: whose.copied().unwrap_or(Whose::OWN), limit: pending.limit }
    }

    /// Whether a job became eligible since the last accepted cycle.
    pub(crate) fn has_arrived(&self, rank: &Rank) -> bool {
        self.arrived.get(rank).is_some()
    }

    /// A cycle was accepted: from now on others count as having arrived.
    pub fn settle_arrivals(&mut self) {
        self.arrived.clear();
        self.waiting.settle();
    }

    /// When the next job's begin time comes, the time of a promise, or the end of a reservation of nodes.
    pub fn next_time(&self) -> Option<Timestamp> {
        let times = self.timed.first().map(|(at, _)| *at).into_iter();
        times.chain(self.promises.next_time()).chain(self.ends.first().copied()).min()
    }

    /// Whether a reservation is over by then that was not when the time was told last.
    pub fn is_released_by(&self, now: Timestamp) -> bool {
        self.ends.first().is_some_and(|end| *end <= now)
    }

    /// What is promised.
    pub fn promises(&self) -> &Promises {
        &self.promises
    }

    /// A pending job.
    pub fn pending(&self, id: JobId) -> Option<&Pending> {
        self.pending.get(&id)
    }

    /// How many jobs could start if there were room.
    pub fn eligible_count(&self) -> usize {
        self.order.len()
    }

    /// The eligible jobs in order, behind that one.
    pub fn order_after(&self, after: Option<Rank>) -> impl Iterator<Item = (&Rank, &Kind)> {
        self.order.after(after)
    }

    /// Those of them that became eligible since the last accepted cycle, in order, behind that one.
    pub fn arrived_after(&self, after: Option<Rank>) -> impl Iterator<Item = (&Rank, &Kind)> {
        self.arrived.after(after)
    }

    /// The rows for a priority call: all pending jobs, or those that have no priority yet.
    pub fn priority_batch(&self, state: &State, now: Timestamp, all: bool) -> PriorityBatch {
        let ids: Vec<JobId> = match all {
            true => self.pending.keys().copied().collect(),
            false => self.unranked.keys().copied().collect(),
        };
        let rows = ids.into_iter().filter_map(|id| priority_row(state, id)).collect();
        PriorityBatch { now, rows, totals: totals(state) }
    }

    /// Takes the answer of a priority call.
    pub fn set_priorities(&mut self, values: impl IntoIterator<Item = (JobId, i64)>) {
        for (id, value) in values {
            let Some(pending) = self.pending.get_mut(&id) else { continue };
            let old = std::mem::replace(&mut pending.rank.1, Reverse(value));
            let old_rank = (pending.rank.0, old, pending.rank.2, pending.rank.3);
            for order in [&mut self.order, &mut self.arrived] {
                if let Some(kind) = order.remove(&old_rank) {
                    order.insert(pending.rank, kind);
                }
            }
            self.unranked.remove(&id);
        }
    }

    /// The priority of a pending job; 0 where no policy said anything.
    pub fn priority(&self, id: JobId) -> i64 {
        self.pending.get(&id).map_or(0, |p| p.rank.1.0)
    }
}

/// Everything that these nodes have.
pub fn whole_nodes(state: &State, nodes: &[NodeId]) -> Allocation {
    let part = |id: &NodeId| {
        let node = state.nodes.get(id)?;
        let devices = (0..node.spec.devices.len() as u32).collect();
        Some(AllocationPart { node: *id, tasks: 1, amounts: node.capacity(), devices })
    };
    Allocation { parts: nodes.iter().filter_map(part).collect() }
}

/// One row of a priority batch.
pub fn priority_row(state: &State, id: JobId) -> Option<PriorityRow> {
    let (entry, element) = state.element(id)?;
    let job: &Job = &entry.job;
    let total = job.spec.request.total();
    let user = job.spec.owner.uid;
    Some(PriorityRow {
        job: id,
        submitted: job.submitted,
        eligible: element.eligible.unwrap_or(job.submitted),
        queue: job.queue,
        account: job.account,
        user,
        nice: job.spec.nice,
        cpus: total.get(ResourceId::CPU),
        mem: total.get(ResourceId::MEM),
        gpus: total.get(ResourceId::GPU),
        nodes: i64::from(job.spec.request.nodes_min),
        time_limit: job.spec.time_limit.map_or(i64::MAX, |t| t.0),
        requeues: i64::from(element.attempts),
        queue_priority: state.queues.get(&job.queue).map_or(0, |q| q.priority),
        usage: state.ledger.get(&(job.account, user)).map_or(0, |l| l.decayed),
    })
}

/// The totals that priorities compare with.
pub fn totals(state: &State) -> Vec<(&'static str, i64)> {
    let mut capacity = ephor_model::Amounts::new();
    state.nodes.values().for_each(|n| capacity.add(&n.capacity()));
    vec![
        ("cpus", capacity.get(ResourceId::CPU)),
        ("mem", capacity.get(ResourceId::MEM)),
        ("gpus", capacity.get(ResourceId::GPU)),
        ("nodes", state.nodes.len() as i64),
        ("max-queue-priority", state.queues.values().map(|q| q.priority).max().unwrap_or(0)),
        ("usage", state.ledger.values().map(|l| l.decayed).fold(0, i64::saturating_add)),
    ]
}
