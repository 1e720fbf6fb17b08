//! Savepoints of a cycle: undone exactly, or closed as one group of the plan.

use super::promises::{Held, Numbered};
use super::{Cycle, CycleRefusal, SAVEPOINTS};
use crate::cycle::Note;
use crate::eviction::Eviction;
use crate::pools::BookMark;
use ephor_model::{JobId, ReservationNo, Timestamp};
use ephor_placement::{Mark, ReservationId};
use imbl::{OrdMap, Vector};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a cycle was at a savepoint.
pub(super) struct Savepoint {
    id: u32,
    mark: Mark,
    planned: usize,
    reservations: Vector<Numbered>,
    numbers: OrdMap<JobId, u32>,
    promised: OrdMap<JobId, Option<Held>>,
    gone: BTreeSet<JobId>,
    started_of: BTreeMap<JobId, u32>,
    notes: BTreeMap<JobId, Note>,
    drawn: BookMark,
    evicted: OrdMap<JobId, (Timestamp, Arc<Eviction>)>,
    set_aside: BTreeMap<ReservationNo, ReservationId>,
}

impl Cycle {
    /// Opens a savepoint. Beyond [`SAVEPOINTS`] open ones, the newest one's number is returned again.
    pub fn savepoint(&mut self) -> u32 {
        if self.savepoints.len() >= SAVEPOINTS {
            return self.next_savepoint - 1;
        }
        // Numbers that the policy learns after this must mean the same after a rollback.
        self.list_promises();
        let id = self.next_savepoint;
        self.next_savepoint += 1;
        let mark = self.replica.cluster.savepoint();
        self.savepoints.push(Savepoint {
            id,
            mark,
            planned: self.planned.len(),
            reservations: self.reservations.clone(),
            numbers: self.numbers.clone(),
            promised: self.promised.clone(),
            gone: self.gone.clone(),
            started_of: self.started_of.clone(),
            notes: self.notes.clone(),
            drawn: self.book.mark(),
            evicted: self.evicted.clone(),
            set_aside: self.set_aside.clone(),
        });
        id
    }

    /// Undoes everything since that savepoint.
    ///
    /// # Errors
    /// It is not open.
    pub fn rollback(&mut self, id: u32) -> Result<(), CycleRefusal> {
        let at = self.position(id)?;
        self.savepoints.truncate(at + 1);
        let Some(saved) = self.savepoints.pop() else { return Ok(()) };
        self.replica.cluster.rollback(saved.mark);
        self.planned.truncate(saved.planned);
        self.reservations = saved.reservations;
        self.numbers = saved.numbers;
        self.promised = saved.promised;
        self.gone = saved.gone;
        self.started_of = saved.started_of;
        self.notes = saved.notes;
        self.book.put_back(saved.drawn);
        self.evicted = saved.evicted;
        self.set_aside = saved.set_aside;
        self.unpark();
        Ok(())
    }

    /// Closes a savepoint: everything since it is one group.
    ///
    /// # Errors
    /// It is not open.
    pub fn accept(&mut self, id: u32) -> Result<(), CycleRefusal> {
        let at = self.position(id)?;
        let first = self.savepoints[at].planned;
        self.savepoints.truncate(at);
        let group = self.next_group;
        self.next_group += 1;
        for planned in self.planned.iter_mut().skip(first) {
            planned.group = group;
        }
        Ok(())
    }

    fn position(&self, id: u32) -> Result<usize, CycleRefusal> {
        let unknown = || CycleRefusal::Other(format!("savepoint {id} is not open"));
        self.savepoints.iter().position(|s| s.id == id).ok_or_else(unknown)
    }
}
