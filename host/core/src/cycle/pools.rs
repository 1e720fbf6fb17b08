//! Limits and licences inside a cycle: checked before placement, drawn with the start, told to those that wait.

use super::{Cycle, CycleRefusal};
use crate::pools::{Draw, Scope};
use ephor_model::{Allocation, JobId};
use ephor_placement::Mark;
use std::sync::Arc;

impl Cycle {
    /// Rows of the pools that a job draws on, where each has what the job asks for.
    pub(super) fn pools_with_room(&mut self, id: JobId) -> Result<Arc<[u32]>, CycleRefusal> {
        let rows = self.pools_of(id);
        if rows.is_empty() {
            return Ok(rows);
        }
        let Some((entry, _)) = self.state.element(id) else { return Ok(rows) };
        match self.book.lacking(&rows, &Draw::asked(&entry.job)) {
            Some(row) => Err(CycleRefusal::Pool(row)),
            None => Ok(rows),
        }
    }

    /// Draws what a placed job holds in fact, which may be more than what it asked for at least. Where that is too
    /// much, the placement is taken back.
    pub(super) fn draw(
        &mut self,
        id: JobId,
        rows: &[u32],
        allocation: &Allocation,
        before: Mark,
    ) -> Result<(), CycleRefusal> {
        if rows.is_empty() {
            return Ok(());
        }
        let Some((entry, _)) = self.state.element(id) else { return Ok(()) };
        let granted = self.replica.pending(id).map_or(ephor_model::Span(i64::MAX), |p| p.limit);
        self.book.take(rows, &Draw::held(&entry.job, allocation, granted)).map_err(|row| {
            self.replica.cluster.rollback(before);
            CycleRefusal::Pool(row)
        })
    }

    pub(super) fn explain_pool(&mut self, id: JobId, row: u32) {
        let Some((entry, _)) = self.state.element(id) else { return };
        let Some(pool) = self.book.pools().get(row as usize) else { return };
        // Why there is no room in a reservation was said when it was tried.
        if matches!(pool.scope, Scope::Reservation(_)) {
            return;
        }
        let (code, text) = pool.why(&self.state, &entry.job);
        self.note_for(id, code, text.into(), None);
    }

    /// Rows of the pools that a pending job draws on.
    pub(super) fn pools_of(&mut self, id: JobId) -> Arc<[u32]> {
        let Some(pending) = self.replica.pending(id) else { return Arc::default() };
        let (who, licensed) = (pending.who, pending.licensed);
        match self.state.element(id) {
            Some((entry, _)) if licensed => self.book.rows_of_job(&self.state, &entry.job),
            _ => self.book.rows_of(&self.state, who),
        }
    }

    /// Brings in the pools of every job that could start and every licence, so that the table is whole.
    pub(super) fn hand_out_pools(&mut self) -> Result<(), CycleRefusal> {
        self.spend(self.replica.eligible_count() as u64)?;
        let jobs: Vec<JobId> = self.replica.order_after(None).map(|(rank, _)| rank.3).collect();
        for job in jobs {
            self.pools_of(job);
        }
        for licence in self.state.licences.keys() {
            self.book.rows_of_scope(&self.state, Scope::Licence(*licence));
        }
        Ok(())
    }
}
