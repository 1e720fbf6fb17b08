//! Limits and licences inside a cycle: checked before placement, drawn with the start, told to those that wait.

use super::refusals::Barred;
use super::{Cycle, CycleRefusal};
use crate::pools::{Draw, Scope};
use ephor_model::{Allocation, JobId, Span};
use std::sync::Arc;

impl Cycle {
    /// Whether each pool that a job draws on has what it asks for.
    pub(super) fn pools_with_room(&mut self, id: JobId) -> Result<(), CycleRefusal> {
        if let Some(barred) = self.barred(id) {
            return Err(CycleRefusal::Pool(barred.pool));
        }
        let rows = self.pools_of(id);
        if rows.is_empty() {
            return Ok(());
        }
        let Some((entry, _)) = self.state.element(id) else { return Ok(()) };
        let Some(pool) = self.book.lacking(&rows, &Draw::asked(&entry.job)) else { return Ok(()) };
        if let Some(pending) = self.replica.pending(id) {
            self.refused.bar(self.replica.kind_of(pending), id, pool);
        }
        Err(CycleRefusal::Pool(pool))
    }

    /// What is known to stand against a job from one that asks for the same under the same limits.
    fn barred(&self, id: JobId) -> Option<Barred> {
        self.refused.barred(self.replica.kind_of(self.replica.pending(id)?))
    }

    /// Draws what a placed job holds in fact, which may be more than what it asked for at least. Where that is too much
    /// nothing is drawn, and the caller takes the placement back.
    pub(super) fn draw(&mut self, id: JobId, allocation: &Allocation) -> Result<(), CycleRefusal> {
        let rows = self.pools_of(id);
        if rows.is_empty() {
            return Ok(());
        }
        let Some((entry, _)) = self.state.element(id) else { return Ok(()) };
        let granted = self.replica.pending(id).map_or(Span(i64::MAX), |p| p.limit);
        self.book.take(&rows, &Draw::held(&entry.job, allocation, granted)).map_err(CycleRefusal::Pool)
    }

    /// The same for a job that starts once everything that is being released came free.
    pub(super) fn draw_soon(&mut self, id: JobId, allocation: &Allocation) -> Result<(), CycleRefusal> {
        let Some((entry, _)) = self.state.element(id) else { return Ok(()) };
        let job = entry.job.clone();
        let rows = self.book.rows_of_job(&self.state, &job);
        let granted = job.spec.time_limit.unwrap_or(Span(i64::MAX));
        self.book.take_soon(&rows, &Draw::held(&job, allocation, granted)).map_err(CycleRefusal::Pool)
    }

    pub(super) fn explain_pool(&mut self, id: JobId, row: u32) {
        // A queue that waits for a limit is long, and all but the first and those who came have heard it.
        let came = self.replica.pending(id).is_none_or(|pending| self.replica.has_arrived(&pending.rank));
        if !came && self.barred(id).is_some_and(|barred| barred.job != id) {
            return;
        }
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

    /// Rows of the pools that a job draws on, or how much of each it asks for.
    pub(super) fn pools_cell(&mut self, name: &str, row: u32) -> Result<Vec<i64>, CycleRefusal> {
        let id = self.job(row)?;
        let rows = self.pools_of(id);
        if name == "pools" {
            return Ok(rows.iter().map(|r| i64::from(*r)).collect());
        }
        let gone = || CycleRefusal::Other(format!("the job of row {row} is gone"));
        let (entry, _) = self.state.element(id).ok_or_else(gone)?;
        let draw = Draw::asked(&entry.job);
        Ok(rows.iter().filter_map(|r| self.book.pools().get(*r as usize)).map(|p| draw.of(p.metric)).collect())
    }

    pub(super) fn pool_cell(&self, name: &str, row: u32) -> Result<i64, CycleRefusal> {
        let unknown = || CycleRefusal::Other(format!("table pools has no row {row}"));
        let pool = self.book.pools().get(row as usize).ok_or_else(unknown)?;
        Ok(if name == "used" { pool.used } else { pool.ceiling })
    }
}
