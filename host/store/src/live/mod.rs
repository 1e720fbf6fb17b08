//! The live state in one redb file: opening, loading, reading.

mod backup;
mod commit;
mod events;
mod log;
mod tables;
mod tidy;
mod verify;

use crate::error::{StoreError, calmly};
use crate::lock::FolderLock;
use crate::{CommitBatch, EventRun, Loaded, Reader, Retention, Store, Tidied, codec, files, key};
use ephor_core::{Row, RowKey, Stamped, State};
use ephor_model::{Digest, Epoch, Timestamp};
use events::EventBatch;
pub use log::read_log;
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable, StorageBackend, TableHandle};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tables::{BLOB_USES, BLOBS, CHECKPOINT, EVENTS, META, ROWS, StoreMeta};
pub use verify::{Report, verify};

/// Name of the file in the data folder.
pub const FILE: &str = "live.redb";
/// How far above a backup's epoch a recovered controller begins: no agent has seen so many restarts since.
pub const RECOVERY_STEP: u64 = 1000;

/// How to open a store.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Go on from a backup.
    pub recover: bool,
    /// Bytes of pages kept in memory.
    pub cache_bytes: usize,
    /// Check every page of the file, not only after a crash. Takes about a second for each GB.
    pub check: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        // The state is in memory already; the cache serves the inner pages of the trees and the blobs of launches.
        Self { recover: false, cache_bytes: 64 << 20, check: false }
    }
}

/// The live state on disk. The one that commits; see [`Store`].
#[derive(Debug)]
pub struct LiveStore {
    shared: Arc<Shared>,
    meta: StoreMeta,
    last_event: u64,
    /// Bytes of all batches of events so far, and of those that were dropped.
    event_end: u64,
    event_begin: u64,
    /// Time of the oldest batch.
    oldest_at: Option<Timestamp>,
    underway: Option<tidy::Underway>,
}

/// What readers and the store share.
#[derive(Debug)]
pub(crate) struct Shared {
    // Dropped before the lock: the file is closed when the folder is free.
    db: Database,
    path: PathBuf,
    closed: AtomicBool,
    _lock: Option<FolderLock>,
}

impl LiveStore {
    /// Opens the store of a data folder; makes both where they are not there.
    ///
    /// # Errors
    /// The folder is in use, the file is damaged, of another version or a backup, or cannot be read or written.
    pub fn open(folder: &Path, options: &OpenOptions) -> Result<Self, StoreError> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|e| StoreError::io(folder, e))?;
        let lock = FolderLock::take(folder)?;
        let backend =
            files::open_or_make(folder, FILE, |backend, path| make(&database(backend, path, options)?, path))?;
        Self::open_made(backend, folder.join(FILE), Some(lock), options)
    }

    /// The same on any storage, without a lock of the folder; `path` is its name in errors. For tests that break disks.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_on(
        backend: impl StorageBackend + Clone,
        path: &Path,
        options: &OpenOptions,
    ) -> Result<Self, StoreError> {
        if backend.len().map_err(|e| StoreError::io(path, e))? == 0 {
            make(&database(backend.clone(), path, options)?, path)?;
        }
        Self::open_made(backend, path.to_owned(), None, options)
    }

    fn open_made(
        backend: impl StorageBackend,
        path: PathBuf,
        lock: Option<FolderLock>,
        options: &OpenOptions,
    ) -> Result<Self, StoreError> {
        let name = path.clone();
        let (shared, meta) = calmly(&name, || {
            let db = database(backend, &path, options)?;
            let shared = Shared { db, path, closed: AtomicBool::new(false), _lock: lock };
            let meta = shared.meta()?;
            Ok((shared, meta))
        })?;
        if meta.backup && !options.recover {
            return Err(StoreError::IsBackup { path: shared.path.clone() });
        }
        let mut store = Self {
            shared: Arc::new(shared),
            meta,
            last_event: 0,
            event_end: 0,
            event_begin: 0,
            oldest_at: None,
            underway: None,
        };
        store.count_events()?;
        Ok(store)
    }

    /// Finds out which events there are, by the first and the last batch.
    fn count_events(&mut self) -> Result<(), StoreError> {
        let txn = self.shared.read()?;
        let table = txn.open_table(EVENTS).map_err(|e| self.shared.redb(e))?;
        if let Some((first, batch)) = table.first().map_err(|e| self.shared.redb(e))? {
            let head = events::decode_head(batch.value()).map_err(|e| self.shared.bad_batch(first.value(), &e))?;
            (self.event_begin, self.oldest_at) = (head.bytes_before, Some(head.at));
        }
        if let Some((first, batch)) = table.last().map_err(|e| self.shared.redb(e))? {
            let last = self.shared.decode_events(first.value(), batch.value())?;
            self.last_event = first.value() + last.events.len() as u64 - 1;
            self.event_end = last.bytes_before + batch.value().len() as u64;
        }
        Ok(())
    }

    /// Checks the open store as [`verify`] checks a file, all but the pages of the file itself.
    ///
    /// # Errors
    /// The store is damaged, cannot be read, or is closed.
    pub fn check(&self) -> Result<Report, StoreError> {
        self.shared.check()
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }
}

/// Opens the file as redb knows it.
fn database(backend: impl StorageBackend, path: &Path, options: &OpenOptions) -> Result<Database, StoreError> {
    Database::builder()
        .set_cache_size(options.cache_bytes)
        .set_check_integrity_on_open(options.check)
        .create_with_backend(backend)
        .map_err(|e| StoreError::redb(path, e))
}

/// Makes the tables of a new store.
fn make(db: &Database, path: &Path) -> Result<(), StoreError> {
    let make = || -> Result<(), redb::Error> {
        let txn = db.begin_write()?;
        txn.open_table(ROWS)?;
        txn.open_table(EVENTS)?;
        txn.open_table(BLOBS)?;
        txn.open_table(BLOB_USES)?;
        txn.open_table(CHECKPOINT)?;
        StoreMeta::default().write(&txn, None)?;
        txn.commit()?;
        Ok(())
    };
    make().map_err(|e| StoreError::redb(path, e))
}

impl Store for LiveStore {
    fn load(&self) -> Result<Loaded, StoreError> {
        let state = calmly(&self.shared.path, || self.shared.load(&self.shared.read()?))?;
        if state.meta.events != self.last_event {
            let (rows, events) = (state.meta.events, self.last_event);
            return Err(self.shared.damaged(format!("its rows stand at event {rows}, its events end with {events}")));
        }
        let recover_at = self.meta.backup.then_some(Epoch(self.meta.epoch.0.saturating_add(RECOVERY_STEP)));
        Ok(Loaded { last_event: self.last_event, epoch: self.meta.epoch, recover_at, state })
    }

    fn commit(&mut self, epoch: Epoch, batch: &CommitBatch<'_>) -> Result<(), StoreError> {
        self.commit_batch(epoch, batch)
    }

    fn tidy(&mut self, state: &State, keep: &Retention) -> Result<Tidied, StoreError> {
        self.tidy_step(state, keep)
    }

    fn checkpoint(&mut self, state: &State) -> Result<(), StoreError> {
        self.checkpoint_now(state)
    }

    fn reader(&self) -> Arc<dyn Reader> {
        self.shared.clone()
    }
}

impl Shared {
    fn damaged(&self, what: impl Into<String>) -> StoreError {
        StoreError::damaged(&self.path, what)
    }

    fn redb(&self, error: impl Into<redb::Error>) -> StoreError {
        StoreError::redb(&self.path, error)
    }

    /// Whether calls are still answered.
    fn check_open(&self) -> Result<(), StoreError> {
        match self.closed.load(Ordering::Acquire) {
            true => Err(StoreError::Closed { path: self.path.clone() }),
            false => Ok(()),
        }
    }

    fn read(&self) -> Result<ReadTransaction, StoreError> {
        self.check_open()?;
        self.db.begin_read().map_err(|e| self.redb(e))
    }

    fn meta(&self) -> Result<StoreMeta, StoreError> {
        let txn = self.read()?;
        let mut names = txn.list_tables().map_err(|e| self.redb(e))?;
        if !names.any(|t| t.name() == META.name()) {
            return Err(self.damaged("it is a redb file, but no store of Ephor"));
        }
        let table = txn.open_table(META).map_err(|e| self.redb(e))?;
        StoreMeta::read(&table, &self.path)?.ok_or_else(|| self.damaged("it does not say which format it has"))
    }

    fn bad_batch(&self, first: u64, what: &str) -> StoreError {
        self.damaged(format!("the batch of event {first}: {what}"))
    }

    fn decode_events(&self, first: u64, bytes: &[u8]) -> Result<EventBatch<Vec<Stamped>>, StoreError> {
        events::decode(bytes).map_err(|e| self.bad_batch(first, &e))
    }

    fn load(&self, txn: &ReadTransaction) -> Result<State, StoreError> {
        let table = txn.open_table(ROWS).map_err(|e| self.redb(e))?;
        let mut entries = table.iter().map_err(|e| self.redb(e))?;
        // Row by row into the state, so that a large cluster is not in memory twice.
        let mut failed = None;
        let rows = std::iter::from_fn(|| {
            let row = entries.next()?.map_err(|e| self.redb(e));
            let row = row.and_then(|(key, value)| self.decode_row(key.value(), value.value()));
            row.map_err(|e| failed = Some(e)).ok()
        });
        let state = State::from_rows(rows);
        match failed {
            Some(error) => Err(error),
            None => state.map_err(|what| self.damaged(what)),
        }
    }

    fn decode_row(&self, key: &[u8], value: &[u8]) -> Result<(RowKey, Row), StoreError> {
        let Some(row_key) = key::decode(key) else {
            return Err(self.damaged(format!("{key:?} is no key of a row")));
        };
        match codec::decode(value) {
            Ok(row) => Ok((row_key, row)),
            Err(e) => Err(self.damaged(format!("row {row_key:?}: {e}"))),
        }
    }
}

impl Reader for Shared {
    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let txn = self.read()?;
        let table = txn.open_table(BLOBS).map_err(|e| self.redb(e))?;
        let found = table.get(&digest.0).map_err(|e| self.redb(e))?;
        Ok(found.map(|bytes| bytes.value().to_vec()))
    }

    fn events(&self, from: u64, at_most: usize) -> Result<EventRun, StoreError> {
        let txn = self.read()?;
        let table = txn.open_table(EVENTS).map_err(|e| self.redb(e))?;
        // The batch that holds `from` may begin before it.
        let begin = match table.range(..=from).map_err(|e| self.redb(e))?.next_back() {
            Some(entry) => entry.map_err(|e| self.redb(e))?.0.value(),
            None => from,
        };
        let mut run = EventRun { first: from, events: Vec::new() };
        for entry in table.range(begin..).map_err(|e| self.redb(e))? {
            let (first, batch) = entry.map_err(|e| self.redb(e))?;
            let first = first.value();
            let mut events = self.decode_events(first, batch.value())?.events;
            let skip = from.saturating_sub(first).min(events.len() as u64);
            events.drain(..skip as usize);
            if run.events.is_empty() {
                run.first = first + skip;
            } else if first != run.first + run.events.len() as u64 {
                return Err(self.damaged(format!("events before {first} are missing")));
            }
            run.events.append(&mut events);
            if run.events.len() >= at_most.max(1) {
                break;
            }
        }
        Ok(run)
    }

    fn backup(&self, to: &Path) -> Result<(), StoreError> {
        self.copy_to(to)
    }
}
