//! Law 3, checked on a file: the events, folded from the checkpoint, give the rows byte for byte.

use super::commit::count;
use super::tables::{BLOB_USES, BLOBS, CHECKPOINT, EVENTS, ROWS, StoreMeta};
use super::{OpenOptions, Shared};
use crate::error::{StoreError, calmly};
use crate::overlay::Overlay;
use crate::{codec, key};
use ephor_core::{Row, State};
use ephor_model::{Digest, Epoch};
use redb::{Database, ReadTransaction, ReadableTable};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Most problems that a report lists.
const PROBLEMS_LISTED: usize = 20;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The file.
    pub path: PathBuf,
    /// Bytes of the file.
    pub bytes: u64,
    /// Whether it is a backup.
    pub backup: bool,
    /// Epoch of the last commit.
    pub epoch: Epoch,
    /// Number of the last event.
    pub last_event: u64,
    /// The last event that the checkpoint holds; 0: there is none.
    pub checkpoint: u64,
    /// Events that were folded after it.
    pub folded: u64,
    /// Rows of the state.
    pub rows: u64,
    /// Scripts, environments and components.
    pub blobs: u64,
    /// What is wrong, at most 20 lines; none: the file is sound.
    pub problems: Vec<String>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    fn problem(&mut self, text: impl FnOnce() -> String) {
        match self.problems.len() {
            n if n < PROBLEMS_LISTED => self.problems.push(text()),
            n if n == PROBLEMS_LISTED => self.problems.push("and more".into()),
            _ => {}
        }
    }
}

/// Checks a backup, or the store of a controller that does not run: every page, every row, every blob, and that the
/// events give the rows. The file is not changed, not even repaired.
///
/// # Errors
/// The file cannot be read, is in use, of another version, or so damaged that it cannot be folded.
pub fn verify(path: &Path) -> Result<Report, StoreError> {
    let io = |e| StoreError::io(path, e);
    let file = File::open(path).map_err(io)?;
    match file.try_lock_shared() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(StoreError::Busy { path: path.to_owned(), pid: None }),
        Err(TryLockError::Error(e)) => return Err(io(e)),
    }
    let bytes = file.metadata().map_err(io)?.len();
    if bytes == 0 {
        return Err(StoreError::damaged(path, "it is empty"));
    }
    let backend = Overlay::new(file).map_err(io)?;
    let report = calmly(path, || {
        let db = Database::builder()
            .set_cache_size(OpenOptions::default().cache_bytes)
            .set_check_integrity_on_open(true)
            .create_with_backend(backend)
            .map_err(|e| StoreError::redb(path, e))?;
        Shared { db, path: path.to_owned(), closed: AtomicBool::new(false), _lock: None }.check()
    })?;
    Ok(Report { bytes, ..report })
}

impl Shared {
    pub(super) fn check(&self) -> Result<Report, StoreError> {
        let meta = self.meta()?;
        let txn = self.read()?;
        let mut report = Report {
            path: self.path.clone(),
            backup: meta.backup,
            epoch: meta.epoch,
            checkpoint: meta.checkpoint.event,
            ..Report::default()
        };
        let mut state = self.checkpoint_state(&txn, &meta)?;
        self.fold(&txn, &mut state, &mut report)?;
        report.last_event = state.meta.events;
        if state.meta.epoch != meta.epoch {
            let (rows, store) = (state.meta.epoch, meta.epoch);
            report.problem(|| format!("the events end in epoch {rows}, the store is at epoch {store}"));
        }
        let uses = self.compare_rows(&txn, &state, &mut report)?;
        self.check_blobs(&txn, &uses, &mut report)?;
        Ok(report)
    }

    fn checkpoint_state(&self, txn: &ReadTransaction, meta: &StoreMeta) -> Result<State, StoreError> {
        let table = txn.open_table(CHECKPOINT).map_err(|e| self.redb(e))?;
        let place = meta.checkpoint;
        let mut rows = Vec::new();
        for number in place.first..place.first + place.pieces {
            let piece = table.get(number).map_err(|e| self.redb(e))?;
            let piece = piece.ok_or_else(|| self.damaged(format!("piece {number} of the checkpoint is missing")))?;
            let mut rest = piece.value();
            while !rest.is_empty() {
                let bad = || self.damaged(format!("piece {number} of the checkpoint is cut short"));
                let (key, value) = codec::next_row(&mut rest).ok_or_else(bad)?;
                rows.push(self.decode_row(key, value)?);
            }
        }
        let state = State::from_rows(rows).map_err(|what| self.damaged(format!("the checkpoint: {what}")))?;
        if state.meta.events != place.event {
            let (held, said) = (state.meta.events, place.event);
            return Err(self.damaged(format!("the checkpoint stands at event {held} instead of {said}")));
        }
        Ok(state)
    }

    fn fold(&self, txn: &ReadTransaction, state: &mut State, report: &mut Report) -> Result<(), StoreError> {
        let table = txn.open_table(EVENTS).map_err(|e| self.redb(e))?;
        let mut next = None;
        for entry in table.iter().map_err(|e| self.redb(e))? {
            let (first, batch) = entry.map_err(|e| self.redb(e))?;
            let first = first.value();
            let events = self.decode_events(first, batch.value())?.events;
            // Older events than the checkpoint are not needed, but have no holes either.
            let expected = next.unwrap_or_else(|| first.min(state.meta.events + 1));
            if first != expected {
                return Err(self.damaged(format!("events {expected} to {} are missing", first.saturating_sub(1))));
            }
            next = Some(first + events.len() as u64);
            let mut touched = BTreeSet::new();
            for (number, event) in (first..).zip(&events).filter(|(n, _)| *n > report.checkpoint) {
                state.apply(event, &mut touched).map_err(|e| self.damaged(format!("{e} (number {number})")))?;
                report.folded += 1;
            }
        }
        Ok(())
    }

    /// Compares the stored rows with those of the folded state, and counts the blobs that they name.
    fn compare_rows(
        &self,
        txn: &ReadTransaction,
        state: &State,
        report: &mut Report,
    ) -> Result<BTreeMap<Digest, i64>, StoreError> {
        let table = txn.open_table(ROWS).map_err(|e| self.redb(e))?;
        let mut uses = BTreeMap::new();
        let mut wanted: BTreeSet<Vec<u8>> = state.row_keys().iter().map(key::encode).collect();
        if state.meta.events == 0 {
            // The counters get their row with the first event.
            wanted.clear();
        }
        for entry in table.iter().map_err(|e| self.redb(e))? {
            let (key, value) = entry.map_err(|e| self.redb(e))?;
            let (row_key, row): (_, Row) = self.decode_row(key.value(), value.value())?;
            count(&row, 1, &mut uses);
            report.rows += 1;
            wanted.remove(key.value());
            match state.row(&row_key) {
                Some(folded) if codec::encode(&folded) == value.value() => {}
                Some(_) => report.problem(|| format!("row {row_key:?} is not what the events give")),
                None => report.problem(|| format!("row {row_key:?} is there, but not by the events")),
            }
        }
        for key in &wanted {
            report.problem(|| format!("row {:?} is missing", key::decode(key)));
        }
        Ok(uses)
    }

    fn check_blobs(
        &self,
        txn: &ReadTransaction,
        uses: &BTreeMap<Digest, i64>,
        report: &mut Report,
    ) -> Result<(), StoreError> {
        let blobs = txn.open_table(BLOBS).map_err(|e| self.redb(e))?;
        let counts = txn.open_table(BLOB_USES).map_err(|e| self.redb(e))?;
        let mut stored = BTreeMap::new();
        for entry in counts.iter().map_err(|e| self.redb(e))? {
            let (digest, count) = entry.map_err(|e| self.redb(e))?;
            stored.insert(Digest(*digest.value()), count.value() as i64);
        }
        if stored != *uses {
            let wrong = stored.keys().chain(uses.keys()).find(|d| stored.get(d) != uses.get(d));
            report
                .problem(|| format!("the number of uses of blob {} is not right", wrong.copied().unwrap_or_default()));
        }
        let mut missing: BTreeSet<_> = uses.keys().copied().collect();
        for entry in blobs.iter().map_err(|e| self.redb(e))? {
            let (digest, bytes) = entry.map_err(|e| self.redb(e))?;
            let digest = Digest(*digest.value());
            report.blobs += 1;
            if !missing.remove(&digest) {
                report.problem(|| format!("blob {digest} is kept though nothing names it"));
            }
            if Digest(Sha256::digest(bytes.value()).into()) != digest {
                report.problem(|| format!("blob {digest} is not what its digest says"));
            }
        }
        for digest in missing {
            report.problem(|| format!("blob {digest} is missing"));
        }
        Ok(())
    }
}
