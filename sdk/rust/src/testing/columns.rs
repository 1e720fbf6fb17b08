//! A batch of rows as columns, for the roles priority and accounting.

use std::collections::BTreeMap;

use crate::{Timestamp, accounting, priority};

/// Columns and totals by name. Every column has the same length.
#[derive(Clone, Debug, Default)]
pub struct FakeBatch {
    now: Timestamp,
    count: usize,
    columns: BTreeMap<String, Vec<i64>>,
    totals: BTreeMap<String, i64>,
}

impl FakeBatch {
    /// A batch of `count` rows without columns.
    pub fn new(now: Timestamp, count: usize) -> Self {
        Self { now, count, ..Self::default() }
    }

    /// Adds a column.
    ///
    /// # Panics
    /// Where its length is not the number of rows.
    #[must_use]
    pub fn column(mut self, name: &str, values: &[i64]) -> Self {
        assert_eq!(values.len(), self.count, "column {name} has another length than the batch");
        self.columns.insert(name.to_owned(), values.to_vec());
        self
    }

    /// Adds a total.
    #[must_use]
    pub fn total(mut self, name: &str, value: i64) -> Self {
        self.totals.insert(name.to_owned(), value);
        self
    }

    fn find(&self, name: &str) -> Result<Vec<i64>, String> {
        let known = || self.columns.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        self.columns.get(name).cloned().ok_or_else(|| format!("unknown column {name:?}; known: {}", known()))
    }
}

impl priority::Batch for FakeBatch {
    fn now(&self) -> Timestamp {
        self.now
    }
    fn count(&self) -> u32 {
        self.count as u32
    }
    fn column(&self, name: &str) -> Result<Vec<i64>, String> {
        self.find(name)
    }
    fn total(&self, name: &str) -> Result<i64, String> {
        let known = || self.totals.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        self.totals.get(name).copied().ok_or_else(|| format!("unknown total {name:?}; known: {}", known()))
    }
}

impl accounting::Batch for FakeBatch {
    fn count(&self) -> u32 {
        self.count as u32
    }
    fn column(&self, name: &str) -> Result<Vec<i64>, String> {
        self.find(name)
    }
}
