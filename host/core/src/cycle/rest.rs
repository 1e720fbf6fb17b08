//! Which calls a scheduling policy needs: none as long as nobody who waits has room, one at a certain time.

use super::{Cycle, CycleRefusal};
use crate::replica::Rank;
use ephor_model::{Span, Timestamp};

/// A policy that always asks for another call gets it after so long.
pub const WAKE_AFTER: Span = Span::seconds(1);

/// What a policy said of the calls after this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Behind that place in the order, who comes and has no room changes nothing for others either.
    pub behind: Option<Rank>,
}

impl Cycle {
    /// Needs no further call before somebody who waits has room.
    ///
    /// # Errors
    /// The row is not a pending job's.
    pub fn rest_until_room(&mut self, behind: Option<u32>) -> Result<(), CycleRefusal> {
        self.spend(1)?;
        let behind = match behind {
            None => None,
            Some(row) => {
                let pending = self.replica.pending(self.job(row)?);
                Some(pending.ok_or_else(|| CycleRefusal::Other("that job is not pending".into()))?.rank)
            }
        };
        self.rest = Some(Rest { behind });
        Ok(())
    }

    /// Needs a call at that time, should none come before. The earliest wish holds, but none before [`WAKE_AFTER`].
    ///
    /// # Errors
    /// Too little work left.
    pub fn wake_at(&mut self, at: Timestamp) -> Result<(), CycleRefusal> {
        self.spend(1)?;
        let at = at.max(self.now + WAKE_AFTER);
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
        Ok(())
    }

    /// When the policy needs a call at the latest.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.wake_at
    }

    /// What the policy said of further calls.
    pub fn rest(&self) -> Option<Rest> {
        self.rest
    }
}
