//! A cycle over a cluster that is one pool of cores: enough to test an order, promises and what fits around them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::scheduling::{Afterwards, Cause, Cycle, Keep, Outcome, Part, Placing, Refusal, Scope, Slot, StopRule};
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
    causes: Vec<Cause>,
    state: RefCell<State>,
    saved: RefCell<Vec<State>>,
    /// How many attempts run when the cycle begins.
    running: usize,
    reports: RefCell<BTreeMap<(String, String), BTreeMap<Row, i64>>>,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// What runs.
    taken: Vec<Taken>,
    /// What is kept, by number; `None`: lifted.
    reservations: Vec<Option<Reserved>>,
    started: Vec<Row>,
    held: Vec<Row>,
    notes: Vec<(Row, String)>,
    promises: Vec<(Row, Timestamp)>,
    /// Rows of attempts that were evicted, with the ends of their graces.
    evicted: Vec<(Row, Timestamp)>,
    claims: Vec<(Row, Timestamp)>,
    /// What it said of further calls.
    rest: Option<Option<Row>>,
    wake_at: Option<Timestamp>,
    budget: u64,
}

#[derive(Clone, Copy, Debug)]
struct Reserved {
    job: Row,
    taken: Taken,
    /// As in the column `durable`: 0 of this cycle, 1 a promise, 2 a claim.
    durable: i64,
}

#[derive(Clone, Copy, Debug)]
struct Taken {
    cores: u32,
    from: Timestamp,
    until: Timestamp,
}

/// A placement; the one pool of cores leaves nothing to choose but whether to wait for what is being released.
#[derive(Clone, Debug, Default)]
pub struct FakePlacing {
    may_claim: Cell<bool>,
}

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
        let reports = RefCell::default();
        Self { now, cores, jobs, columns, causes: Vec::new(), state, saved, running: 0, reports }
    }

    /// Adds a running job that is expected to end at that time; its row of `attempts` is the number of those before it.
    #[must_use]
    pub fn running(mut self, cores: u32, until: Timestamp) -> Self {
        let from = self.now;
        self.running += 1;
        self.state.borrow_mut().taken.push(Taken { cores, from, until });
        self
    }

    /// Promises that start to the pending job that was added last, as an earlier cycle may have done.
    ///
    /// # Panics
    /// Where no job was added.
    #[must_use]
    pub fn promised(self, start: Timestamp) -> Self {
        let row = self.jobs.len() as Row - 1;
        let reserved = Some(self.reserved(row, start, 1));
        self.state.borrow_mut().reservations.push(reserved);
        self
    }

    /// Says what made the cycle run. Without it nothing did, so that all jobs without a promise count as new.
    #[must_use]
    pub fn because(mut self, causes: &[Cause]) -> Self {
        self.causes = causes.to_vec();
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

    /// Attempts that were evicted, in this order.
    pub fn evicted(&self) -> Vec<Row> {
        self.state.borrow().evicted.iter().map(|(row, _)| *row).collect()
    }

    /// Jobs that claimed what is being released, and the start that they count on, in this order.
    pub fn claims(&self) -> Vec<(Row, Timestamp)> {
        self.state.borrow().claims.clone()
    }

    /// What was said of the rows of a table in numbers.
    pub fn reported(&self, table: &str, name: &str) -> BTreeMap<Row, i64> {
        self.reports.borrow().get(&(table.to_owned(), name.to_owned())).cloned().unwrap_or_default()
    }

    /// Notes, in this order.
    pub fn notes(&self) -> Vec<(Row, String)> {
        self.state.borrow().notes.clone()
    }

    /// Jobs that were promised a start, and when, in this order.
    pub fn promises(&self) -> Vec<(Row, Timestamp)> {
        self.state.borrow().promises.clone()
    }

    /// Whether it needs no call before somebody has room, and behind which job those who come and have none change
    /// nothing.
    pub fn rests_until_room(&self) -> Option<Option<Row>> {
        self.state.borrow().rest
    }

    /// When it asked for another call.
    pub fn wakes_at(&self) -> Option<Timestamp> {
        self.state.borrow().wake_at
    }

    /// Jobs that have a promise at the end, and its start, by job.
    pub fn promised_at_the_end(&self) -> Vec<(Row, Timestamp)> {
        let state = self.state.borrow();
        let durable = state.reservations.iter().flatten().filter(|r| r.durable == 1);
        let mut all: Vec<(Row, Timestamp)> = durable.map(|r| (r.job, r.taken.from)).collect();
        all.sort_unstable();
        all
    }

    fn reserved(&self, row: Row, start: Timestamp, durable: i64) -> Reserved {
        let job = self.jobs[row as usize];
        let taken = Taken { cores: job.cores, from: start, until: start.saturating_add(job.limit) };
        Reserved { job: row, taken, durable }
    }

    fn job(&self, row: Row) -> Result<FakeJob, Refusal> {
        self.jobs.get(row as usize).copied().ok_or_else(|| Refusal::Other(format!("there is no job {row}")))
    }

    /// Whether so many cores are free throughout.
    fn is_free(&self, state: &State, job: FakeJob, from: Timestamp) -> bool {
        let until = from.saturating_add(job.limit);
        let used_at = |at: Timestamp| -> u64 {
            state.all().filter(|t| t.from <= at && at < t.until).map(|t| u64::from(t.cores)).sum()
        };
        // Use only grows where something begins.
        let begins = state.all().map(|t| t.from).filter(|at| from < *at && *at < until);
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
        let own = state.lift_promise(row);
        if !self.is_free(&state, job, self.now) {
            state.restore(own);
            return Err(Refusal::NotNow(format!("{} cores are not free for so long", job.cores)));
        }
        state.taken.push(Taken { cores: job.cores, from: self.now, until: self.now.saturating_add(job.limit) });
        state.started.push(row);
        Ok(())
    }

    fn start_or_claim(&self, row: Row, how: &FakePlacing) -> Result<Outcome, Refusal> {
        let refused = match self.start(row) {
            Err(refused @ Refusal::NotNow(_)) if how.may_claim.get() => refused,
            outcome => return outcome.map(|()| Outcome::Started),
        };
        let job = self.job(row)?;
        let mut state = self.state.borrow_mut();
        let mut releases: Vec<Timestamp> = state.evicted.iter().map(|(_, release)| *release).collect();
        releases.sort_unstable();
        let Some(start) = releases.into_iter().find(|at| self.is_free(&state, job, *at)) else { return Err(refused) };
        state.reservations.push(Some(self.reserved(row, start, 2)));
        state.claims.push((row, start));
        // No window shows it any more.
        state.held.push(row);
        Ok(Outcome::Claimed)
    }

    /// The earliest time from `from` on at which a job could run.
    fn earliest(&self, state: &State, job: FakeJob, from: Timestamp) -> Result<Timestamp, Refusal> {
        let mut times: Vec<Timestamp> = state.all().map(|t| t.until).filter(|at| *at > from).collect();
        times.push(from);
        times.sort_unstable();
        times.into_iter().find(|at| self.is_free(state, job, *at)).ok_or_else(|| self.never(job))
    }

    fn start_or_reserve_one(&self, row: Row, keep: Keep, anew: bool) -> Result<Outcome, Refusal> {
        let own = self.state.borrow().promise(row);
        if let Some(start) = own.filter(|start| !anew && *start > self.now) {
            self.state.borrow_mut().work()?;
            return Ok(Outcome::Reserved(start));
        }
        match self.start(row) {
            Ok(()) => return Ok(Outcome::Started),
            Err(Refusal::NotNow(_)) => {}
            Err(other) => return Err(other),
        }
        let job = self.job(row)?;
        let mut state = self.state.borrow_mut();
        let kept = state.lift_promise(row);
        let start = self.earliest(&state, job, self.now)?;
        if let Some(own) = own.filter(|own| *own <= start) {
            state.restore(kept);
            return Ok(Outcome::Reserved(own));
        }
        state.promises.push((row, start));
        let reserved = self.reserved(row, start, i64::from(keep == Keep::Durable));
        state.reservations.push(Some(reserved));
        Ok(Outcome::Reserved(start))
    }

    fn never(&self, job: FakeJob) -> Refusal {
        Refusal::Never(format!("needs {} cores, and there are {}", job.cores, self.cores))
    }
}

impl State {
    fn all(&self) -> impl Iterator<Item = &Taken> {
        self.taken.iter().chain(self.reservations.iter().flatten().map(|r| &r.taken))
    }

    /// The start that is promised to a job.
    fn promise(&self, job: Row) -> Option<Timestamp> {
        self.reservations.iter().flatten().find(|r| r.durable == 1 && r.job == job).map(|r| r.taken.from)
    }

    /// Lifts the promise of a job: its number and what it was.
    fn lift_promise(&mut self, job: Row) -> Option<(usize, Reserved)> {
        let theirs = |r: &Option<Reserved>| r.is_some_and(|r| r.durable == 1 && r.job == job);
        let at = self.reservations.iter().position(theirs)?;
        self.reservations[at].take().map(|reserved| (at, reserved))
    }

    fn restore(&mut self, lifted: Option<(usize, Reserved)>) {
        if let Some((at, reserved)) = lifted {
            self.reservations[at] = Some(reserved);
        }
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
    fn only_nodes(&self, nodes: &[Row]) -> Result<(), Refusal> {
        match nodes {
            [0] => Ok(()),
            _ => Err(Refusal::Other("the pool of cores is the one node, row 0".to_owned())),
        }
    }
    fn only_devices(&self, _devices: &[(Row, u32)]) -> Result<(), Refusal> {
        Err(not_yet())
    }
    fn may_claim(&self, yes: bool) {
        self.may_claim.set(yes);
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
        FakePlacing::default()
    }
    fn now(&self) -> Timestamp {
        self.now
    }
    fn budget(&self) -> u64 {
        self.state.borrow().budget
    }
    fn causes(&self) -> Vec<Cause> {
        self.causes.clone()
    }
    fn outcomes(&self) -> Vec<bool> {
        Vec::new()
    }

    fn rows(&self, table: &str) -> Result<u32, Refusal> {
        let column = self.columns.iter().find(|((of, _), _)| of == table).map(|(_, values)| values.len());
        match column {
            None if table == "jobs" => Ok(self.jobs.len() as u32),
            None if table == "reservations" => Ok(self.state.borrow().reservations.len() as u32),
            None => Err(Refusal::Other(format!("there is no table {table:?}"))),
            Some(rows) => Ok(rows as u32),
        }
    }

    fn column(&self, table: &str, name: &str, rows: Option<&[Row]>) -> Result<Vec<i64>, Refusal> {
        let state = self.state.borrow();
        let cell = |r: &Option<Reserved>| match (r, name) {
            (None, _) => -1,
            (Some(r), "job") => i64::from(r.job),
            (Some(r), "start") => r.taken.from,
            (Some(r), "end") => r.taken.until,
            (Some(r), _) => r.durable,
        };
        let own = match (table, name) {
            ("reservations", "job" | "start" | "end" | "durable") => {
                Some(state.reservations.iter().map(cell).collect())
            }
            ("jobs", "promised") => {
                Some((0..self.jobs.len() as Row).map(|row| state.promise(row).unwrap_or(-1)).collect())
            }
            _ => None,
        };
        let Some(column) = own.as_ref().or_else(|| self.columns.get(&(table.to_owned(), name.to_owned()))) else {
            return Err(Refusal::Other(format!("there is no column {name:?} of {table:?}")));
        };
        let Some(rows) = rows else { return Ok(column.clone()) };
        let value = |row: &Row| {
            column.get(*row as usize).copied().ok_or_else(|| Refusal::Other(format!("there is no row {row}")))
        };
        rows.iter().map(value).collect()
    }

    fn ragged(&self, _table: &str, name: &str, rows: &[Row]) -> Result<(Vec<u32>, Vec<i64>), Refusal> {
        match name {
            // The pool of cores is the one node.
            "on-nodes" | "could-use" | "placed" => Ok(((1..=rows.len() as u32).collect(), vec![0; rows.len()])),
            _ => Err(not_yet()),
        }
    }

    fn next(&self, scope: Scope, after: Option<Row>, n: u32) -> Vec<Row> {
        let state = self.state.borrow();
        let first = after.map_or(0, |row| row.saturating_add(1));
        (first..self.jobs.len() as u32)
            .filter(|row| !state.started.contains(row) && !state.held.contains(row))
            .filter(|row| match scope {
                Scope::Due => state.promise(*row).is_some_and(|start| start <= self.now),
                Scope::Arrived => state.promise(*row).is_none(),
                Scope::All | Scope::Awake | Scope::Queue(_) => true,
                Scope::Placed => false,
            })
            .take(n as usize)
            .collect()
    }

    fn try_start(&self, job: Row, _part: Option<Part>, how: &FakePlacing) -> Result<Outcome, Refusal> {
        self.start_or_claim(job, how)
    }

    fn start_in_order(&self, jobs: &[Row], how: &FakePlacing, stop: StopRule) -> Vec<Outcome> {
        let mut stopped = false;
        let mut each = |row: &Row| {
            if stopped {
                return Outcome::Untried;
            }
            match self.start_or_claim(*row, how) {
                Ok(outcome) => outcome,
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
        let start = self.earliest(&state, job, from.max(self.now))?;
        Ok(FakeSlot { job: row, start })
    }

    fn reserve(&self, slot: &FakeSlot, keep: Keep) -> Result<u32, Refusal> {
        self.job(slot.job)?;
        let mut state = self.state.borrow_mut();
        state.work()?;
        if keep == Keep::Durable {
            state.lift_promise(slot.job);
        }
        state.promises.push((slot.job, slot.start));
        let reserved = self.reserved(slot.job, slot.start, i64::from(keep == Keep::Durable));
        state.reservations.push(Some(reserved));
        Ok(state.reservations.len() as u32 - 1)
    }

    fn start_or_reserve(&self, jobs: &[Row], _how: &FakePlacing, keep: Keep, anew: bool) -> Vec<Outcome> {
        let mut outcomes: Vec<Outcome> = Vec::new();
        for row in jobs {
            let over = matches!(outcomes.last(), Some(Outcome::Refused(Refusal::Budget) | Outcome::Untried));
            let outcome = match over {
                true => Outcome::Untried,
                false => self.start_or_reserve_one(*row, keep, anew).unwrap_or_else(Outcome::Refused),
            };
            outcomes.push(outcome);
        }
        outcomes
    }

    fn lift(&self, reservation: u32) -> Result<(), Refusal> {
        match self.state.borrow_mut().reservations.get_mut(reservation as usize).and_then(Option::take) {
            Some(_) => Ok(()),
            None => Err(Refusal::Other(format!("there is no reservation {reservation}"))),
        }
    }

    fn evict(&self, attempt: Row, grace: Duration, _then: Afterwards, _why: &str) -> Result<(), Refusal> {
        let mut state = self.state.borrow_mut();
        state.work()?;
        if state.evicted.iter().any(|(row, _)| *row == attempt) {
            return Err(Refusal::Other(format!("attempt {attempt} was told to end already")));
        }
        let release = self.now.saturating_add(grace.max(1));
        let Some(taken) = state.taken[..self.running].get_mut(attempt as usize) else {
            return Err(Refusal::Other(format!("there is no attempt {attempt}")));
        };
        taken.until = taken.until.min(release);
        state.evicted.push((attempt, release));
        Ok(())
    }
    fn re_place(&self, attempt: Row, _how: &FakePlacing) -> Result<Outcome, Refusal> {
        let mut state = self.state.borrow_mut();
        state.work()?;
        let Some((_, from)) = state.evicted.iter().find(|(row, _)| *row == attempt).copied() else {
            return Err(Refusal::Other(format!("attempt {attempt} was not evicted")));
        };
        let cores = state.taken[attempt as usize].cores;
        let job = FakeJob { cores, limit: Duration::MAX };
        if !self.is_free(&state, job, from) {
            return Err(Refusal::NotNow(format!("{cores} cores are not free elsewhere")));
        }
        state.taken.push(Taken { cores, from, until: Timestamp::MAX });
        Ok(Outcome::Claimed)
    }

    fn report(&self, table: &str, name: &str, rows: &[Row], values: &[i64]) -> Result<(), Refusal> {
        let mut reports = self.reports.borrow_mut();
        let known = reports.entry((table.to_owned(), name.to_owned())).or_default();
        known.extend(rows.iter().copied().zip(values.iter().copied()));
        Ok(())
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

    fn rest_until_room(&self, behind: Option<Row>) -> Result<(), Refusal> {
        behind.map_or(Ok(()), |row| self.job(row).map(drop))?;
        let mut state = self.state.borrow_mut();
        state.work()?;
        state.rest = Some(behind);
        Ok(())
    }

    fn wake_at(&self, at: Timestamp) -> Result<(), Refusal> {
        let mut state = self.state.borrow_mut();
        state.work()?;
        state.wake_at = Some(state.wake_at.map_or(at, |earlier| earlier.min(at)));
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
