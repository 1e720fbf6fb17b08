//! The budget of a call in work units, and why something could not be placed.

use std::sync::Arc;

/// Work units that are left: one for each operation, and one for each node or change in time looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work(pub u64);

impl Work {
    /// As good as no bound.
    pub const UNLIMITED: Self = Self(u64::MAX);

    /// Takes `units` away.
    ///
    /// # Errors
    /// [`NoFit::Budget`] where fewer are left; then none are left.
    pub(crate) fn take(&mut self, units: usize) -> Result<(), NoFit> {
        let units = units as u64;
        if self.0 < units {
            self.0 = 0;
            return Err(NoFit::Budget);
        }
        self.0 -= units;
        Ok(())
    }
}

/// Why something could not be placed. The texts give numbers and are meant for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoFit {
    /// It can never be placed on these nodes, whatever ends.
    #[error("can never run here: {0}")]
    Never(Arc<str>),
    /// It cannot be placed now; it may once something ends or a node comes back.
    #[error("cannot run now: {0}")]
    NotNow(Arc<str>),
    /// The work units are used up before there was an answer; nothing was changed.
    #[error("the work units of this call are used up")]
    Budget,
}
