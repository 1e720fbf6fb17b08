//! Reads a store's state and its log of events without opening it for writing: for replays.

use super::{OpenOptions, Shared};
use crate::error::{StoreError, calmly};
use crate::overlay::Overlay;
use crate::{EventRun, Reader};
use ephor_core::State;
use redb::Database;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The state and every event that is kept in a backup, or in the store of a controller that does not run. The file is
/// not changed. The first event has another number than 1 where older ones were dropped.
///
/// # Errors
/// The file cannot be read, is in use, of another version, or damaged.
pub fn read_log(path: &Path) -> Result<(State, EventRun), StoreError> {
    let io = |e| StoreError::io(path, e);
    let file = File::open(path).map_err(io)?;
    match file.try_lock_shared() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(StoreError::Busy { path: path.to_owned(), pid: None }),
        Err(TryLockError::Error(e)) => return Err(io(e)),
    }
    if file.metadata().map_err(io)?.len() == 0 {
        return Err(StoreError::damaged(path, "it is empty"));
    }
    let backend = Overlay::new(file).map_err(io)?;
    calmly(path, || {
        let db = Database::builder()
            .set_cache_size(OpenOptions::default().cache_bytes)
            .create_with_backend(backend)
            .map_err(|e| StoreError::redb(path, e))?;
        let shared = Shared { db, path: path.to_owned(), closed: AtomicBool::new(false), _lock: None };
        shared.meta()?;
        let state = shared.load(&shared.read()?)?;
        Ok((state, shared.events(1, usize::MAX)?))
    })
}
