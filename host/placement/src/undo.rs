//! Savepoints: taking planned changes back, exactly.

use crate::cluster::Cluster;
use crate::start::{Reservation, ReservationId};
use ephor_model::id::JobId;
use ephor_model::time::Timestamp;

/// A savepoint. Valid until the cluster is taken back to an earlier one or the undo log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(pub u32);

/// One planned change, with what it takes to undo it.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Started(JobId),
    /// A running job was counted on to end then.
    Retimed(JobId, Timestamp),
    Reserved(ReservationId),
    Lifted(ReservationId, Reservation),
}

impl Cluster {
    /// Marks the state as it is.
    pub fn savepoint(&mut self) -> Mark {
        Mark(self.undo.len() as u32)
    }

    /// Takes back everything planned since the mark: the state is then the one at the mark.
    ///
    /// Facts that came since (and the time) stay. A planned start that has become a fact stays with it.
    pub fn rollback(&mut self, mark: Mark) {
        while self.undo.len() > mark.0 as usize {
            match self.undo.pop() {
                Some(Change::Started(job)) => {
                    if self.running.get(&job).is_some_and(|r| r.planned) {
                        self.remove_running(job);
                    }
                }
                Some(Change::Retimed(job, until)) => self.extend(job, until),
                Some(Change::Reserved(id)) => {
                    self.remove_reservation(id);
                    // A promise that became a fact since keeps its number.
                    if self.next_reservation == id.0 + 1 {
                        self.next_reservation = id.0;
                    }
                }
                Some(Change::Lifted(id, reservation)) => self.add_reservation(id, reservation),
                None => return,
            }
        }
    }

    /// The plan is handed over: what was planned stays, and there is nothing to go back to.
    pub fn forget_undo(&mut self) {
        for change in std::mem::take(&mut self.undo) {
            if let Change::Started(job) = change
                && let Some(running) = self.running.get_mut(&job)
            {
                running.planned = false;
            }
        }
    }
}
