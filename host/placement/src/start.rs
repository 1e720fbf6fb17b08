//! Starting jobs and keeping capacity for later: the planning operations that hold something.

use crate::cluster::Cluster;
use crate::need::ClassId;
use crate::node::Holder;
use crate::placing::Placing;
use crate::profile::BEGINNING;
use crate::shape::WHOLE_GPU;
use crate::share::{self, NO_DEVICE, Sharer, Wish};
use crate::undo::Change;
use crate::work::{NoFit, Work};
use ephor_model::allocation::Allocation;
use ephor_model::id::JobId;
use ephor_model::time::{Span, Timestamp};
use smallvec::SmallVec;
use std::sync::Arc;

/// Number of a reservation, for as long as it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReservationId(pub u64);

/// Where and when a job could run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// When it could start.
    pub start: Timestamp,
    /// What it would take. Of GPUs only the number of each kind is meant: which of them is decided at the start.
    pub allocation: Arc<Allocation>,
    /// How long it would keep it.
    pub duration: Span,
    /// The class that it was found for.
    pub class: ClassId,
}

/// What a job holds.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub allocation: Arc<Allocation>,
    /// Expected end as told.
    pub until: Timestamp,
    /// Expected end as counted: later than `until` where that is over.
    pub ends: Timestamp,
    /// Started by the plan in the making, not yet a fact.
    pub planned: bool,
}

/// What is kept for later.
#[derive(Clone, Debug)]
pub(crate) struct Reservation {
    pub allocation: Arc<Allocation>,
    pub start: Timestamp,
    pub until: Timestamp,
    /// Of one that was lifted: with whom each of its parts of GPUs was shared.
    pub groups: SmallVec<[u32; 1]>,
}

/// The end of something that takes `limit`, at least a millisecond.
pub(crate) fn end_of(start: Timestamp, limit: Span) -> Timestamp {
    start + Span(limit.0.max(1))
}

impl Cluster {
    /// Starts a job now if it fits, from now to its limit, beside everything that runs or is reserved.
    ///
    /// Tells the cluster the time, as [`Cluster::advance`] does.
    ///
    /// # Errors
    /// It does not fit; then nothing is held.
    #[allow(clippy::too_many_arguments, reason = "one operation of the contract, each of its operands named")]
    pub fn try_start(
        &mut self,
        job: JobId,
        class: ClassId,
        now: Timestamp,
        limit: Span,
        how: &Placing,
        work: &mut Work,
    ) -> Result<Arc<Allocation>, NoFit> {
        work.take(1)?;
        self.advance(now);
        if self.is_running(job) {
            return Err(NoFit::NotNow(format!("job {job} is already running").into()));
        }
        let until = end_of(now, limit);
        let among = self.candidates(class, how)?;
        match self.place(class, among.as_among(), now, until, how, work)? {
            Ok(allocation) => {
                let allocation = Arc::new(allocation);
                self.add_running(job, Arc::clone(&allocation), until, true);
                self.undo.push(Change::Started(job));
                Ok(allocation)
            }
            Err(lack) => Err(self.refusal(class, how, lack.room)),
        }
    }

    /// Keeps a slot free. It is not looked at again whether it still is: ask [`Cluster::is_free`] where something was
    /// placed since it was found.
    pub fn reserve(&mut self, slot: &Slot) -> ReservationId {
        let id = self.new_reservation();
        let until = end_of(slot.start, slot.duration);
        let allocation = Arc::clone(&slot.allocation);
        self.add_reservation(id, Reservation { allocation, start: slot.start, until, groups: SmallVec::new() });
        self.undo.push(Change::Reserved(id));
        id
    }

    /// Gives a reservation up; false where there is none of that number.
    pub fn lift(&mut self, id: ReservationId) -> bool {
        let Some(reservation) = self.remove_reservation(id) else { return false };
        self.undo.push(Change::Lifted(id, reservation));
        true
    }

    /// A running job is to end at another time, as far as the plan in the making goes. One that is not known is ignored.
    pub fn retime(&mut self, job: JobId, until: Timestamp) {
        let Some(before) = self.expected_end(job) else { return };
        self.undo.push(Change::Retimed(job, before));
        self.extend(job, until);
    }

    /// Whether nodes that are up have that free now, as far as amounts go: single devices may be in the way yet.
    pub fn holds_now(&self, allocation: &Allocation) -> bool {
        allocation.parts.iter().all(|part| {
            let Some(node) = self.nodes.get(part.node.0 as usize).filter(|n| n.is_up()) else { return false };
            let asked = self.shapes[node.shape.0 as usize].level_of(part);
            let free = node.profile.at(self.now);
            let shared = part.share().is_some();
            asked.iter().zip(free).all(|(asked, free)| *asked <= 0 || asked <= free || shared)
        })
    }

    /// Whether everything that a slot takes is still free for its whole time, and its nodes are up.
    pub fn is_free(&self, slot: &Slot) -> bool {
        let until = end_of(slot.start, slot.duration);
        slot.allocation.parts.iter().all(|part| {
            let Some(node) = self.nodes.get(part.node.0 as usize).filter(|n| n.is_up()) else { return false };
            let shape = &self.shapes[node.shape.0 as usize];
            let asked = shape.level_of(part);
            let lowest = node.profile.lowest(slot.start, until);
            let shared = || match (part.share(), part.devices.first().and_then(|d| shape.device_column(*d as usize))) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(milli), Some(column)) => {
                    let wish = Wish { milli, columns: &[column], start: slot.start, until, now: self.now };
                    lowest[column] >= WHOLE_GPU || node.shared_gpu(shape, &wish).is_some()
                }
            };
            asked.iter().zip(&lowest).all(|(asked, free)| *asked <= 0 || asked <= free) && shared()
        })
    }

    /// Writes down what a job holds. It must not hold anything yet.
    pub(crate) fn add_running(&mut self, job: JobId, allocation: Arc<Allocation>, until: Timestamp, planned: bool) {
        let ends = until.max(self.now + Span(1));
        for part in &allocation.parts {
            let (node, shape) = self.node_mut(part.node);
            node.profile.hold(BEGINNING, ends, &shape.level_of(part));
            if let Some(milli) = part.share() {
                node.add_sharer(shape, share::running(Holder::Job(job), part.devices[0], milli, ends));
            }
            node.add_holder(Holder::Job(job));
            node.take_devices(&part.devices, false);
            self.reindex(part.node);
        }
        if ends < Timestamp::NEVER {
            self.ends.insert((ends, job), Arc::clone(&allocation));
        }
        self.running.insert(job, Running { allocation, until, ends, planned });
    }

    /// Strikes out what a job holds.
    pub(crate) fn remove_running(&mut self, job: JobId) {
        let Some(running) = self.running.remove(&job) else { return };
        for part in &running.allocation.parts {
            let (node, shape) = self.node_mut(part.node);
            node.profile.release(BEGINNING, running.ends, &shape.level_of(part));
            node.remove_sharer(shape, Holder::Job(job));
            node.remove_holder(Holder::Job(job));
            node.take_devices(&part.devices, true);
            self.reindex(part.node);
        }
        self.ends.remove(&(running.ends, job));
    }

    /// A number that no reservation has.
    pub(crate) fn new_reservation(&mut self) -> ReservationId {
        let id = ReservationId(self.next_reservation);
        self.next_reservation += 1;
        id
    }

    /// Writes a reservation down.
    pub(crate) fn add_reservation(&mut self, id: ReservationId, mut reservation: Reservation) {
        let mut groups = std::mem::take(&mut reservation.groups).into_iter();
        let (from, until, now) = (reservation.start, reservation.until, self.now);
        for part in &reservation.allocation.parts {
            let (node, shape) = self.node_mut(part.node);
            node.profile.hold(from, until, &shape.level_of(part));
            if let (Some(milli), Some(&device)) = (part.share(), part.devices.first()) {
                let columns: SmallVec<[usize; 1]> = shape.device_column(device as usize).into_iter().collect();
                let wish = Wish { milli, columns: &columns, start: from, until, now };
                let group = match groups.next() {
                    Some(group) if group >= NO_DEVICE || node.runs(group) => group,
                    _ => node.shared_gpu(shape, &wish).map_or_else(|| node.fresh_group(), |(group, _)| group),
                };
                node.add_sharer(shape, Sharer { holder: Holder::Reservation(id), group, device, milli, from, until });
            }
            node.add_holder(Holder::Reservation(id));
            self.reindex(part.node);
        }
        for at in [reservation.start, reservation.until] {
            if at > self.now && at < Timestamp::NEVER {
                self.turns.insert((at, id), Arc::clone(&reservation.allocation));
            }
        }
        self.reservations.insert(id, reservation);
    }

    /// Strikes a reservation out.
    pub(crate) fn remove_reservation(&mut self, id: ReservationId) -> Option<Reservation> {
        let mut reservation = self.reservations.remove(&id)?;
        for part in &reservation.allocation.parts {
            let (node, shape) = self.node_mut(part.node);
            node.profile.release(reservation.start, reservation.until, &shape.level_of(part));
            reservation.groups.extend(node.remove_sharer(shape, Holder::Reservation(id)));
            node.remove_holder(Holder::Reservation(id));
            self.reindex(part.node);
        }
        self.turns.remove(&(reservation.start, id));
        self.turns.remove(&(reservation.until, id));
        Some(reservation)
    }
}
