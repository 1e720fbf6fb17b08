//! A cycle over a cluster that is one pool of cores: enough to test an order, promises and what fits around them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::scheduling::{Cause, Cycle, Keep, Outcome, Part, Placing, Refusal, Scope, Slot, StopRule};
use crate::{Duration, ResourceId, Row, Timestamp};

/// A pending job.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FakeJob {
    /// Cores that it takes.
    pub cores: u32,
    /// How long it may run.
    pub limit: Duration,
}

/// A cycle. Rows of `jobs` are the pending jobs in the order in which they were added; queues are not modelled.
#[derive(Debug)]
pub struct FakeCycle {
    now: Timestamp,
    cores: u32,
    jobs: Vec<FakeJob>,
    columns: BTreeMap<(String, String), Vec<i64>>,
    state: RefCell<State>,
    saved: RefCell<Vec<State>>,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// What takes cores when, by a number that reservations are known by.
    taken: BTreeMap<u32, Taken>,
    next: u32,
    started: Vec<Row>,
    held: Vec<Row>,
    notes: Vec<(Row, String)>,
    promises: Vec<(Row, Timestamp)>,
    budget: u64,
}

#[derive(Clone, Copy, Debug)]
struct Taken {
    cores: u32,
    from: Timestamp,
    until: Timestamp,
}

/// A placement; the one pool of cores leaves nothing to choose.
#[derive(Clone, Copy, Debug, Default)]
pub struct FakePlacing;

/// A slot: a job and its start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FakeSlot {
    job: Row,
    start: Timestamp,
}

impl FakeCycle {
    /// A cluster with so many cores, all free, and work without end.
    pub fn new(now: Timestamp, cores: u32) -> Self {
        let state = RefCell::new(State { budget: u64::MAX, ..State::default() });
        let (jobs, columns, saved) = (Vec::new(), BTreeMap::new(), RefCell::default());
        Self { now, cores, jobs, columns, state, saved }
    }

    /// Adds a running job that is expected to end at that time.
    #[must_use]
    pub fn running(self, cores: u32, until: Timestamp) -> Self {
        let from = self.now;
        self.state.borrow_mut().take(Taken { cores, from, until });
        self
    }

    /// Adds a pending job behind the others.
    #[must_use]
    pub fn pending(mut self, cores: u32, limit: Duration) -> Self {
        self.jobs.push(FakeJob { cores, limit });
        self
    }

    /// Limits the work: each job tried, slot looked for and note costs one unit.
    #[must_use]
    pub fn with_budget(self, units: u64) -> Self {
        self.state.borrow_mut().budget = units;
        self
    }

    /// Adds a column.
    #[must_use]
    pub fn with_column(mut self, table: &str, name: &str, values: &[i64]) -> Self {
        self.columns.insert((table.to_owned(), name.to_owned()), values.to_vec());
        self
    }

    /// Rows that were started, in this order.
    pub fn started(&self) -> Vec<Row> {
        self.state.borrow().started.clone()
    }

    /// Notes, in this order.
    pub fn notes(&self) -> Vec<(Row, String)> {
        self.state.borrow().notes.clone()
    }

    /// Jobs that were promised a start, and when, in this order.
    pub fn promises(&self) -> Vec<(Row, Timestamp)> {
        self.state.borrow().promises.clone()
    }

    fn job(&self, row: Row) -> Result<FakeJob, Refusal> {
        self.jobs.get(row as usize).copied().ok_or_else(|| Refusal::Other(format!("there is no job {row}")))
    }

    /// Whether so many cores are free throughout.
    fn is_free(&self, state: &State, job: FakeJob, from: Timestamp) -> bool {
        let until = from.saturating_add(job.limit);
        let used_at = |at: Timestamp| -> u64 {
            state.taken.values().filter(|t| t.from <= at && at < t.until).map(|t| u64::from(t.cores)).sum()
        };
        // Use only grows where something begins.
        let begins = state.taken.values().map(|t| t.from).filter(|at| from < *at && *at < until);
        begins.chain([from]).all(|at| used_at(at) + u64::from(job.cores) <= u64::from(self.cores))
    }

    fn start(&self, row: Row) -> Result<(), Refusal> {
        let job = self.job(row)?;
        let mut state = self.state.borrow_mut();
        if state.started.contains(&row) || state.held.contains(&row) {
            return Err(Refusal::Other(format!("job {row} is not pending any more")));
        }
        state.work()?;
        if job.cores > self.cores {
            return Err(self.never(job));
        }
        if !self.is_free(&state, job, self.now) {
            return Err(Refusal::NotNow(format!("{} cores are not free for so long", job.cores)));
        }
        state.take(Taken { cores: job.cores, from: self.now, until: self.now.saturating_add(job.limit) });
        state.started.push(row);
        Ok(())
    }

    fn never(&self, job: FakeJob) -> Refusal {
        Refusal::Never(format!("needs {} cores, and there are {}", job.cores, self.cores))
    }
}

impl State {
    fn take(&mut self, taken: Taken) -> u32 {
        let number = self.next;
        self.taken.insert(number, taken);
        self.next += 1;
        number
    }

    fn work(&mut self) -> Result<(), Refusal> {
        self.budget = self.budget.checked_sub(1).ok_or(Refusal::Budget)?;
        Ok(())
    }
}

fn not_yet() -> Refusal {
    Refusal::Other("not yet".to_owned())
}

impl Placing for FakePlacing {
    fn pack(&self, _id: ResourceId) {}
    fn spread(&self, _id: ResourceId) {}
    fn require_level(&self, _level: &str) -> Result<(), Refusal> {
        Err(not_yet())
    }
    fn prefer_level(&self, _level: &str) -> Result<(), Refusal> {
        Err(not_yet())
    }
    fn rank_nodes(&self, _nodes: &[Row]) -> Result<(), Refusal> {
        Err(not_yet())
    }
    fn only_nodes(&self, _nodes: &[Row]) -> Result<(), Refusal> {
        Err(not_yet())
    }
    fn only_devices(&self, _devices: &[(Row, u32)]) -> Result<(), Refusal> {
        Err(not_yet())
    }
    fn may_claim(&self, _yes: bool) -> Result<(), Refusal> {
        Err(not_yet())
    }
}

impl Slot for FakeSlot {
    fn start(&self) -> Timestamp {
        self.start
    }
    fn nodes(&self) -> Vec<Row> {
        Vec::new()
    }
}

impl Cycle for FakeCycle {
    type Placing = FakePlacing;
    type Slot = FakeSlot;

    fn placing(&self) -> FakePlacing {
        FakePlacing
    }
    fn now(&self) -> Timestamp {
        self.now
    }
    fn budget(&self) -> u64 {
        self.state.borrow().budget
    }
    fn causes(&self) -> Vec<Cause> {
        Vec::new()
    }
    fn outcomes(&self) -> Vec<bool> {
        Vec::new()
    }

    fn rows(&self, table: &str) -> Result<u32, Refusal> {
        let column = self.columns.iter().find(|((of, _), _)| of == table).map(|(_, values)| values.len());
        match column {
            None if table == "jobs" => Ok(self.jobs.len() as u32),
            None => Err(Refusal::Other(format!("there is no table {table:?}"))),
            Some(rows) => Ok(rows as u32),
        }
    }

    fn column(&self, table: &str, name: &str, rows: Option<&[Row]>) -> Result<Vec<i64>, Refusal> {
        let Some(column) = self.columns.get(&(table.to_owned(), name.to_owned())) else {
            return Err(Refusal::Other(format!("there is no column {name:?} of {table:?}")));
        };
        let Some(rows) = rows else { return Ok(column.clone()) };
        let value = |row: &Row| {
            column.get(*row as usize).copied().ok_or_else(|| Refusal::Other(format!("there is no row {row}")))
        };
        rows.iter().map(value).collect()
    }

    fn ragged(&self, _table: &str, _name: &str, _rows: &[Row]) -> Result<(Vec<u32>, Vec<i64>), Refusal> {
        Err(not_yet())
    }

    fn next(&self, _scope: Scope, after: Option<Row>, n: u32) -> Vec<Row> {
        let state = self.state.borrow();
        let first = after.map_or(0, |row| row.saturating_add(1));
        (first..self.jobs.len() as u32)
            .filter(|row| !state.started.contains(row) && !state.held.contains(row))
            .take(n as usize)
            .collect()
    }

    fn try_start(&self, job: Row, _part: Option<Part>, _how: &FakePlacing) -> Result<Outcome, Refusal> {
        self.start(job).map(|()| Outcome::Started)
    }

    fn start_in_order(&self, jobs: &[Row], _how: &FakePlacing, stop: StopRule) -> Vec<Outcome> {
        let mut stopped = false;
        let mut each = |row: &Row| {
            if stopped {
                return Outcome::Untried;
            }
            match self.start(*row) {
                Ok(()) => Outcome::Started,
                Err(why) => {
                    stopped = stop == StopRule::FirstRefusal && !matches!(why, Refusal::Never(_));
                    Outcome::Refused(why)
                }
            }
        };
        jobs.iter().map(&mut each).collect()
    }

    fn earliest_start(
        &self,
        row: Row,
        _part: Option<Part>,
        _how: &FakePlacing,
        from: Timestamp,
    ) -> Result<FakeSlot, Refusal> {
        let job = self.job(row)?;
        let mut state = self.state.borrow_mut();
        state.work()?;
        if job.cores > self.cores {
            return Err(self.never(job));
        }
        let from = from.max(self.now);
        let mut times: Vec<Timestamp> = state.taken.values().map(|t| t.until).filter(|at| *at > from).collect();
        times.push(from);
        times.sort_unstable();
        match times.into_iter().find(|at| self.is_free(&state, job, *at)) {
            Some(start) => Ok(FakeSlot { job: row, start }),
            None => Err(self.never(job)),
        }
    }

    fn reserve(&self, slot: &FakeSlot, keep: Keep) -> Result<u32, Refusal> {
        if keep == Keep::Durable {
            return Err(not_yet());
        }
        let job = self.job(slot.job)?;
        let mut state = self.state.borrow_mut();
        state.work()?;
        state.promises.push((slot.job, slot.start));
        Ok(state.take(Taken { cores: job.cores, from: slot.start, until: slot.start.saturating_add(job.limit) }))
    }

    fn lift(&self, reservation: u32) -> Result<(), Refusal> {
        match self.state.borrow_mut().taken.remove(&reservation) {
            Some(_) => Ok(()),
            None => Err(Refusal::Other(format!("there is no reservation {reservation}"))),
        }
    }

    fn evict(&self, _: Row, _: Option<Part>, _: u32, _: Duration, _: &str) -> Result<(), Refusal> {
        Err(not_yet())
    }
    fn re_place(&self, _job: Row, _part: Option<Part>, _how: &FakePlacing) -> Result<Outcome, Refusal> {
        Err(not_yet())
    }

    fn hold(&self, job: Row, why: &str) -> Result<(), Refusal> {
        self.note(job, why)?;
        self.state.borrow_mut().held.push(job);
        Ok(())
    }

    fn note(&self, job: Row, why: &str) -> Result<(), Refusal> {
        self.job(job)?;
        let mut state = self.state.borrow_mut();
        state.work()?;
        state.notes.push((job, why.to_owned()));
        Ok(())
    }

    fn savepoint(&self) -> u32 {
        let mut saved = self.saved.borrow_mut();
        saved.push(self.state.borrow().clone());
        saved.len() as u32 - 1
    }

    fn rollback(&self, savepoint: u32) -> Result<(), Refusal> {
        let mut saved = self.saved.borrow_mut();
        let Some(old) = saved.get(savepoint as usize).cloned() else {
            return Err(Refusal::Other(format!("there is no savepoint {savepoint}")));
        };
        saved.truncate(savepoint as usize);
        // Work that was done stays done.
        let budget = self.state.borrow().budget;
        *self.state.borrow_mut() = State { budget, ..old };
        Ok(())
    }

    fn accept(&self, savepoint: u32) -> Result<(), Refusal> {
        let mut saved = self.saved.borrow_mut();
        if saved.len() as u32 <= savepoint {
            return Err(Refusal::Other(format!("there is no savepoint {savepoint}")));
        }
        saved.truncate(savepoint as usize);
        Ok(())
    }
}
