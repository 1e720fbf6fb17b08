//! Runs a workload in virtual time: the controller's own core, scheduler and policies, with a queue of timed events in
//! place of a network, a clock and agents.
//!
//! At each instant completions come first, then arrivals, then one cycle.

use crate::cluster::SimCluster;
use crate::policies::Policies;
use crate::timeline::{Happening, Timeline};
use crate::workload::{DEFAULT_NAME, Workload};
use ephor_core::command::{Action, Actor, Group, NodeReport, Objects, RefusalKind, Start};
use ephor_core::cycle::Note;
use ephor_core::decide::{Batch, execute};
use ephor_core::records::{Meta, Uncharged};
use ephor_core::roles::Fault;
use ephor_core::scheduler::Scheduler;
use ephor_core::{Command, Event, Refusal, Reply, Stamped, State};
use ephor_model::{
    Account, Allocation, AllocationPart, AttemptKey, Digest, Exit, JobId, JobState, NodeSpec, Queue, Span, Timestamp,
    Usage, limits,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// When nobody counts any more on an attempt that was told to end at the beginning.
const STUCK_BY: Timestamp = Timestamp(limits::END_GRACE_MS + limits::CLAIM_LATE_MS);

/// Looks on while a simulation runs.
pub trait Observer {
    /// These events were decided at one instant, in this order.
    fn events(&mut self, _events: &[Stamped]) {}
    /// An instant is over; so many of all jobs have ended (where nothing ends: have started).
    fn instant(&mut self, _ended: usize, _all: usize) {}
}

/// Looks away.
impl Observer for () {}

/// Why a simulation stopped.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A policy failed. A controller would fall back to another one; figures of such a mixture mean nothing.
    #[error("at {} s of the trace {fault}", at.0 / 1000)]
    Policy {
        /// When.
        at: Timestamp,
        /// What it did.
        fault: Fault,
    },
    /// The core refused something.
    #[error("at {} s of the trace the core refused {what}: {refusal}", at.0 / 1000)]
    Refused {
        /// When.
        at: Timestamp,
        /// What.
        what: String,
        /// Why.
        refusal: Refusal,
    },
}

/// What became of a workload.
#[derive(Debug)]
pub struct Outcome {
    /// When each job first started, by its place in the workload; `None`: never.
    pub starts: Vec<Option<Timestamp>>,
    /// Cycles that ran.
    pub cycles: u64,
    /// How long each of them took the policies and the core, in order. Wall time: not the same at every run.
    pub decisions: Vec<Duration>,
    /// Cycles in which the work units ended before the policy did.
    pub out_of_budget: u64,
    /// Groups of plans that the core did not take.
    pub groups_dropped: u64,
    /// Attempts that had to give way.
    pub evictions: u64,
    /// The state at the end.
    pub state: State,
}

/// Runs the workload on that cluster to its end.
///
/// # Errors
/// See [`SimError`].
pub fn run(
    workload: &Workload,
    cluster: &SimCluster,
    policies: &mut Policies,
    observer: &mut dyn Observer,
) -> Result<Outcome, SimError> {
    let mut sim = Sim::new(workload, observer);
    sim.set_up(cluster)?;
    sim.set_fading(policies)?;
    if let Some(first) = workload.jobs.first() {
        sim.timeline.put(first.submit, Happening::Arrival(0));
    }
    let mut last = Timestamp(i64::MIN);
    while let Some(now) = sim.next_time(last) {
        last = now;
        while let Some(happening) = sim.timeline.take(now) {
            match happening {
                Happening::Completion(key) => sim.complete(now, key)?,
                Happening::Arrival(index) => sim.arrive(now, index)?,
            }
        }
        sim.expire(now)?;
        sim.account(now, policies)?;
        sim.publish();
        if sim.waiting > 0 && sim.scheduler.due(now) {
            sim.cycle(now, policies)?;
        }
        sim.observer.instant(sim.ended, workload.jobs.len());
    }
    Ok(sim.outcome)
}

/// Lets all jobs arrive at once and runs cycles until one starts nothing more. Nothing ends.
///
/// # Errors
/// See [`SimError`].
pub fn fill(
    workload: &Workload,
    cluster: &SimCluster,
    policies: &mut Policies,
    observer: &mut dyn Observer,
) -> Result<Outcome, SimError> {
    let mut sim = Sim { departures: false, ..Sim::new(workload, observer) };
    sim.set_up(cluster)?;
    let now = Timestamp(0);
    for index in 0..workload.jobs.len() {
        sim.submit(now, index)?;
    }
    sim.publish();
    loop {
        let waited = sim.waiting;
        sim.cycle(now, policies)?;
        sim.observer.instant(workload.jobs.len() - sim.waiting, workload.jobs.len());
        if sim.waiting == waited || sim.waiting == 0 {
            break;
        }
        sim.scheduler.wake();
    }
    Ok(sim.outcome)
}

/// A job that runs when a simulation begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its place in the workload.
    pub job: usize,
    /// What it holds, by the name of the node; the number of the node is found by that.
    pub parts: Vec<(String, AllocationPart)>,
    /// It was told to end long ago, and does not.
    pub stuck: bool,
    /// It ended after that long, before anything else happened.
    pub ended: Option<Span>,
}

/// Where a small cluster came to rest.
#[derive(Debug)]
pub struct Settled {
    /// What became of it.
    pub outcome: Outcome,
    /// Ids of the jobs, by their place in the workload.
    pub jobs: Vec<JobId>,
    /// Why those wait that wait, as the last cycle found.
    pub notes: BTreeMap<JobId, Note>,
    /// Whether it did come to rest.
    pub settled: bool,
}

/// Lets all jobs arrive, some of them running already, and runs cycles until so many in a row change nothing, at most
/// `most`. Nothing ends by itself.
///
/// # Errors
/// See [`SimError`]; running jobs that do not fit are refused.
pub fn settle(
    workload: &Workload,
    cluster: &SimCluster,
    running: &[Running],
    policies: &mut Policies,
    observer: &mut dyn Observer,
    (quiet, most): (u32, u32),
) -> Result<Settled, SimError> {
    let mut sim = Sim { departures: false, ..Sim::new(workload, observer) };
    sim.set_up(cluster)?;
    let mut now = Timestamp(0);
    for index in 0..workload.jobs.len() {
        sim.submit(now, index)?;
    }
    running.iter().try_for_each(|job| sim.place_at(now, job))?;
    for (job, after) in running.iter().filter_map(|job| Some((job, job.ended?))) {
        now = Timestamp(0) + after;
        sim.complete(now, AttemptKey { job: JobId(job.job as u64 + 1), number: 1 })?;
    }
    for job in running.iter().filter(|job| job.stuck) {
        let (job, action) = (JobId(job.job as u64 + 1), Action::Requeue);
        let by = Actor { name: "simulated".into(), operator: true };
        sim.execute(now, Command::Act { action, job, whole: false, by }, || format!("the end of job {job}"))?;
        now = STUCK_BY;
    }
    sim.publish();
    let (mut calm, mut cycles) = (0, 0);
    while calm < quiet && cycles < most {
        now = now + Span::seconds(1);
        let before = sim.holds();
        sim.release(now)?;
        sim.publish();
        sim.scheduler.wake();
        sim.cycle(now, policies)?;
        cycles += 1;
        calm = if before == sim.holds() { calm + 1 } else { 0 };
    }
    let jobs = (1..=workload.jobs.len() as u64).map(JobId).collect();
    Ok(Settled { outcome: sim.outcome, jobs, notes: sim.notes, settled: calm >= quiet })
}

struct Sim<'a> {
    workload: &'a Workload,
    observer: &'a mut dyn Observer,
    timeline: Timeline,
    scheduler: Scheduler,
    /// Events that the scheduler has not seen.
    batch: Batch,
    /// Place in the workload by job id. Ids are given one after the other from 1.
    places: Vec<usize>,
    waiting: usize,
    ended: usize,
    /// Whether jobs end.
    departures: bool,
    /// Of the last cycle.
    notes: BTreeMap<JobId, Note>,
    outcome: Outcome,
}

impl<'a> Sim<'a> {
    fn new(workload: &'a Workload, observer: &'a mut dyn Observer) -> Self {
        let state = State::default();
        Self {
            workload,
            observer,
            timeline: Timeline::default(),
            scheduler: Scheduler::new(&state),
            batch: Batch::default(),
            places: Vec::with_capacity(workload.jobs.len()),
            waiting: 0,
            ended: 0,
            departures: true,
            notes: BTreeMap::new(),
            outcome: Outcome {
                starts: vec![None; workload.jobs.len()],
                cycles: 0,
                decisions: Vec::new(),
                out_of_budget: 0,
                groups_dropped: 0,
                evictions: 0,
                state,
            },
        }
    }

    fn set_up(&mut self, cluster: &SimCluster) -> Result<(), SimError> {
        let at = Timestamp(0);
        self.execute(at, Command::BeginEpoch { at_least: 1 }, || "the first epoch".into())?;
        let objects = self.objects(cluster);
        self.execute(at, Command::Apply(objects), || "the queues and the accounts".into())?;
        for spec in &cluster.nodes {
            let spec = NodeSpec { boot_id: "simulated".into(), ..spec.clone() };
            let name = spec.name.clone();
            let report = NodeReport::Register { spec, holds: Vec::new(), faults: Default::default() };
            self.execute(at, Command::NodeReport(report), || format!("node '{name}'"))?;
        }
        self.publish();
        Ok(())
    }

    /// Lets use fade as the accounting policy says.
    fn set_fading(&mut self, policies: &Policies) -> Result<(), SimError> {
        let at = Timestamp(0);
        let Some(accounting) = &policies.accounting else { return Ok(()) };
        let fading = accounting.decay().map_err(|fault| SimError::Policy { at, fault })?;
        self.execute(at, Command::SetFading(fading), || "how use fades".into()).map(drop)
    }

    /// Charges what ended, and lets past use fade where a boundary has passed.
    fn account(&mut self, now: Timestamp, policies: &Policies) -> Result<(), SimError> {
        let Some(accounting) = &policies.accounting else { return Ok(()) };
        let Meta { fading, faded_at, .. } = self.outcome.state.meta;
        if fading.period.0 > 0 && now >= faded_at + fading.period {
            self.execute(now, Command::Fade, || "the fading of past use".into())?;
        }
        let ended: Vec<Uncharged> = self.outcome.state.uncharged.values().map(|ended| (**ended).clone()).collect();
        if ended.is_empty() {
            return Ok(());
        }
        let keys: Vec<AttemptKey> = ended.iter().map(|ended| ended.key).collect();
        let prices = accounting.charge(Arc::new(ended)).map_err(|fault| SimError::Policy { at: now, fault })?;
        let charges = keys.into_iter().zip(prices).collect();
        self.execute(now, Command::Charge(charges), || "what ended".into()).map(drop)
    }

    /// The queues of the cluster, and a plain queue or account for each name that jobs use beside them.
    fn objects(&self, cluster: &SimCluster) -> Objects {
        let specs = || self.workload.jobs.iter().map(|job| &job.spec);
        let mut names: BTreeSet<&str> = specs().map(|spec| spec.queue.as_str()).collect();
        let accounts: BTreeSet<&str> = specs().map(|spec| spec.account.as_str()).chain([DEFAULT_NAME]).collect();
        if names.is_empty() {
            names.insert(DEFAULT_NAME);
        }
        let given = |name: &str| cluster.queues.iter().any(|(queue, _)| queue.name == name);
        let plain = |name: &str| {
            let default = name == DEFAULT_NAME;
            (Queue { name: name.to_owned(), default, weight: 1, ..Queue::default() }, None)
        };
        let account = |name: &str| Account { name: name.to_owned(), shares: 1, ..Account::default() };
        Objects {
            queues: cluster
                .queues
                .iter()
                .cloned()
                .chain(names.into_iter().filter(|name| !given(name)).map(plain))
                .collect(),
            accounts: accounts.into_iter().map(account).collect(),
            ..Objects::default()
        }
    }

    fn execute(&mut self, at: Timestamp, command: Command, what: impl FnOnce() -> String) -> Result<Reply, SimError> {
        execute(&mut self.outcome.state, at, command, &mut self.batch).map_err(|refusal| SimError::Refused {
            at,
            what: what(),
            refusal,
        })
    }

    fn arrive(&mut self, at: Timestamp, index: usize) -> Result<(), SimError> {
        self.submit(at, index)?;
        if let Some(next) = self.workload.jobs.get(index + 1) {
            self.timeline.put(next.submit, Happening::Arrival(index + 1));
        }
        Ok(())
    }

    fn submit(&mut self, at: Timestamp, index: usize) -> Result<(), SimError> {
        let job = &self.workload.jobs[index];
        let spec = job.spec.clone();
        let command = Command::Submit { spec, script: None, environment: Digest::default(), known_ends: Vec::new() };
        if let Reply::Job(id) = self.execute(at, command, || format!("job '{}'", job.spec.name))? {
            self.places.resize(id.0 as usize, index);
        }
        self.waiting += 1;
        Ok(())
    }

    fn complete(&mut self, at: Timestamp, key: AttemptKey) -> Result<(), SimError> {
        // One that gave way ended before its time.
        if self.outcome.state.attempts.get(&key.job).is_none_or(|attempt| attempt.key != key) {
            return Ok(());
        }
        let cause = self.workload.jobs[self.place(key.job)].ends;
        let usage = Usage::default();
        let report = NodeReport::Ended { key, exit: Exit::default(), cause, message: String::new(), usage };
        self.execute(at, Command::NodeReport(report), || format!("the end of attempt {key}"))?;
        match self.outcome.state.element(key.job) {
            Some((_, element)) if element.state == JobState::Pending => self.waiting += 1,
            _ => self.ended += 1,
        }
        Ok(())
    }

    /// Ends those whose grace is over by now, where nothing ends by itself.
    fn release(&mut self, now: Timestamp) -> Result<(), SimError> {
        while let Some(at) = self.timeline.next_time().filter(|at| *at <= now) {
            while let Some(happening) = self.timeline.take(at) {
                if let Happening::Completion(key) = happening {
                    self.complete(now, key)?;
                }
            }
        }
        Ok(())
    }

    fn cycle(&mut self, now: Timestamp, policies: &mut Policies) -> Result<(), SimError> {
        let failed = |fault| SimError::Policy { at: now, fault };
        let began = Instant::now();
        let state = &self.outcome.state;
        if let Some(priority) = &policies.priority {
            let prioritized = policies.names.during(state, || self.scheduler.prioritize(state, now, &**priority));
            prioritized.map_err(failed)?;
        }
        if self.scheduler.rests(now, policies.work).is_some() {
            return Ok(());
        }
        let plan = self.scheduler.cycle(state, now, policies.work, &mut *policies.scheduling).map_err(failed)?;
        self.outcome.decisions.push(began.elapsed());
        self.outcome.cycles += 1;
        self.outcome.out_of_budget += u64::from(plan.out_of_budget);
        let reply = self.execute(now, Command::Plan { groups: plan.groups }, || "a plan".into())?;
        if let Reply::Groups(taken) = reply {
            self.outcome.groups_dropped += taken.iter().filter(|taken| !**taken).count() as u64;
            self.scheduler.committed(taken);
        }
        // A policy says nothing new of most jobs.
        self.notes.extend(plan.notes);
        self.end_evicted(now);
        self.begin_started(now)?;
        self.publish();
        Ok(())
    }

    /// Those who give way use the whole of their grace.
    fn end_evicted(&mut self, now: Timestamp) {
        for stamped in &self.batch.events {
            if let Event::Evicted { key, eviction } = &stamped.event {
                self.outcome.evictions += 1;
                self.timeline.put(now + Span(eviction.grace.0.max(1)), Happening::Completion(*key));
            }
        }
    }

    fn begin_started(&mut self, now: Timestamp) -> Result<(), SimError> {
        let started = self.batch.events.iter().filter_map(|stamped| match &stamped.event {
            Event::Started { key, .. } => Some(*key),
            _ => None,
        });
        for key in started.collect::<Vec<_>>() {
            self.notes.remove(&key.job);
            self.begin(now, key)?;
        }
        Ok(())
    }

    /// Who runs, and on what.
    fn holds(&self) -> Vec<(AttemptKey, Arc<Allocation>)> {
        self.outcome.state.attempts.values().map(|a| (a.key, a.allocation.clone())).collect()
    }

    /// Starts a job where it is said to run.
    fn place_at(&mut self, now: Timestamp, running: &Running) -> Result<(), SimError> {
        // Events of others that started must not be taken for new ones.
        self.publish();
        let name = &self.workload.jobs[running.job].spec.name;
        let refused = |text: String| SimError::Refused {
            at: now,
            what: format!("job '{name}' that runs already"),
            refusal: Refusal::new(RefusalKind::Conflict, text),
        };
        let mut allocation = Allocation::default();
        for (node, part) in &running.parts {
            let found = self.outcome.state.nodes.iter().find(|(_, n)| n.spec.name == *node);
            let (id, _) = found.ok_or_else(|| refused(format!("there is no node '{node}'")))?;
            allocation.parts.push(AllocationPart { node: *id, ..part.clone() });
        }
        allocation.parts.sort_by_key(|part| part.node);
        let start = Start { job: JobId(running.job as u64 + 1), allocation: Arc::new(allocation) };
        let command = Command::Plan { groups: vec![Group { starts: vec![start], ..Group::default() }] };
        match self.execute(now, command, || "a start".into())? {
            Reply::Groups(taken) if taken == [true] => self.begin_started(now),
            _ => Err(refused("it does not fit where it is said to run".into())),
        }
    }

    /// What an agent does with a launch: the job runs at once, and its end is known.
    fn begin(&mut self, now: Timestamp, key: AttemptKey) -> Result<(), SimError> {
        let place = self.place(key.job);
        self.outcome.starts[place].get_or_insert(now);
        self.waiting -= 1;
        if self.departures {
            self.timeline.put(now + self.workload.jobs[place].run, Happening::Completion(key));
        }
        self.execute(now, Command::NodeReport(NodeReport::Began { key }), || format!("attempt {key}"))?;
        Ok(())
    }

    /// Ends the jobs that can no longer keep their deadline.
    fn expire(&mut self, now: Timestamp) -> Result<(), SimError> {
        if self.outcome.state.next_deadline().is_none_or(|at| at > now) {
            return Ok(());
        }
        let before = self.batch.events.len();
        self.execute(now, Command::Expire, || "jobs past their deadline".into())?;
        let passed = |stamped: &&Stamped| matches!(stamped.event, Event::DeadlinePassed { .. });
        let over = self.batch.events[before..].iter().filter(passed).count();
        self.waiting -= over;
        self.ended += over;
        Ok(())
    }

    /// Shows the events since the last time to the scheduler and to whoever looks on.
    fn publish(&mut self) {
        self.scheduler.observe(&self.batch.events, &self.outcome.state);
        self.observer.events(&self.batch.events);
        self.batch.events.clear();
        self.batch.touched.clear();
    }

    /// The next instant after `last` at which something happens, a promised start comes, or a deadline can no longer be
    /// kept.
    fn next_time(&self, last: Timestamp) -> Option<Timestamp> {
        let promised = self.scheduler.next_time().filter(|at| *at > last && self.waiting > 0);
        let deadline = self.outcome.state.next_deadline();
        self.timeline.next_time().into_iter().chain(promised).chain(deadline).min()
    }

    fn place(&self, job: JobId) -> usize {
        self.places[job.0 as usize - 1]
    }
}
