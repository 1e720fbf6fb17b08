//! Runs a workload in virtual time: the controller's own core, scheduler and policies, with a queue of timed events in
//! place of a network, a clock and agents.
//!
//! At each instant completions come first, then arrivals, then one cycle.

use crate::policies::Policies;
use crate::timeline::{Happening, Timeline};
use crate::workload::{DEFAULT_NAME, Workload};
use ephor_core::command::{NodeReport, Objects};
use ephor_core::decide::{Batch, execute};
use ephor_core::roles::Fault;
use ephor_core::scheduler::Scheduler;
use ephor_core::{Command, Event, Refusal, Reply, Stamped, State};
use ephor_model::{Account, Amounts, AttemptKey, Digest, Exit, JobId, NodeSpec, Queue, ResourceId, Timestamp, Usage};

/// Looks on while a simulation runs.
pub trait Observer {
    /// These events were decided at one instant, in this order.
    fn events(&mut self, _events: &[Stamped]) {}
    /// An instant is over; so many of all jobs have ended.
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
    /// Cycles in which the work units ended before the policy did.
    pub out_of_budget: u64,
    /// Groups of plans that the core did not take.
    pub groups_dropped: u64,
    /// The state at the end.
    pub state: State,
}

/// A cluster of one node with that many processors and nothing else.
pub fn one_node(processors: u32) -> Vec<NodeSpec> {
    let capacity = Amounts::new().with(ResourceId::CPU, i64::from(processors) * 1000);
    vec![NodeSpec { name: "node1".into(), capacity, boot_id: "simulated".into(), ..NodeSpec::default() }]
}

/// Runs the workload on these nodes to its end.
///
/// # Errors
/// See [`SimError`].
pub fn run(
    workload: &Workload,
    nodes: Vec<NodeSpec>,
    policies: &mut Policies,
    observer: &mut dyn Observer,
) -> Result<Outcome, SimError> {
    let mut sim = Sim::new(workload, observer);
    sim.set_up(nodes)?;
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
        sim.publish();
        if sim.waiting > 0 && sim.scheduler.due(now) {
            sim.cycle(now, policies)?;
        }
        sim.observer.instant(sim.ended, workload.jobs.len());
    }
    Ok(sim.outcome)
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
            outcome: Outcome {
                starts: vec![None; workload.jobs.len()],
                cycles: 0,
                out_of_budget: 0,
                groups_dropped: 0,
                state,
            },
        }
    }

    fn set_up(&mut self, nodes: Vec<NodeSpec>) -> Result<(), SimError> {
        let at = Timestamp(0);
        let queue = Queue { name: DEFAULT_NAME.into(), default: true, weight: 1, ..Queue::default() };
        let account = Account { name: DEFAULT_NAME.into(), shares: 1, ..Account::default() };
        let objects = Objects { queues: vec![(queue, None)], accounts: vec![account], ..Objects::default() };
        self.execute(at, Command::BeginEpoch { at_least: 1 }, || "the first epoch".into())?;
        self.execute(at, Command::Apply(objects), || "the queue and the account".into())?;
        for spec in nodes {
            let name = spec.name.clone();
            let report = NodeReport::Register { spec, holds: Vec::new() };
            self.execute(at, Command::NodeReport(report), || format!("node '{name}'"))?;
        }
        self.publish();
        Ok(())
    }

    fn execute(&mut self, at: Timestamp, command: Command, what: impl FnOnce() -> String) -> Result<Reply, SimError> {
        execute(&mut self.outcome.state, at, command, &mut self.batch).map_err(|refusal| SimError::Refused {
            at,
            what: what(),
            refusal,
        })
    }

    fn arrive(&mut self, at: Timestamp, index: usize) -> Result<(), SimError> {
        let job = &self.workload.jobs[index];
        let spec = job.spec.clone();
        let command = Command::Submit { spec, script: None, environment: Digest::default(), known_ends: Vec::new() };
        if let Reply::Job(id) = self.execute(at, command, || format!("job '{}'", job.spec.name))? {
            self.places.resize(id.0 as usize, index);
        }
        self.waiting += 1;
        if let Some(next) = self.workload.jobs.get(index + 1) {
            self.timeline.put(next.submit, Happening::Arrival(index + 1));
        }
        Ok(())
    }

    fn complete(&mut self, at: Timestamp, key: AttemptKey) -> Result<(), SimError> {
        let cause = self.workload.jobs[self.place(key.job)].ends;
        let usage = Usage::default();
        let report = NodeReport::Ended { key, exit: Exit::default(), cause, message: String::new(), usage };
        self.execute(at, Command::NodeReport(report), || format!("the end of attempt {key}"))?;
        self.ended += 1;
        Ok(())
    }

    fn cycle(&mut self, now: Timestamp, policies: &mut Policies) -> Result<(), SimError> {
        let failed = |fault| SimError::Policy { at: now, fault };
        let state = &self.outcome.state;
        if let Some(priority) = &policies.priority {
            let prioritized = policies.names.during(state, || self.scheduler.prioritize(state, now, &**priority));
            prioritized.map_err(failed)?;
        }
        let plan = self.scheduler.cycle(state, now, policies.work, &mut *policies.scheduling).map_err(failed)?;
        self.outcome.cycles += 1;
        self.outcome.out_of_budget += u64::from(plan.out_of_budget);
        let reply = self.execute(now, Command::Plan { groups: plan.groups }, || "a plan".into())?;
        if let Reply::Groups(taken) = reply {
            self.outcome.groups_dropped += taken.iter().filter(|taken| !**taken).count() as u64;
            self.scheduler.committed(taken);
        }
        let started = self.batch.events.iter().filter_map(|stamped| match &stamped.event {
            Event::Started { key, .. } => Some(*key),
            _ => None,
        });
        for key in started.collect::<Vec<_>>() {
            self.begin(now, key)?;
        }
        self.publish();
        Ok(())
    }

    /// What an agent does with a launch: the job runs at once, and its end is known.
    fn begin(&mut self, now: Timestamp, key: AttemptKey) -> Result<(), SimError> {
        let place = self.place(key.job);
        self.outcome.starts[place].get_or_insert(now);
        self.waiting -= 1;
        self.timeline.put(now + self.workload.jobs[place].run, Happening::Completion(key));
        self.execute(now, Command::NodeReport(NodeReport::Began { key }), || format!("attempt {key}"))?;
        Ok(())
    }

    /// Shows the events since the last time to the scheduler and to whoever looks on.
    fn publish(&mut self) {
        self.scheduler.observe(&self.batch.events, &self.outcome.state);
        self.observer.events(&self.batch.events);
        self.batch.events.clear();
        self.batch.touched.clear();
    }

    /// The next instant after `last` at which something happens or a promised start comes.
    fn next_time(&self, last: Timestamp) -> Option<Timestamp> {
        let promised = self.scheduler.next_time().filter(|at| *at > last && self.waiting > 0);
        self.timeline.next_time().into_iter().chain(promised).min()
    }

    fn place(&self, job: JobId) -> usize {
        self.places[job.0 as usize - 1]
    }
}
