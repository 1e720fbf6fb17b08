//! Reservations that outlive a plan: facts like running jobs, so that no savepoint takes them back; and the start of a
//! job on a slot that was found for it.

use crate::cluster::Cluster;
use crate::start::{Reservation, ReservationId, Slot, end_of};
use crate::undo::Change;
use ephor_model::allocation::Allocation;
use ephor_model::id::JobId;
use ephor_model::time::Timestamp;
use smallvec::SmallVec;
use std::sync::Arc;

impl Cluster {
    /// That is kept free from `start` until `until`, from now on and whatever is rolled back. A fact: it is not looked
    /// at whether it is free.
    pub fn promise(&mut self, allocation: &Arc<Allocation>, start: Timestamp, until: Timestamp) -> ReservationId {
        let id = self.new_reservation();
        self.add_reservation(
            id,
            Reservation { allocation: Arc::clone(allocation), start, until, groups: SmallVec::new() },
        );
        id
    }

    /// A fact: that reservation is over. One that is not known is ignored.
    pub fn withdraw(&mut self, id: ReservationId) {
        self.remove_reservation(id);
    }

    /// Starts a job on a slot that begins now. It is not looked at again whether the slot is free: ask
    /// [`Cluster::is_free`] where something was placed since it was found. The job must not hold anything yet.
    pub fn start_in(&mut self, job: JobId, slot: &Slot) {
        let until = end_of(slot.start, slot.duration);
        self.add_running(job, Arc::clone(&slot.allocation), until, true);
        self.undo.push(Change::Started(job));
    }
}
