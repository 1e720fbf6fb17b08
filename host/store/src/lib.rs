//! Keeps the state durable: one batch of events and the rows they changed in one transaction.
//!
//! [`LiveStore`] is the live state in `live.redb`; [`History`] keeps finished jobs in a file of their own. After a
//! failed write a store is closed until it is opened again: what the disk then holds is found out by reading it, not
//! by guessing.

mod batch;
mod codec;
mod copy;
mod error;
mod files;
pub mod history;
mod key;
pub mod live;
mod lock;
mod overlay;

pub use batch::CommitBatch;
pub use error::StoreError;
pub use history::{History, HistoryJob};
pub use live::{LiveStore, OpenOptions, Report, read_log, verify};

use ephor_core::{Stamped, State};
use ephor_model::{Digest, Epoch, Span};
use std::path::Path;
use std::sync::Arc;

/// What a store held when it was opened.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The state.
    pub state: State,
    /// Number of the last event; 0 where there is none. The first event has number 1.
    pub last_event: u64,
    /// The epoch of the last commit. The next reign begins above it.
    pub epoch: Epoch,
    /// Where the store is a backup that is being recovered: the epoch that the first command must reach, above that of
    /// every agent.
    pub recover_at: Option<Epoch>,
}

/// A run of events in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventRun {
    /// Number of the first of them.
    pub first: u64,
    /// The events.
    pub events: Vec<Stamped>,
}

/// How many events are kept. Those that no checkpoint holds are kept whatever it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Bytes of events.
    pub bytes: u64,
    /// Age of events; `None`: any.
    pub age: Option<Span>,
}

impl Default for Retention {
    fn default() -> Self {
        Self { bytes: 256 << 20, age: None }
    }
}

/// Whether there is more to tidy up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tidied {
    /// Nothing is left to do.
    Done,
    /// A step was taken; another may be due.
    MoreToDo,
}

/// Keeps the live state. One thread commits; readers come from [`Store::reader`].
pub trait Store: Send {
    /// Reads everything.
    ///
    /// # Errors
    /// The store is damaged, cannot be read, or is closed.
    fn load(&self) -> Result<Loaded, StoreError>;

    /// Makes a batch durable: all of it or nothing. When it returns, the batch survives a loss of power.
    ///
    /// # Errors
    /// Refusals ([`StoreError::is_refusal`]): the epoch was deposed, the batch leaves a gap, a blob is missing. Any
    /// other error closes the store, and whether the batch is kept is known only after it is opened again.
    fn commit(&mut self, epoch: Epoch, batch: &CommitBatch<'_>) -> Result<(), StoreError>;

    /// Takes one small step towards holding no more events than `keep` says: a piece of a checkpoint, or some old
    /// events dropped. `state` is the state of the last commit. To be called when nothing waits, or after each commit:
    /// where there is nothing to do it only compares numbers.
    ///
    /// # Errors
    /// As [`Self::commit`]; a state that is not the last is a refusal.
    fn tidy(&mut self, state: &State, keep: &Retention) -> Result<Tidied, StoreError>;

    /// Writes a whole checkpoint of `state`, which is the state of the last commit. Takes about a second for each
    /// million rows.
    ///
    /// # Errors
    /// As [`Self::tidy`].
    fn checkpoint(&mut self, state: &State) -> Result<(), StoreError>;

    /// A handle for other threads. It keeps the files open until it is dropped.
    fn reader(&self) -> Arc<dyn Reader>;
}

/// Reads from a live store beside its commits.
pub trait Reader: Send + Sync {
    /// The blob of that digest; `None`: it is not there (any more).
    ///
    /// # Errors
    /// The store cannot be read, or is closed.
    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError>;

    /// Events from number `from` on, at least one and about `at_most` where there are any. The run begins later
    /// where older events were dropped; it is empty after the last event.
    ///
    /// # Errors
    /// The store is damaged, cannot be read, or is closed.
    fn events(&self, from: u64, at_most: usize) -> Result<EventRun, StoreError>;

    /// Writes a consistent copy into a new file, while commits go on. A copy that is not complete is not left there.
    ///
    /// # Errors
    /// The file is there already or cannot be written, or the store cannot be read.
    fn backup(&self, to: &Path) -> Result<(), StoreError>;
}
