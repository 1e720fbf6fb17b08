//! Batches of events as stored: one row for each commit.

use crate::codec;
use ephor_core::Stamped;
use ephor_model::Timestamp;
use serde::{Deserialize, Serialize};

/// A stored batch.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EventBatch<E> {
    /// Time of its last event.
    pub at: Timestamp,
    /// Bytes of all batches before it, dropped ones too: how much is kept is a subtraction.
    pub bytes_before: u64,
    /// The events; never empty.
    pub events: E,
}

/// The part of it that says how old and how far along it is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct EventHead {
    /// Time of the last event.
    pub at: Timestamp,
    /// Bytes of all batches before it.
    pub bytes_before: u64,
}

/// Reads a batch.
pub(crate) fn decode(bytes: &[u8]) -> Result<EventBatch<Vec<Stamped>>, String> {
    let batch: EventBatch<Vec<Stamped>> = codec::decode(bytes)?;
    match batch.events.is_empty() {
        true => Err("the batch is empty".into()),
        false => Ok(batch),
    }
}

/// Reads the head of a batch without its events.
pub(crate) fn decode_head(bytes: &[u8]) -> Result<EventHead, String> {
    codec::decode_start(bytes)
}
