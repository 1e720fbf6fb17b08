//! The tables of `live.redb` and the entries of its `meta` table.

use crate::error::StoreError;
use ephor_model::Epoch;
use redb::{ReadableTable, TableDefinition, WriteTransaction};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Rows of the state, by the bytes of their key.
pub(crate) const ROWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("rows");
/// Batches of events, by the number of their first.
pub(crate) const EVENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("events");
/// Contents of blobs, by digest.
pub(crate) const BLOBS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("blobs");
/// How many times rows name a blob, by digest.
pub(crate) const BLOB_USES: TableDefinition<'_, &[u8; 32], u64> = TableDefinition::new("blob_uses");
/// All rows as they were at the checkpoint, in pieces.
pub(crate) const CHECKPOINT: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("checkpoint");
/// Single values, by name.
pub(crate) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");

/// Format of the file that this version writes.
pub(crate) const FORMAT: u32 = 1;
/// Oldest format that this version reads.
pub(crate) const OLDEST_FORMAT: u32 = 1;

/// `meta`: format of the file, four bytes, the lowest first. Every version can read it.
pub(crate) const KEY_FORMAT: &str = "format";
/// `meta`: epoch of the last commit.
pub(crate) const KEY_EPOCH: &str = "epoch";
/// `meta`: there where the file is a backup on which nobody has reigned yet.
pub(crate) const KEY_BACKUP: &str = "backup";
/// `meta`: the checkpoint that the events are folded from.
pub(crate) const KEY_CHECKPOINT: &str = "checkpoint";

/// Where the last whole checkpoint is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckpointPlace {
    /// The last event that is in it; 0 with no pieces: the empty state.
    pub event: u64,
    /// Key of its first piece.
    pub first: u64,
    /// Number of its pieces.
    pub pieces: u64,
}

/// The `meta` table as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreMeta {
    /// Epoch of the last commit.
    pub epoch: Epoch,
    /// Whether the file is a backup on which nobody has reigned yet.
    pub backup: bool,
    /// The last whole checkpoint.
    pub checkpoint: CheckpointPlace,
}

impl StoreMeta {
    /// Reads it; `None` where the table is empty.
    pub(crate) fn read(
        table: &impl ReadableTable<&'static str, &'static [u8]>,
        path: &Path,
    ) -> Result<Option<Self>, StoreError> {
        let get = |key: &str| -> Result<Option<Vec<u8>>, StoreError> {
            Ok(table.get(key).map_err(|e| StoreError::redb(path, e))?.map(|v| v.value().to_vec()))
        };
        let Some(format) = get(KEY_FORMAT)? else { return Ok(None) };
        let format = format.try_into().map_err(|_| StoreError::damaged(path, "its format number has no four bytes"))?;
        match u32::from_le_bytes(format) {
            found if found > FORMAT => {
                return Err(StoreError::Newer { path: path.to_owned(), found, known: FORMAT });
            }
            found if found < OLDEST_FORMAT => {
                return Err(StoreError::Older { path: path.to_owned(), found, known: OLDEST_FORMAT });
            }
            _ => {}
        }
        let damaged = |what: String| StoreError::damaged(path, format!("table meta: {what}"));
        let epoch = get(KEY_EPOCH)?.map(|v| crate::codec::decode(&v)).transpose().map_err(damaged)?;
        let checkpoint = get(KEY_CHECKPOINT)?.map(|v| crate::codec::decode(&v)).transpose().map_err(damaged)?;
        Ok(Some(Self {
            epoch: epoch.unwrap_or_default(),
            backup: get(KEY_BACKUP)?.is_some(),
            checkpoint: checkpoint.unwrap_or_default(),
        }))
    }

    /// Writes what differs from `before`; all of it where there was nothing.
    pub(crate) fn write(&self, txn: &WriteTransaction, before: Option<&Self>) -> Result<(), redb::Error> {
        if before == Some(self) {
            return Ok(());
        }
        let mut table = txn.open_table(META)?;
        if before.is_none() {
            table.insert(KEY_FORMAT, FORMAT.to_le_bytes().as_slice())?;
        }
        if before.map(|b| b.epoch) != Some(self.epoch) {
            table.insert(KEY_EPOCH, crate::codec::encode(&self.epoch).as_slice())?;
        }
        if before.map(|b| b.checkpoint) != Some(self.checkpoint) {
            table.insert(KEY_CHECKPOINT, crate::codec::encode(&self.checkpoint).as_slice())?;
        }
        if self.backup {
            table.insert(KEY_BACKUP, [].as_slice())?;
        } else if before.is_some_and(|b| b.backup) {
            table.remove(KEY_BACKUP)?;
        }
        Ok(())
    }
}
