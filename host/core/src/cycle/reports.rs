//! What a policy says of queues in numbers, for people.

use super::{Cycle, CycleRefusal};
use ephor_model::{QueueId, ResourceId};
use std::collections::BTreeMap;

/// Names that a policy may report under.
const NAMES: &[(&str, ResourceId)] =
    &[("fair.cpu", ResourceId::CPU), ("fair.mem", ResourceId::MEM), ("fair.gpu", ResourceId::GPU)];

/// What a policy said of queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reports {
    /// The share of a resource that a queue is due, in the unit of its quota.
    pub fair_shares: BTreeMap<(QueueId, ResourceId), i64>,
}

impl Cycle {
    /// Takes what a policy says of rows: a value for each.
    ///
    /// # Errors
    /// An unknown table, name or row; as many values as rows are not there; too little work left.
    pub fn report(&mut self, table: &str, name: &str, rows: &[u32], values: &[i64]) -> Result<(), CycleRefusal> {
        let known = NAMES.iter().find(|(known, _)| table == "queues" && *known == name);
        let Some((_, resource)) = known else {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            return Err(CycleRefusal::Other(format!(
                "'{name}' of '{table}' is not reported; of 'queues' are: {names}"
            )));
        };
        if rows.len() != values.len() {
            return Err(CycleRefusal::Other(format!("{} rows and {} values", rows.len(), values.len())));
        }
        self.spend(1 + rows.len() as u64)?;
        let unknown = |row: u32| CycleRefusal::Other(format!("table queues has no row {row}"));
        let queues: Result<Vec<QueueId>, _> =
            rows.iter().map(|row| self.queues.get(*row as usize).copied().ok_or_else(|| unknown(*row))).collect();
        let told = queues?.into_iter().zip(values).map(|(queue, value)| ((queue, *resource), *value));
        self.reports.fair_shares.extend(told);
        Ok(())
    }
}
