//! One scheduling pass: what a scheduling policy sees and does, and the plan that comes of it.
//!
//! The operations are those of `wit/scheduling`; their meaning stands there. A cycle works on the scheduler's own
//! [`Replica`] and takes everything back at its end: starts become facts only through the events of an accepted plan.

mod claims;
mod devices;
mod inside;
mod plan;
mod pools;
mod promises;
mod refusals;
mod reports;
mod rest;
mod rows;
mod savepoints;
mod tables;
mod types;

pub use claims::Afterwards;
pub use plan::{Note, Plan};
pub use reports::Reports;
pub use rest::Rest;
pub use types::{Cause, CycleRefusal, CycleSlot, Keep, Outcome, Part, Scope, StopRule};

use crate::eviction::Eviction;
use crate::pools::Book;
use crate::replica::{Kind, Rank, Replica};
use crate::state::State;
use ephor_model::{Allocation, JobId, NodeId, QueueId, ReasonCode, ReservationNo, Span, Timestamp};
use ephor_placement::{ClassId, Mark, NoFit, Placing, ReservationId, Work};
use imbl::{OrdMap, Vector};
use plan::{Change, Planned};
use promises::{Held, Numbered};
use refusals::Refusals;
use rows::{AttemptRow, JobRow};
use savepoints::Savepoint;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Rows that `next` hands out at most.
pub const WINDOW: u32 = 10_000;
/// Savepoints that may be open at a time.
pub const SAVEPOINTS: usize = 1_000;
/// Causes that are named one by one.
pub const CAUSES: usize = 1_000;
/// Jobs whose refusal is kept for explanations, per cycle.
pub const NOTES: usize = 10_000;

/// See the module.
pub struct Cycle {
    replica: Box<Replica>,
    state: State,
    now: Timestamp,
    work: Work,
    causes: Vec<Cause>,
    outcomes: Vec<bool>,
    base: Mark,
    /// Jobs behind rows, in the order in which they were handed out.
    jobs: Vec<JobRow>,
    rows: BTreeMap<JobId, u32>,
    /// Rows of `attempts` and `nodes`, from the first look on.
    attempts: OnceCell<Vec<AttemptRow>>,
    nodes: OnceCell<Vec<NodeId>>,
    /// Worked out when first asked for.
    devices: OnceCell<devices::Devices>,
    queues: Vec<QueueId>,
    /// Jobs that this cycle started or held.
    gone: BTreeSet<JobId>,
    planned: Vec<Planned>,
    started_of: BTreeMap<JobId, u32>,
    /// Who was told by this cycle to give way, and when what they hold comes free.
    evicted: OrdMap<JobId, (Timestamp, Arc<Eviction>)>,
    /// What the policy said of rows in numbers, by table, name and what the row stands for.
    reports: Reports,
    /// By number, as the policy knows them.
    reservations: Vector<Numbered>,
    /// Numbers of the promises that have one.
    numbers: OrdMap<JobId, u32>,
    /// Whether all promises have a number.
    listed: bool,
    /// Promises that this cycle gave, moved or (`None`) ended.
    promised: OrdMap<JobId, Option<Held>>,
    savepoints: Vec<Savepoint>,
    next_savepoint: u32,
    next_group: u32,
    refused: Refusals,
    /// Classes that this cycle parked, on the ground that its starts become facts.
    parked: Vec<ClassId>,
    /// It keeps capacity from now on, so that a refusal is no ground for parking.
    keeps_now: bool,
    notes: BTreeMap<JobId, Note>,
    /// What this cycle's starts leave of the pools.
    book: Book,
    rest: Option<Rest>,
    wake_at: Option<Timestamp>,
    /// What keeps the nodes of reservations free at this moment of the cycle.
    set_aside: BTreeMap<ReservationNo, ReservationId>,
}

/// What it takes to place a pending job.
#[derive(Clone, Copy)]
struct Wanted {
    job: JobId,
    class: ClassId,
    limit: Span,
    throttle: Option<(JobId, u32)>,
    /// The reservation that it runs in.
    inside: Option<ReservationNo>,
}

impl Cycle {
    /// Begins a cycle on that replica, which must be up to date with `state`.
    pub fn begin(
        mut replica: Box<Replica>,
        state: State,
        now: Timestamp,
        work: u64,
        causes: Vec<Cause>,
        outcomes: Vec<bool>,
    ) -> Box<Self> {
        let mut work = Work(work);
        replica.advance(now);
        replica.unpark_helped(&mut work);
        let base = replica.cluster.savepoint();
        let set_aside = replica.set_aside().clone();
        let queues = state.queues.keys().copied().collect();
        let mut cycle = Box::new(Self {
            replica,
            state,
            now,
            work,
            causes: summarise(causes),
            outcomes,
            base,
            jobs: Vec::new(),
            rows: BTreeMap::new(),
            attempts: OnceCell::new(),
            nodes: OnceCell::new(),
            devices: OnceCell::new(),
            queues,
            gone: BTreeSet::new(),
            planned: Vec::new(),
            started_of: BTreeMap::new(),
            evicted: OrdMap::new(),
            reports: Reports::default(),
            reservations: Vector::new(),
            numbers: OrdMap::new(),
            listed: false,
            promised: OrdMap::new(),
            savepoints: Vec::new(),
            next_savepoint: 0,
            next_group: 0,
            refused: Refusals::default(),
            parked: Vec::new(),
            keeps_now: false,
            notes: BTreeMap::new(),
            book: Book::default(),
            rest: None,
            wake_at: None,
            set_aside,
        });
        cycle.lift_stale();
        cycle.honour_claims();
        cycle
    }

    /// Ends the cycle: gives the replica back as it was, and the plan.
    pub fn finish(mut self: Box<Self>) -> (Box<Replica>, Plan) {
        let plan = self.take_plan();
        (self.restore(), plan)
    }

    /// Ends the cycle without a plan: nothing of it stands.
    pub fn abandon(mut self: Box<Self>) -> Box<Replica> {
        self.unpark();
        self.restore()
    }

    fn restore(mut self: Box<Self>) -> Box<Replica> {
        self.replica.cluster.rollback(self.base);
        self.replica.cluster.forget_undo();
        self.replica
    }

    /// The time of this cycle.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Work units left.
    pub fn budget(&self) -> u64 {
        self.work.0
    }

    /// What made this cycle run; jobs by id, since a policy meets their rows later.
    pub fn causes(&mut self) -> Vec<Cause> {
        let causes = self.causes.clone();
        causes
            .into_iter()
            .map(|cause| match cause {
                Cause::Arrived(job) => Cause::Arrived(JobId(u64::from(self.row_of(job)))),
                other => other,
            })
            .collect()
    }

    /// What became of the groups of the last plan.
    pub fn outcomes(&self) -> &[bool] {
        &self.outcomes
    }

    /// The state that this cycle looks at.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// How many jobs are pending and eligible: for the fuel of the call.
    pub fn pending_count(&self) -> u64 {
        self.replica.eligible_count() as u64
    }

    /// How many nodes there are: for the fuel of the call.
    pub fn node_count(&self) -> u64 {
        self.state.nodes.len() as u64
    }

    /// The next pending jobs in order.
    pub fn next(&mut self, scope: Scope, after: Option<u32>, n: u32) -> Vec<u32> {
        let after: Option<Rank> = match after.map(|row| self.job(row)) {
            None => None,
            Some(Err(_)) => return Vec::new(),
            Some(Ok(job)) => match self.replica.pending(job) {
                Some(pending) => Some(pending.rank),
                None => return Vec::new(),
            },
        };
        let only = match scope {
            Scope::All | Scope::Awake | Scope::Arrived | Scope::Due | Scope::Placed => None,
            Scope::Queue(row) => match self.queues.get(row as usize) {
                Some(queue) => Some(*queue),
                None => return Vec::new(),
            },
        };
        let most = n.min(WINDOW) as usize;
        let (found, looked) = match scope {
            Scope::Due => {
                let due = self.replica.promises.due(self.now).filter_map(|job| self.replica.pending(job));
                let due = due.filter(|p| after.is_none_or(|after| p.rank > after));
                let due: BTreeMap<Rank, Kind> = due.map(|p| (p.rank, self.replica.kind_of(p))).collect();
                self.window(due.iter(), only, false, most)
            }
            Scope::Placed => self.placed_after(after, most),
            Scope::Arrived => self.window(self.replica.arrived_after(after), only, true, most),
            Scope::Awake => self.window(self.replica.order_after(after), only, true, most),
            Scope::All | Scope::Queue(_) => self.window(self.replica.order_after(after), only, false, most),
        };
        self.work.0 = self.work.0.saturating_sub(looked);
        found.into_iter().map(|job| self.row_of(job)).collect()
    }

    /// The first `most` of these that this cycle has not started or held, and how many were looked at.
    fn window<'a>(
        &self,
        ranks: impl Iterator<Item = (&'a Rank, &'a Kind)>,
        only: Option<QueueId>,
        awake: bool,
        most: usize,
    ) -> (Vec<JobId>, u64) {
        let mut found = Vec::new();
        let mut looked = 0;
        for (rank, kind) in ranks {
            if found.len() >= most || looked >= self.work.0 {
                break;
            }
            looked += 1;
            // What was refused a moment ago would be again.
            let no_room =
                || self.replica.parked(kind.class).is_some() || self.refused.get(kind.class, kind.limit).is_some();
            // Who came has to hear it once.
            let barred = || self.refused.barred(*kind).is_some() && !self.replica.has_arrived(rank);
            if awake && (no_room() || barred()) {
                continue;
            }
            let job = rank.3;
            let here = only.is_none_or(|q| self.replica.pending(job).is_some_and(|p| p.queue == q));
            if here && !self.gone.contains(&job) {
                found.push(job);
            }
        }
        (found, looked)
    }

    /// Starts a job now, if it fits.
    ///
    /// # Errors
    /// See [`CycleRefusal`].
    pub fn try_start(&mut self, row: u32, part: Option<Part>, how: &Placing) -> Result<Outcome, CycleRefusal> {
        let job = self.job(row)?;
        whole(part)?;
        let outcome = self.try_job(job, how);
        if let Err(refusal) = &outcome {
            self.explain(job, refusal);
        }
        outcome
    }

    /// [`Self::try_start`] for each, until the rule stops it.
    pub fn start_in_order(&mut self, rows: &[u32], how: &Placing, stop: StopRule) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(rows.len());
        let mut stopped = false;
        for row in rows {
            if stopped {
                outcomes.push(Outcome::Untried);
                continue;
            }
            let outcome = self.try_start(*row, None, how).unwrap_or_else(Outcome::Refused);
            stopped = match (&outcome, stop) {
                (Outcome::Refused(CycleRefusal::Budget), _) => true,
                // A job that waits for its limits stands in nobody's way.
                (Outcome::Refused(CycleRefusal::Never(_) | CycleRefusal::Pool(_) | CycleRefusal::Other(_)), _) => false,
                (Outcome::Refused(_), StopRule::FirstRefusal) => true,
                _ => false,
            };
            outcomes.push(outcome);
        }
        outcomes
    }

    /// What it takes to place a job; one unit.
    fn wanted(&mut self, job: JobId) -> Result<Wanted, CycleRefusal> {
        if self.gone.contains(&job) {
            return Err(CycleRefusal::Other("this cycle has started or held that job already".into()));
        }
        self.spend(1)?;
        match self.replica.pending(job) {
            Some(p) => Ok(Wanted { job, class: p.class, limit: p.limit, throttle: p.throttle, inside: p.inside }),
            None => Err(CycleRefusal::Other("that job is not pending".into())),
        }
    }

    fn try_job(&mut self, job: JobId, how: &Placing) -> Result<Outcome, CycleRefusal> {
        let wanted = self.wanted(job)?;
        let Wanted { class, limit, throttle, inside, .. } = wanted;
        if let Some((array, most)) = throttle {
            self.below_throttle(array, most, 0)?;
        }
        // Before any look at nodes.
        if let Err(full) = self.pools_with_room(job) {
            return self.claim_or(&wanted, how, full);
        }
        if let Some(no) = inside {
            let allocation = self.start_inside(job, no, class, limit, how)?;
            self.note_start(&wanted, allocation);
            return Ok(Outcome::Started);
        }
        let anywhere = how.is_anywhere();
        let mark = self.replica.cluster.savepoint();
        let own = self.lift_own(job);
        let known = self.replica.parked(class).or_else(|| self.refused.get(class, limit).filter(|_| anywhere));
        if let Some(why) = known.filter(|_| !own) {
            let why = why.clone();
            return self.claim_or(&wanted, how, CycleRefusal::NotNow(why));
        }
        match self.replica.cluster.try_start(job, class, self.now, limit, how, &mut self.work) {
            Ok(allocation) => {
                if let Err(full) = self.draw(job, &allocation) {
                    self.replica.cluster.rollback(mark);
                    return Err(full);
                }
                if own {
                    self.own_is_over(job);
                }
                self.note_start(&wanted, allocation);
                Ok(Outcome::Started)
            }
            Err(NoFit::NotNow(why)) if own => {
                self.replica.cluster.rollback(mark);
                self.claim_or(&wanted, how, CycleRefusal::NotNow(why))
            }
            Err(no_fit) if own => {
                self.replica.cluster.rollback(mark);
                Err(no_fit.into())
            }
            Err(NoFit::NotNow(why)) => {
                if anywhere {
                    self.refused.insert(class, limit, why.clone());
                    self.park(class, &why)?;
                }
                self.claim_or(&wanted, how, CycleRefusal::NotNow(why))
            }
            Err(no_fit) => Err(no_fit.into()),
        }
    }

    /// Whether one more element of an array may start, beside so many that are promised a start.
    fn below_throttle(&self, array: JobId, most: u32, promised: u32) -> Result<(), CycleRefusal> {
        let running = self.state.jobs.get(&array).map_or(0, |e| e.running);
        let planned = self.started_of.get(&array).copied().unwrap_or(0);
        if running + planned + promised < most {
            return Ok(());
        }
        let text = match promised {
            0 => format!("{running} of at most {most} elements of its array run"),
            n => format!("{running} of at most {most} elements of its array run, and {n} have a promised start"),
        };
        Err(CycleRefusal::NotNow(text.into()))
    }

    /// Writes down that this cycle starts a job.
    fn note_start(&mut self, wanted: &Wanted, allocation: Arc<Allocation>) {
        self.gone.insert(wanted.job);
        if let Some((array, _)) = wanted.throttle {
            *self.started_of.entry(array).or_default() += 1;
        }
        self.plan(wanted.job, Change::Start(allocation));
        self.notes.remove(&wanted.job);
    }

    /// The earliest time at which a job could start and run to its limit.
    ///
    /// # Errors
    /// See [`CycleRefusal`].
    pub fn earliest_start(
        &mut self,
        row: u32,
        part: Option<Part>,
        how: &Placing,
        from: Timestamp,
    ) -> Result<CycleSlot, CycleRefusal> {
        let job = self.job(row)?;
        whole(part)?;
        let Some(pending) = self.replica.pending(job) else {
            return Err(CycleRefusal::Other("that job is not pending".into()));
        };
        if let Some(no) = pending.inside {
            return Err(self.waits_inside(no));
        }
        let (class, limit) = (pending.class, pending.limit);
        let from = from.max(self.now);
        let slot = self.replica.cluster.earliest_start(class, from, limit, how, &mut self.work)?;
        Ok(CycleSlot { job, slot })
    }

    /// Leaves a job out of this cycle, with a text for its user.
    ///
    /// # Errors
    /// The row is not a job's.
    pub fn hold(&mut self, row: u32, why: &str) -> Result<(), CycleRefusal> {
        let job = self.job(row)?;
        self.gone.insert(job);
        self.note_for(job, ReasonCode::Policy, why.into(), None);
        Ok(())
    }

    /// Says more about why a job waits.
    ///
    /// # Errors
    /// The row is not a job's.
    pub fn note(&mut self, row: u32, why: &str) -> Result<(), CycleRefusal> {
        let job = self.job(row)?;
        match self.notes.get_mut(&job) {
            Some(note) => note.said = Some(why.to_owned()),
            None => self.note_for(job, ReasonCode::Policy, why.into(), None),
        }
        Ok(())
    }

    /// Parks a class that was refused, if what runs alone is reason enough: then it needs no look before something comes
    /// free, whatever is promised meanwhile.
    fn park(&mut self, class: ClassId, why: &Arc<str>) -> Result<(), CycleRefusal> {
        if self.keeps_now {
            return Ok(());
        }
        match self.replica.cluster.has_room_now(class, &mut self.work) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.replica.park(class, why.clone());
                self.parked.push(class);
                Ok(())
            }
            Err(_) => Err(CycleRefusal::Budget),
        }
    }

    /// What this cycle refused may fit after all.
    fn unpark(&mut self) {
        self.refused.clear();
        for class in self.parked.drain(..) {
            self.replica.unpark(class);
        }
    }

    fn explain(&mut self, job: JobId, refusal: &CycleRefusal) {
        let (code, text) = match refusal {
            CycleRefusal::Never(why) => (ReasonCode::BadConstraints, why),
            CycleRefusal::NotNow(why) => (ReasonCode::Resources, why),
            CycleRefusal::Pool(row) => return self.explain_pool(job, *row),
            _ => return,
        };
        let throttled =
            self.replica.pending(job).is_some_and(|p| p.throttle.is_some()) && text.contains("of its array");
        let code = if throttled { ReasonCode::JobArrayTaskLimit } else { code };
        self.note_for(job, code, text.clone(), None);
    }

    fn note_for(&mut self, job: JobId, code: ReasonCode, text: Arc<str>, earliest: Option<Timestamp>) {
        if self.notes.len() < NOTES || self.notes.contains_key(&job) {
            self.notes.insert(job, Note { code, text, said: None, earliest });
        }
    }

    fn spend(&mut self, units: u64) -> Result<(), CycleRefusal> {
        match self.work.0.checked_sub(units) {
            Some(left) => {
                self.work.0 = left;
                Ok(())
            }
            None => Err(CycleRefusal::Budget),
        }
    }
}

fn whole(part: Option<Part>) -> Result<(), CycleRefusal> {
    match part {
        None => Ok(()),
        Some(part) if part == Part::default() => Ok(()),
        Some(_) => Err(not_yet("parts of a job")),
    }
}

fn not_yet(what: &str) -> CycleRefusal {
    CycleRefusal::Other(format!("not yet: {what}"))
}

/// Causes as a cycle has them: each once where it stands several times in a row, and at most [`CAUSES`].
pub(crate) fn summarise(mut causes: Vec<Cause>) -> Vec<Cause> {
    causes.dedup();
    if causes.len() > CAUSES {
        causes.truncate(CAUSES - 1);
        causes.push(Cause::Settings);
    }
    causes
}
