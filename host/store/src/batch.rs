//! What one transaction writes.

use ephor_core::decide::Batch;
use ephor_core::{Row, RowKey, Stamped, State};
use ephor_model::Digest;

/// Events, the rows that they changed, and the blobs that the rows name.
#[derive(Debug)]
pub struct CommitBatch<'a> {
    /// Number of the first event: one more than that of the last event before; the very first is 1.
    pub first_event: u64,
    /// Events in order.
    pub events: &'a [Stamped],
    /// Rows as they are after the events; `None`: the row is gone.
    pub rows: Vec<(RowKey, Option<Row>)>,
    /// Blobs that the rows may name: scripts, environments, components. Those that the store has already are not
    /// written again; those that no row names are not kept. A blob goes when the last row that names it goes.
    pub blobs: Vec<(Digest, Vec<u8>)>,
}

impl<'a> CommitBatch<'a> {
    /// The batch whose events were the last that `state` saw.
    pub fn of(state: &State, batch: &'a Batch, blobs: Vec<(Digest, Vec<u8>)>) -> Self {
        let rows = batch.touched.iter().map(|key| (key.clone(), state.row(key))).collect();
        // A state counts every event it applied, so it counts at least those of its last batch.
        let first_event = (state.meta.events + 1).saturating_sub(batch.events.len() as u64);
        Self { first_event, events: &batch.events, rows, blobs }
    }
}
