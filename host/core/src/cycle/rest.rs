//! Calls that a scheduling policy says it does not need: as long as nobody who waits has room.

use super::{Cycle, CycleRefusal};
use crate::replica::Rank;

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

    /// What the policy said of further calls.
    pub fn rest(&self) -> Option<Rest> {
        self.rest
    }
}
