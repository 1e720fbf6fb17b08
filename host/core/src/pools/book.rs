//! The pools as one cycle or one group of a plan sees them: what is used, what is left, exact undo.

use super::ceiling::ceilings;
use super::{Draw, Metric, Scope, scopes_of_who};
use crate::records::Job;
use crate::state::State;
use ephor_model::{AccountId, QosId, QueueId, ResourceId, Uid};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What decides which limits bind a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    /// Its queue.
    pub queue: QueueId,
    /// Its account.
    pub account: AccountId,
    /// Its user.
    pub user: Uid,
    /// Its QOS.
    pub qos: Option<QosId>,
}

impl Who {
    /// Whose a job is.
    pub fn of(job: &Job) -> Self {
        Self { queue: job.queue, account: job.account, user: job.spec.owner.uid, qos: job.qos }
    }
}

/// One bound: a row of the table `pools`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Whose jobs count.
    pub scope: Scope,
    /// What of them counts.
    pub metric: Metric,
    /// How much of it is used, in the metric's unit.
    pub used: i64,
    /// How much may be used.
    pub ceiling: i64,
}

/// See the module. Pools come in as the first job that draws on them does.
#[derive(Debug, Default)]
pub struct Book {
    pools: Vec<Pool>,
    by_scope: BTreeMap<Scope, Arc<[u32]>>,
    by_who: BTreeMap<Who, Arc<[u32]>>,
    /// What was drawn since the beginning, in order, so that it can be put back.
    drawn: Vec<(u32, i64)>,
    /// What those will give back who were told to end, by row; and in the order in which that was written down.
    owed: BTreeMap<u32, i64>,
    owing: Vec<(u32, i64)>,
}

/// Where a book stands.
#[derive(Clone, Copy, Debug)]
pub struct BookMark(usize, usize);

impl Book {
    /// The pools so far.
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// Rows of the pools that jobs of these draw on, licences left out.
    pub fn rows_of(&mut self, state: &State, who: Who) -> Arc<[u32]> {
        if let Some(rows) = self.by_who.get(&who) {
            return rows.clone();
        }
        let scopes = scopes_of_who(state, who);
        let rows: Vec<u32> = scopes.into_iter().flat_map(|s| self.rows_of_scope(state, s).to_vec()).collect();
        let rows: Arc<[u32]> = rows.into();
        self.by_who.insert(who, rows.clone());
        rows
    }

    /// Rows of the pools that a job draws on.
    pub fn rows_of_job(&mut self, state: &State, job: &Job) -> Arc<[u32]> {
        let rows = self.rows_of(state, Who::of(job));
        if job.licences.is_empty() {
            return rows;
        }
        let mut rows = rows.to_vec();
        for (licence, _) in &job.licences {
            rows.extend(self.rows_of_scope(state, Scope::Licence(*licence)).iter());
        }
        rows.into()
    }

    /// Rows of the pools of one scope.
    pub fn rows_of_scope(&mut self, state: &State, scope: Scope) -> Arc<[u32]> {
        if let Some(rows) = self.by_scope.get(&scope) {
            return rows.clone();
        }
        let mut counted = state.derived.pools.get(&scope).cloned().unwrap_or_default();
        if let Scope::Reservation(no) = scope {
            let nodes = state.reservations.get(&no).into_iter().flat_map(|r| &r.nodes);
            let used = nodes.filter(|n| state.derived.held.get(*n).is_some_and(|h| !h.jobs.is_empty())).count();
            counted.in_use.set(ResourceId::NODE, used as i64);
        }
        let mut rows = Vec::new();
        for (metric, ceiling) in ceilings(state, scope) {
            // What is submitted is decided at submit, not by who starts.
            if metric != Metric::Submitted {
                rows.push(self.pools.len() as u32);
                self.pools.push(Pool { scope, metric, used: counted.of(metric), ceiling });
            }
        }
        let rows: Arc<[u32]> = rows.into();
        self.by_scope.insert(scope, rows.clone());
        rows
    }

    /// The first of these pools that does not have that much left.
    pub fn lacking(&self, rows: &[u32], draw: &Draw) -> Option<u32> {
        self.lacking_with(rows, draw, |_| 0)
    }

    fn lacking_with(&self, rows: &[u32], draw: &Draw, owed: impl Fn(u32) -> i64) -> Option<u32> {
        rows.iter().copied().find(|row| {
            let asked = |pool: &Pool| draw.of(pool.metric);
            let used = |pool: &Pool| pool.used.saturating_sub(owed(*row)).saturating_add(asked(pool));
            // A job that takes nothing of a pool is not held up by it, however far it is overdrawn.
            self.pools.get(*row as usize).is_some_and(|p| asked(p) > 0 && used(p) > p.ceiling)
        })
    }

    /// These pools will get that back.
    pub fn owe(&mut self, rows: &[u32], draw: &Draw) {
        for row in rows {
            let Some(pool) = self.pools.get(*row as usize) else { continue };
            let amount = draw.of(pool.metric);
            if amount != 0 && pool.metric != Metric::Wall {
                *self.owed.entry(*row).or_default() += amount;
                self.owing.push((*row, amount));
            }
        }
    }

    /// The same as [`Self::take`], for a time at which everything that is owed was given back.
    ///
    /// # Errors
    /// The row.
    pub fn take_soon(&mut self, rows: &[u32], draw: &Draw) -> Result<(), u32> {
        let owed = |row| self.owed.get(&row).copied().unwrap_or(0);
        match self.lacking_with(rows, draw, owed) {
            Some(row) => Err(row),
            None => {
                self.write_down(rows, draw);
                Ok(())
            }
        }
    }

    /// Takes from all of these pools, or from none: the row of the first that has too little left.
    ///
    /// # Errors
    /// The row.
    pub fn take(&mut self, rows: &[u32], draw: &Draw) -> Result<(), u32> {
        if let Some(row) = self.lacking(rows, draw) {
            return Err(row);
        }
        self.write_down(rows, draw);
        Ok(())
    }

    fn write_down(&mut self, rows: &[u32], draw: &Draw) {
        for row in rows {
            let Some(pool) = self.pools.get_mut(*row as usize) else { continue };
            let amount = if pool.metric == Metric::Wall { 0 } else { draw.of(pool.metric) };
            if amount != 0 {
                pool.used = pool.used.saturating_add(amount);
                self.drawn.push((*row, amount));
            }
        }
    }

    /// Where the book stands, for [`Self::put_back`].
    pub fn mark(&self) -> BookMark {
        BookMark(self.drawn.len(), self.owing.len())
    }

    /// Puts back everything that was taken since the mark, and forgets what was owed since.
    pub fn put_back(&mut self, mark: BookMark) {
        for (row, amount) in self.owing.drain(mark.1.min(self.owing.len())..) {
            if let Some(owed) = self.owed.get_mut(&row) {
                *owed -= amount;
            }
        }
        for (row, amount) in self.drawn.drain(mark.0.min(self.drawn.len())..) {
            if let Some(pool) = self.pools.get_mut(row as usize) {
                pool.used -= amount;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ephor_model::{Licence, ResourceId, Span};

    #[test]
    fn what_is_put_back_was_never_taken() {
        let mut state = State::default();
        let licence = ResourceId(ResourceId::FIRST_SITE);
        state.licences.insert(licence, Arc::new(Licence { name: "x".into(), count: 3 }));
        let mut book = Book::default();
        let rows = book.rows_of_scope(&state, Scope::Licence(licence));
        let draw = |n| Draw { amounts: [(licence, n)].into_iter().collect(), wall: Span(1) };
        assert_eq!(book.take(&rows, &draw(2)), Ok(()));
        let before = book.pools().to_vec();
        let mark = book.mark();
        assert_eq!(book.take(&rows, &draw(1)), Ok(()));
        assert_eq!(book.take(&rows, &draw(1)), Err(rows[0]));
        book.put_back(mark);
        assert_eq!(book.pools(), before);
        assert_eq!(book.take(&rows, &draw(2)), Err(rows[0]));
        assert_eq!(book.pools(), before, "a refusal takes nothing");
    }
}
