//! Finished jobs in a file of their own, so that the live one stays small.
//!
//! A job moves by an append here, durable when it returns, and then by being forgotten there. Where the controller
//! dies in between, the job is appended again, which changes nothing.

mod query;
mod record;
mod tables;

pub use query::{Cursor, Filter, Page};
pub use record::{ArrayPlace, HistoryJob, command_text};

use crate::codec;
use crate::copy::Copy;
use crate::error::{StoreError, calmly};
use crate::files;
use ephor_model::{JobId, JobState};
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable, StorageBackend, TableHandle};
use redb::{ReadableTableMetadata, WriteTransaction};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tables::{BY_END, BY_USER, FORMAT, Head, JOBS, KEY_FORMAT, META, OLDEST_FORMAT, place};

/// Name of the file in the data folder.
pub const FILE: &str = "history.redb";
/// Bytes of pages kept in memory.
const CACHE_BYTES: usize = 64 << 20;

/// Finished jobs on disk. One instance serves all threads.
#[derive(Debug)]
pub struct History {
    db: Database,
    path: PathBuf,
    closed: AtomicBool,
}

impl History {
    /// Opens the history of a data folder; makes it where it is not there. Whoever opens it holds the folder's
    /// [`crate::LiveStore`].
    ///
    /// # Errors
    /// The file is in use, damaged, of another version, or cannot be read or written.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let backend = files::open_or_make(folder, FILE, |backend, path| make(&database(backend, path)?, path))?;
        Self::open_made(backend, &folder.join(FILE))
    }

    /// The same on any storage; `path` is its name in errors. For tests that break disks.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_on(backend: impl StorageBackend + Clone, path: &Path) -> Result<Self, StoreError> {
        if backend.len().map_err(|e| StoreError::io(path, e))? == 0 {
            make(&database(backend.clone(), path)?, path)?;
        }
        Self::open_made(backend, path)
    }

    fn open_made(backend: impl StorageBackend, path: &Path) -> Result<Self, StoreError> {
        calmly(path, || {
            let history = Self { db: database(backend, path)?, path: path.to_owned(), closed: AtomicBool::new(false) };
            history.check_format()?;
            Ok(history)
        })
    }

    fn check_format(&self) -> Result<(), StoreError> {
        let txn = self.read()?;
        let mut names = txn.list_tables().map_err(|e| self.redb(e))?;
        if !names.any(|t| t.name() == META.name()) {
            return Err(StoreError::damaged(&self.path, "it is a redb file, but no history of Ephor"));
        }
        let table = txn.open_table(META).map_err(|e| self.redb(e))?;
        let found = table.get(KEY_FORMAT).map_err(|e| self.redb(e))?.map(|v| v.value().to_vec());
        let Some(found) = found.and_then(|f| f.try_into().ok()).map(u32::from_le_bytes) else {
            return Err(StoreError::damaged(&self.path, "it does not say which format it has"));
        };
        let path = self.path.clone();
        match found {
            found if found > FORMAT => Err(StoreError::Newer { path, found, known: FORMAT }),
            found if found < OLDEST_FORMAT => Err(StoreError::Older { path, found, known: OLDEST_FORMAT }),
            _ => Ok(()),
        }
    }

    /// Adds finished jobs, durably when it returns. A record that is there already stays; a later one of the same job
    /// (it was requeued, or charged) takes its place; an earlier one is ignored.
    ///
    /// # Errors
    /// After any error the history is closed until it is opened again.
    pub fn append(&self, jobs: &[HistoryJob]) -> Result<(), StoreError> {
        self.check_open()?;
        let mut new = Vec::new();
        {
            let txn = self.read()?;
            let table = txn.open_table(JOBS).map_err(|e| self.redb(e))?;
            for job in jobs {
                let bytes = codec::encode(job);
                let known = table.get(job.id.0).map_err(|e| self.redb(e))?;
                if known.is_none_or(|k| k.value() != bytes) {
                    new.push((job, bytes));
                }
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        new.sort_by_key(|(job, _)| job.id);
        self.in_transaction(|txn| {
            let mut jobs = txn.open_table(JOBS)?;
            let mut by_end = txn.open_table(BY_END)?;
            let mut by_user = txn.open_table(BY_USER)?;
            for (job, bytes) in &new {
                let known = jobs.get(job.id.0)?.map(|k| k.value().to_vec());
                if let Some(known) = known {
                    let head: Head<'_> = codec::decode_start(&known)
                        .map_err(|e| redb::Error::Corrupted(format!("job {}: {e}", job.id)))?;
                    // Another submission with the same id is one of a restored copy of the past: the newer one counts.
                    if head.submitted == job.submitted && head.attempts > job.attempts {
                        continue;
                    }
                    by_end.remove((head.place(), job.id.0))?;
                    by_user.remove((head.owner.name, head.place(), job.id.0))?;
                }
                jobs.insert(job.id.0, bytes.as_slice())?;
                by_end.insert((place(job), job.id.0), ())?;
                by_user.insert((job.owner.name.as_str(), place(job), job.id.0), ())?;
            }
            Ok(())
        })
    }

    /// The record of a job.
    ///
    /// # Errors
    /// The history is damaged, cannot be read, or is closed.
    pub fn get(&self, id: JobId) -> Result<Option<HistoryJob>, StoreError> {
        let txn = self.read()?;
        let table = txn.open_table(JOBS).map_err(|e| self.redb(e))?;
        let found = table.get(id.0).map_err(|e| self.redb(e))?;
        found.map(|bytes| codec::decode(bytes.value()).map_err(|e| self.bad_record(id, &e))).transpose()
    }

    /// Records of the elements of an array, in order, `limit` at most from the element `from` on; of a single job,
    /// its own.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn get_array(&self, first: JobId, from: JobId, limit: usize) -> Result<Vec<HistoryJob>, StoreError> {
        let txn = self.read()?;
        let table = txn.open_table(JOBS).map_err(|e| self.redb(e))?;
        let mut found = Vec::new();
        for entry in table.range(from.0.max(first.0)..).map_err(|e| self.redb(e))?.take(limit) {
            let (id, bytes) = entry.map_err(|e| self.redb(e))?;
            let job: HistoryJob = codec::decode(bytes.value()).map_err(|e| self.bad_record(JobId(id.value()), &e))?;
            if job.array.map_or(job.id, |place| place.array) != first {
                break;
            }
            found.push(job);
        }
        Ok(found)
    }

    /// How a job ended, for those that depend on it. The first id of an array means all of it: completed where every
    /// element is, else as the first that is not.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn outcome(&self, id: JobId) -> Result<Option<JobState>, StoreError> {
        let txn = self.read()?;
        let table = txn.open_table(JOBS).map_err(|e| self.redb(e))?;
        let mut outcome = None;
        for entry in table.range(id.0..).map_err(|e| self.redb(e))? {
            let (found, bytes) = entry.map_err(|e| self.redb(e))?;
            let head: Head<'_> =
                codec::decode_start(bytes.value()).map_err(|e| self.bad_record(JobId(found.value()), &e))?;
            let of_array = head.array.is_some_and(|place| place.array == id);
            if head.id != id && !of_array {
                break;
            }
            outcome = Some(head.state);
            if head.state != JobState::Completed || !of_array {
                break;
            }
        }
        Ok(outcome)
    }

    /// How many jobs there are.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn count(&self) -> Result<u64, StoreError> {
        let txn = self.read()?;
        let table = txn.open_table(JOBS).map_err(|e| self.redb(e))?;
        table.len().map_err(|e| self.redb(e))
    }

    /// Writes a consistent copy into a new file, while appends go on. To be made after that of the live state, so that
    /// a job that moves between the two is in one of them at least.
    ///
    /// # Errors
    /// The file is there already or cannot be written, or the history cannot be read.
    pub fn backup(&self, to: &Path) -> Result<(), StoreError> {
        let copy = Copy::begin(to)?;
        let txn = self.read()?;
        copy.table(&txn, &self.path, JOBS)?;
        copy.table(&txn, &self.path, BY_END)?;
        copy.table(&txn, &self.path, BY_USER)?;
        copy.table(&txn, &self.path, META)?;
        copy.finish()
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn in_transaction(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), StoreError> {
        write(&self.db, work).map_err(|e| {
            self.closed.store(true, Ordering::Release);
            self.redb(e)
        })
    }

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

    fn redb(&self, error: impl Into<redb::Error>) -> StoreError {
        StoreError::redb(&self.path, error)
    }

    fn bad_record(&self, id: JobId, what: &str) -> StoreError {
        StoreError::damaged(&self.path, format!("job {id}: {what}"))
    }

    fn no_record(&self, id: JobId) -> StoreError {
        self.bad_record(id, "it is in the order of time, but has no record")
    }
}

fn database(backend: impl StorageBackend, path: &Path) -> Result<Database, StoreError> {
    let db = Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(backend);
    db.map_err(|e| StoreError::redb(path, e))
}

/// Makes the tables of a new history.
fn make(db: &Database, path: &Path) -> Result<(), StoreError> {
    let made = write(db, |txn| {
        txn.open_table(JOBS)?;
        txn.open_table(BY_END)?;
        txn.open_table(BY_USER)?;
        txn.open_table(META)?.insert(KEY_FORMAT, FORMAT.to_le_bytes().as_slice())?;
        Ok(())
    });
    made.map_err(|e| StoreError::redb(path, e))
}

fn write(db: &Database, work: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>) -> Result<(), redb::Error> {
    let mut txn = db.begin_write()?;
    // Twice the cost of a plain commit, which is paid once for many jobs; in return a large history opens at once
    // after a crash.
    txn.set_quick_repair(true);
    work(&txn)?;
    txn.commit()?;
    Ok(())
}
