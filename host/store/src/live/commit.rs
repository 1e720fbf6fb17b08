//! One batch in one transaction: events, rows, blobs and how often rows name them.

use super::LiveStore;
use super::events::EventBatch;
use super::tables::{BLOB_USES, BLOBS, EVENTS, ROWS};
use crate::error::StoreError;
use crate::{CommitBatch, codec, key};
use ephor_core::Row;
use ephor_model::{Digest, Epoch};
use redb::{Durability, ReadableTable, WriteTransaction};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// By how much the number of uses of a blob changes.
type Uses = BTreeMap<Digest, i64>;

impl LiveStore {
    pub(super) fn commit_batch(&mut self, epoch: Epoch, batch: &CommitBatch<'_>) -> Result<(), StoreError> {
        self.shared.check_open()?;
        let Some(last) = batch.events.last() else {
            // Rows change only by events (law 3).
            debug_assert!(batch.rows.is_empty(), "rows changed without an event");
            return Ok(());
        };
        if epoch < self.meta.epoch {
            return Err(StoreError::Fenced { stored: self.meta.epoch, given: epoch });
        }
        if batch.first_event != self.last_event + 1 {
            return Err(StoreError::Gap { expected: self.last_event + 1, given: batch.first_event });
        }
        let mut meta = self.meta;
        meta.epoch = epoch;
        // The first commit of a recovered backup is that of its new epoch: from here on it is an ordinary store.
        meta.backup = false;
        let head = EventBatch { at: last.at, bytes_before: self.event_end, events: batch.events };
        let events = codec::encode(&head);
        let written = self.in_transaction(|txn| {
            let uses = write_rows(txn, batch)?;
            write_blobs(txn, batch, &uses)?;
            txn.open_table(EVENTS)?.insert(batch.first_event, events.as_slice())?;
            meta.write(txn, Some(&self.meta))?;
            Ok(())
        });
        written.map_err(|failure| self.fail(failure))?;
        self.meta = meta;
        self.last_event += batch.events.len() as u64;
        self.event_end += events.len() as u64;
        self.oldest_at.get_or_insert(last.at);
        Ok(())
    }

    /// One durable transaction: all of it or nothing.
    pub(super) fn in_transaction(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut txn = self.shared.db.begin_write()?;
        txn.set_durability(Durability::Immediate)?;
        work(&txn)?;
        txn.commit()?;
        Ok(())
    }

    /// Turns a failure into an error, and closes the store where it is more than a refusal.
    pub(super) fn fail(&self, failure: Failure) -> StoreError {
        let error = match failure {
            Failure::Redb(e) => self.shared.redb(e),
            Failure::Damaged(what) => self.shared.damaged(what),
            Failure::MissingBlob(digest) => StoreError::MissingBlob(digest),
        };
        if !error.is_refusal() {
            self.shared.closed.store(true, Ordering::Release);
        }
        error
    }
}

/// Why a transaction was not committed.
pub(super) enum Failure {
    Redb(redb::Error),
    Damaged(String),
    MissingBlob(Digest),
}

impl<E: Into<redb::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Redb(error.into())
    }
}

fn write_rows(txn: &WriteTransaction, batch: &CommitBatch<'_>) -> Result<Uses, Failure> {
    let mut uses = Uses::new();
    let mut rows: Vec<_> = batch.rows.iter().map(|(key, row)| (key::encode(key), row)).collect();
    // In order, so that neighbours are written while their page is at hand.
    rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let mut table = txn.open_table(ROWS)?;
    for (key, row) in rows {
        let before = match row {
            Some(row) => {
                count(row, 1, &mut uses);
                table.insert(key.as_slice(), codec::encode(row).as_slice())?
            }
            None => table.remove(key.as_slice())?,
        };
        if let Some(before) = before
            && key::may_name_blobs(&key)
        {
            let before: Row = codec::decode(before.value()).map_err(Failure::Damaged)?;
            count(&before, -1, &mut uses);
        }
    }
    Ok(uses)
}

/// Counts the blobs that a row names.
pub(super) fn count(row: &Row, step: i64, uses: &mut Uses) {
    let mut name = |digest: Digest| *uses.entry(digest).or_default() += step;
    match row {
        Row::Job(job) => {
            job.script.into_iter().for_each(&mut name);
            name(job.environment);
        }
        Row::Policy(slot) => slot.live.iter().chain(&slot.earlier).for_each(|g| name(g.component)),
        _ => {}
    }
}

fn write_blobs(txn: &WriteTransaction, batch: &CommitBatch<'_>, uses: &Uses) -> Result<(), Failure> {
    if uses.values().all(|step| *step == 0) {
        return Ok(());
    }
    let given: BTreeMap<&Digest, &Vec<u8>> = batch.blobs.iter().map(|(digest, bytes)| (digest, bytes)).collect();
    let mut counts = txn.open_table(BLOB_USES)?;
    let mut blobs = txn.open_table(BLOBS)?;
    for (digest, step) in uses.iter().filter(|(_, step)| **step != 0) {
        let before = counts.get(&digest.0)?.map_or(0, |n| n.value());
        let Some(after) = before.checked_add_signed(*step) else {
            return Err(Failure::Damaged(format!("blob {digest} is named less often than it was given up")));
        };
        if before == 0 {
            let bytes = given.get(digest).ok_or(Failure::MissingBlob(*digest))?;
            blobs.insert(&digest.0, bytes.as_slice())?;
        }
        if after == 0 {
            blobs.remove(&digest.0)?;
            counts.remove(&digest.0)?;
        } else {
            counts.insert(&digest.0, after)?;
        }
    }
    Ok(())
}
