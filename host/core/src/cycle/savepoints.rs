//! Savepoints of a cycle: undone exactly, or closed as one group of the plan.

use super::{Cycle, CycleRefusal, SAVEPOINTS};
use crate::cycle::Note;
use ephor_model::JobId;
use ephor_placement::Mark;
use std::collections::{BTreeMap, BTreeSet};

/// What a cycle was at a savepoint.
pub(super) struct Savepoint {
    id: u32,
    mark: Mark,
    starts: usize,
    reservations: Vec<bool>,
    gone: BTreeSet<JobId>,
    started_of: BTreeMap<JobId, u32>,
    notes: BTreeMap<JobId, Note>,
}

impl Cycle {
    /// Opens a savepoint. Beyond [`SAVEPOINTS`] open ones, the newest one's number is returned again.
    pub fn savepoint(&mut self) -> u32 {
        if self.savepoints.len() >= SAVEPOINTS {
            return self.next_savepoint - 1;
        }
        let id = self.next_savepoint;
        self.next_savepoint += 1;
        let mark = self.replica.cluster.savepoint();
        self.savepoints.push(Savepoint {
            id,
            mark,
            starts: self.starts.len(),
            reservations: self.reservations.iter().map(Option::is_some).collect(),
            gone: self.gone.clone(),
            started_of: self.started_of.clone(),
            notes: self.notes.clone(),
        });
        id
    }

    /// Undoes everything since that savepoint.
    ///
    /// # Errors
    /// It is not open; or a reservation from before it was lifted since, which cannot be undone.
    pub fn rollback(&mut self, id: u32) -> Result<(), CycleRefusal> {
        let at = self.position(id)?;
        let lifted =
            self.savepoints[at].reservations.iter().zip(&self.reservations).any(|(was, is)| *was && is.is_none());
        if lifted {
            return Err(CycleRefusal::Other("a reservation made before the savepoint was lifted after it".into()));
        }
        self.savepoints.truncate(at + 1);
        let Some(saved) = self.savepoints.pop() else { return Ok(()) };
        self.replica.cluster.rollback(saved.mark);
        self.starts.truncate(saved.starts);
        self.reservations.truncate(saved.reservations.len());
        self.gone = saved.gone;
        self.started_of = saved.started_of;
        self.notes = saved.notes;
        self.unpark();
        Ok(())
    }

    /// Closes a savepoint: everything since it is one group.
    ///
    /// # Errors
    /// It is not open.
    pub fn accept(&mut self, id: u32) -> Result<(), CycleRefusal> {
        let at = self.position(id)?;
        let first = self.savepoints[at].starts;
        self.savepoints.truncate(at);
        let group = self.next_group;
        self.next_group += 1;
        for start in self.starts.iter_mut().skip(first) {
            start.group = group;
        }
        Ok(())
    }

    fn position(&self, id: u32) -> Result<usize, CycleRefusal> {
        let unknown = || CycleRefusal::Other(format!("savepoint {id} is not open"));
        self.savepoints.iter().position(|s| s.id == id).ok_or_else(unknown)
    }
}
