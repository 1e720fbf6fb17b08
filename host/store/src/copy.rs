//! Consistent copies of redb files: table by table out of one read transaction.

use crate::error::StoreError;
use crate::files;
use redb::{Database, Key, ReadTransaction, ReadableTable, TableDefinition, Value};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// Bytes copied in one transaction.
const BYTES_PER_TRANSACTION: usize = 32 << 20;
/// Bytes of pages kept in memory while a copy is written.
const CACHE_BYTES: usize = 64 << 20;

/// A copy that is being written. Where it is not finished, the file goes; where the process is killed, what is left
/// has no `meta` table yet, which makes it no store.
pub(crate) struct Copy {
    db: Database,
    target: Target,
}

impl Copy {
    /// Begins a copy in a new file.
    pub(crate) fn begin(to: &Path) -> Result<Self, StoreError> {
        let file = files::new_file(OpenOptions::new().create_new(true), to)?;
        let target = Target { path: to.to_owned(), finished: false };
        let db = Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(files::backend(file, to)?);
        Ok(Self { db: db.map_err(|e| StoreError::redb(to, e))?, target })
    }

    /// Runs a transaction on the copy.
    pub(crate) fn write(
        &self,
        work: impl FnOnce(&redb::WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), StoreError> {
        let write = || -> Result<(), redb::Error> {
            let txn = self.db.begin_write()?;
            work(&txn)?;
            txn.commit()?;
            Ok(())
        };
        write().map_err(|e| StoreError::redb(&self.target.path, e))
    }

    /// Copies one table.
    pub(crate) fn table<K: Key + 'static, V: Value + 'static>(
        &self,
        from: &ReadTransaction,
        from_path: &Path,
        table: TableDefinition<'static, K, V>,
    ) -> Result<(), StoreError> {
        let source = from.open_table(table).map_err(|e| StoreError::redb(from_path, e))?;
        let mut entries = source.iter().map_err(|e| StoreError::redb(from_path, e))?;
        let mut more = true;
        while more {
            let mut unread = None;
            self.write(|txn| {
                let mut target = txn.open_table(table)?;
                let mut bytes = 0;
                more = false;
                for entry in entries.by_ref() {
                    let (key, value) = match entry {
                        Ok(entry) => entry,
                        Err(e) => {
                            unread = Some(StoreError::redb(from_path, e));
                            break;
                        }
                    };
                    bytes += V::as_bytes(&value.value()).as_ref().len();
                    target.insert(key.value(), value.value())?;
                    if bytes >= BYTES_PER_TRANSACTION {
                        more = true;
                        break;
                    }
                }
                Ok(())
            })?;
            if let Some(error) = unread {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Closes the copy, durably.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let Self { db, mut target } = self;
        db.close().map_err(|e| StoreError::redb(&target.path, e))?;
        let folder = target.path.parent().filter(|p| !p.as_os_str().is_empty());
        files::sync_folder(folder.unwrap_or(Path::new(".")))?;
        target.finished = true;
        Ok(())
    }
}

/// The new file, which goes unless it is finished.
struct Target {
    path: PathBuf,
    finished: bool,
}

impl Drop for Target {
    fn drop(&mut self) {
        if !self.finished {
            // Best effort: a file that stays says by itself that it is no store.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
