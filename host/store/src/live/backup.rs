//! A copy of the live state that says that it is one.

use super::Shared;
use super::tables::{BLOB_USES, BLOBS, CHECKPOINT, EVENTS, META, ROWS, StoreMeta};
use crate::copy::Copy;
use crate::error::StoreError;
use std::path::Path;

impl Shared {
    pub(super) fn copy_to(&self, to: &Path) -> Result<(), StoreError> {
        let txn = self.read()?;
        let copy = Copy::begin(to)?;
        copy.table(&txn, &self.path, ROWS)?;
        copy.table(&txn, &self.path, EVENTS)?;
        copy.table(&txn, &self.path, BLOBS)?;
        copy.table(&txn, &self.path, BLOB_USES)?;
        copy.table(&txn, &self.path, CHECKPOINT)?;
        let meta = StoreMeta::read(&txn.open_table(META).map_err(|e| self.redb(e))?, &self.path)?;
        let meta = meta.ok_or_else(|| self.damaged("it does not say which format it has"))?;
        // Last, so that a copy without it is no store at all.
        copy.write(|txn| StoreMeta { backup: true, ..meta }.write(txn, None))?;
        copy.finish()
    }
}
