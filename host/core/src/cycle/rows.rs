//! What stands behind the rows that a policy knows: looked up once, however many columns are read.

use super::{Cycle, CycleRefusal};
use crate::records::{Attempt, Element, JobEntry};
use ephor_model::{JobId, NodeId};
use std::sync::Arc;

/// A row of `jobs`.
pub(super) struct JobRow {
    id: JobId,
    /// `None`: the state does not know it.
    entry: Option<Arc<JobEntry>>,
}

/// A row of `attempts`.
pub(super) struct AttemptRow {
    attempt: Arc<Attempt>,
    entry: Option<Arc<JobEntry>>,
}

impl Cycle {
    pub(super) fn row_of(&mut self, job: JobId) -> u32 {
        *self.rows.entry(job).or_insert_with(|| {
            let entry = self.state.find(job).map(|(entry, _)| entry.clone());
            self.jobs.push(JobRow { id: job, entry });
            self.jobs.len() as u32 - 1
        })
    }

    pub(super) fn job(&self, row: u32) -> Result<JobId, CycleRefusal> {
        self.job_row(row).map(|found| found.id)
    }

    fn job_row(&self, row: u32) -> Result<&JobRow, CycleRefusal> {
        let unknown = || CycleRefusal::Other(format!("row {row} of table jobs was not handed out"));
        self.jobs.get(row as usize).ok_or_else(unknown)
    }

    /// The job behind a row, with its record.
    pub(super) fn job_entry(&self, row: u32) -> Result<(JobId, &JobEntry, &Element), CycleRefusal> {
        let JobRow { id, entry } = self.job_row(row)?;
        let gone = || CycleRefusal::Other(format!("the job of row {row} is gone"));
        let entry = entry.as_deref().ok_or_else(gone)?;
        let element = entry.elements.get((id.0 - entry.job.id.0) as usize).ok_or_else(gone)?;
        Ok((*id, entry, element))
    }

    /// The node behind a row of `nodes`.
    pub fn node_id(&self, row: u32) -> Option<NodeId> {
        self.node_rows().get(row as usize).copied()
    }

    /// The row of a node in `nodes`.
    pub fn node_row(&self, node: NodeId) -> Option<u32> {
        self.node_rows().binary_search(&node).ok().map(|i| i as u32)
    }

    pub(super) fn node_rows(&self) -> &[NodeId] {
        self.nodes.get_or_init(|| self.state.nodes.keys().copied().collect())
    }

    /// The attempt behind a row of `attempts`.
    pub(super) fn attempt(&self, row: u32) -> Result<&Attempt, CycleRefusal> {
        self.attempt_row(row).map(|found| found.attempt.as_ref())
    }

    /// The same with its job's record.
    pub(super) fn attempt_entry(&self, row: u32) -> Result<(&Attempt, &JobEntry), CycleRefusal> {
        let AttemptRow { attempt, entry } = self.attempt_row(row)?;
        let gone = || CycleRefusal::Other(format!("the job of attempt {row} is gone"));
        Ok((attempt, entry.as_deref().ok_or_else(gone)?))
    }

    fn attempt_row(&self, row: u32) -> Result<&AttemptRow, CycleRefusal> {
        let rows = self.attempts.get_or_init(|| {
            let row = |attempt: &Arc<Attempt>| {
                let entry = self.state.find(attempt.key.job).map(|(entry, _)| entry.clone());
                AttemptRow { attempt: attempt.clone(), entry }
            };
            self.state.attempts.values().map(row).collect()
        });
        let unknown = || CycleRefusal::Other(format!("table attempts has no row {row}"));
        rows.get(row as usize).ok_or_else(unknown)
    }
}
