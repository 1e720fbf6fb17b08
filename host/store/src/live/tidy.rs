//! Keeps the events bounded: a checkpoint of all rows first, then the oldest events go.
//!
//! Both happen in small steps between commits, so that a submit never waits for a whole checkpoint.

use super::commit::Failure;
use super::events;
use super::tables::{CHECKPOINT, CheckpointPlace, EVENTS};
use super::{LiveStore, StoreMeta};
use crate::error::StoreError;
use crate::{Retention, Tidied, codec, key};
use ephor_core::{RowKey, State};
use ephor_model::{Span, Timestamp};
use redb::{ReadableTable, WriteTransaction};

/// Bytes of one piece of a checkpoint.
const PIECE_BYTES: usize = 256 << 10;
/// Pieces written in one step.
const PIECES_PER_STEP: u64 = 4;
/// Batches of events dropped in one step.
const BATCHES_PER_STEP: usize = 512;

/// A checkpoint that is being written.
#[derive(Debug)]
pub(super) struct Underway {
    /// The state that it keeps; shares its structure with the live one.
    state: State,
    /// Keys of all its rows.
    keys: Vec<RowKey>,
    /// How many of them are written.
    done: usize,
    /// Where it will be.
    place: CheckpointPlace,
}

/// What is to be done next.
enum Work {
    Nothing,
    Checkpoint,
    /// Batches to drop, by the number of their first event.
    Drop(Vec<u64>),
}

impl LiveStore {
    pub(super) fn tidy_step(&mut self, state: &State, keep: &Retention) -> Result<Tidied, StoreError> {
        self.shared.check_open()?;
        self.check_is_last(state)?;
        if self.underway.is_some() {
            self.checkpoint_step()?;
            return Ok(Tidied::MoreToDo);
        }
        // A plain look at counters, so that a sequencer can ask after every commit.
        if self.event_end - self.event_begin <= keep.bytes && !self.oldest_is_older(state.meta.now, keep.age) {
            return Ok(Tidied::Done);
        }
        match self.next_work(state.meta.now, keep)? {
            Work::Nothing => Ok(Tidied::Done),
            Work::Checkpoint => {
                self.begin_checkpoint(state);
                self.checkpoint_step()?;
                Ok(Tidied::MoreToDo)
            }
            Work::Drop(batches) => {
                self.drop_batches(&batches)?;
                Ok(Tidied::MoreToDo)
            }
        }
    }

    pub(super) fn checkpoint_now(&mut self, state: &State) -> Result<(), StoreError> {
        self.shared.check_open()?;
        self.check_is_last(state)?;
        self.begin_checkpoint(state);
        while self.underway.is_some() {
            self.checkpoint_step()?;
        }
        Ok(())
    }

    fn check_is_last(&self, state: &State) -> Result<(), StoreError> {
        match state.meta.events == self.last_event {
            true => Ok(()),
            false => Err(StoreError::Gap { expected: self.last_event, given: state.meta.events }),
        }
    }

    fn oldest_is_older(&self, now: Timestamp, age: Option<Span>) -> bool {
        matches!((self.oldest_at, age), (Some(at), Some(age)) if (now - at).0 > age.0)
    }

    fn next_work(&self, now: Timestamp, keep: &Retention) -> Result<Work, StoreError> {
        let txn = self.shared.read()?;
        let table = txn.open_table(EVENTS).map_err(|e| self.shared.redb(e))?;
        let mut old = Vec::new();
        // Every batch but the last may go, as soon as a checkpoint holds it: the last says where the log ends.
        let mut batches = table.iter().map_err(|e| self.shared.redb(e))?;
        let mut entry = batches.next().transpose().map_err(|e| self.shared.redb(e))?;
        while let Some((first, value)) = entry {
            let next = batches.next().transpose().map_err(|e| self.shared.redb(e))?;
            let (first, bytes) = (first.value(), value.value());
            let head = events::decode_head(bytes).map_err(|e| self.shared.bad_batch(first, &e))?;
            let too_many = self.event_end - head.bytes_before > keep.bytes;
            let too_old = keep.age.is_some_and(|age| (now - head.at).0 > age.0);
            let Some((next_first, _)) = &next else { break };
            if old.len() >= BATCHES_PER_STEP || !(too_many || too_old) {
                break;
            }
            if next_first.value() > self.meta.checkpoint.event + 1 {
                // Not in the checkpoint: one that holds everything lasts for as long again.
                return Ok(if old.is_empty() { Work::Checkpoint } else { Work::Drop(old) });
            }
            old.push(first);
            entry = next;
        }
        Ok(if old.is_empty() { Work::Nothing } else { Work::Drop(old) })
    }

    fn begin_checkpoint(&mut self, state: &State) {
        let before = self.meta.checkpoint;
        // Keys differ from those of the checkpoint before, which stays valid until this one is whole.
        let place = CheckpointPlace { event: self.last_event, first: before.first + before.pieces, pieces: 0 };
        self.underway = Some(Underway { state: state.clone(), keys: state.row_keys(), done: 0, place });
    }

    fn checkpoint_step(&mut self) -> Result<(), StoreError> {
        let Some(mut underway) = self.underway.take() else { return Ok(()) };
        let mut meta = self.meta;
        let written = self.in_transaction(|txn| write_pieces(txn, &mut underway, &mut meta, &self.meta));
        if let Err(failure) = written {
            return Err(self.fail(failure));
        }
        if underway.done < underway.keys.len() {
            self.underway = Some(underway);
        }
        self.meta = meta;
        Ok(())
    }

    fn drop_batches(&mut self, batches: &[u64]) -> Result<(), StoreError> {
        let dropped = self.in_transaction(|txn| {
            let mut table = txn.open_table(EVENTS)?;
            for first in batches {
                table.remove(first)?;
            }
            Ok(())
        });
        dropped.map_err(|failure| self.fail(failure))?;
        self.count_events()
    }
}

/// Writes the next pieces; after the last one the checkpoint is the one that counts, and the one before goes.
fn write_pieces(
    txn: &WriteTransaction,
    underway: &mut Underway,
    meta: &mut StoreMeta,
    before: &StoreMeta,
) -> Result<(), Failure> {
    let mut table = txn.open_table(CHECKPOINT)?;
    if underway.place.pieces == 0 {
        // Pieces of one that was cut off by a restart.
        table.retain_in(underway.place.first.., |_, _| false)?;
    }
    for _ in 0..PIECES_PER_STEP {
        if underway.done == underway.keys.len() {
            break;
        }
        let mut piece = Vec::new();
        while let Some(key) = underway.keys.get(underway.done)
            && piece.len() < PIECE_BYTES
        {
            underway.done += 1;
            if let Some(row) = underway.state.row(key) {
                codec::push_row(&mut piece, &key::encode(key), &codec::encode(&row));
            }
        }
        table.insert(underway.place.first + underway.place.pieces, piece.as_slice())?;
        underway.place.pieces += 1;
    }
    if underway.done == underway.keys.len() {
        meta.checkpoint = underway.place;
        table.retain_in(..underway.place.first, |_, _| false)?;
        meta.write(txn, Some(before))?;
    }
    Ok(())
}
