//! A cluster in memory and builders for what happens to it, so that a scenario reads like a sentence.

#![allow(dead_code, reason = "each test file uses its own part")]

use ephor_core::command::{Action, Actor, NodeReport, Objects, system};
use ephor_core::cycle::{Cause, Cycle, Keep, Scope};
use ephor_core::decide::{Batch, Change, execute};
use ephor_core::roles::{Fault, Scheduling};
use ephor_core::scheduler::{FirstComeFirstServed, Scheduler};
use ephor_core::{Command, Refusal, Reply, Stamped, State};
use ephor_model::{
    Account, Amounts, ArraySpec, AttemptKey, Dependency, DependencyKind, Device, Digest, EndCause, Exit, GpuRequest,
    JobId, JobSpec, JobState, NodeSpec, Payload, Queue, ResourceId, Span, Timestamp, Usage,
};
use ephor_placement::Placing;
use std::sync::Arc;

/// A job to be submitted.
pub struct TestJob(pub JobSpec);

pub fn job() -> TestJob {
    let mut spec = JobSpec::new("test", Payload::Argv(vec!["true".into()]));
    spec.queue = "main".into();
    spec.account = "default".into();
    spec.time_limit = Some(Span::minutes(60));
    TestJob(spec)
}

impl TestJob {
    pub fn cpus(mut self, n: u32) -> Self {
        self.0.request.cpus_per_task = n;
        self
    }
    pub fn gpus(mut self, gpus: GpuRequest) -> Self {
        self.0.request.gpus = gpus;
        self
    }
    pub fn array(mut self, text: &str) -> Self {
        self.0.array = Some(ArraySpec::parse(text).unwrap());
        self
    }
    pub fn after(mut self, kind: DependencyKind, job: JobId) -> Self {
        self.0.dependencies.push(Dependency::on(kind, job));
        self
    }
    pub fn after_element(mut self, kind: DependencyKind, job: JobId, index: u32) -> Self {
        self.0.dependencies.push(Dependency { kind, job, index: Some(index) });
        self
    }
    pub fn alone(self) -> Self {
        self.after(DependencyKind::Singleton, JobId(0))
    }
    pub fn named(mut self, name: &str) -> Self {
        self.0.name = name.into();
        self
    }
    pub fn limit(mut self, ms: i64) -> Self {
        self.0.time_limit = Some(Span(ms));
        self
    }
    pub fn deadline(mut self, at: i64) -> Self {
        self.0.deadline = Some(Timestamp(at));
        self
    }
    pub fn any_dependency(mut self) -> Self {
        self.0.dependency_any = true;
        self
    }
    pub fn on_hold(mut self) -> Self {
        self.0.hold = true;
        self
    }
    pub fn begin(mut self, at: i64) -> Self {
        self.0.begin = Some(Timestamp(at));
        self
    }
    pub fn requeue(mut self) -> Self {
        self.0.requeue = Some(true);
        self
    }
    pub fn queue(mut self, name: &str) -> Self {
        self.0.queue = name.into();
        self
    }
}

/// The cluster.
pub struct World {
    pub state: State,
    pub now: Timestamp,
    pub log: Vec<Stamped>,
    pub scheduler: Scheduler,
    /// GPUs of each node that registers.
    pub gpus: u32,
}

impl World {
    /// `nodes` nodes of `cpus` cores each, queue `main`, account `default`.
    pub fn new(nodes: u32, cpus: i64) -> Self {
        Self::with_gpus(nodes, cpus, 0)
    }

    /// The same with `gpus` GPUs of kind `h` on each node.
    pub fn with_gpus(nodes: u32, cpus: i64, gpus: u32) -> Self {
        let state = State::default();
        let scheduler = Scheduler::new(&state);
        let mut world = Self { state, now: Timestamp(1_000), log: Vec::new(), scheduler, gpus };
        world.run(Command::BeginEpoch { at_least: 1 }).unwrap();
        let queue = Queue { name: "main".into(), default: true, ..Queue::default() };
        let account = Account { name: "default".into(), ..Account::default() };
        let objects = Objects { queues: vec![(queue, None)], accounts: vec![account], ..Objects::default() };
        world.run(Command::Apply(objects)).unwrap();
        for i in 0..nodes {
            world.register(&format!("n{i}"), cpus, "boot-1", &[]);
        }
        world
    }

    pub fn run(&mut self, command: Command) -> Result<Reply, Refusal> {
        let mut batch = Batch::default();
        let reply = execute(&mut self.state, self.now, command, &mut batch);
        assert!(reply.is_ok() || batch.events.is_empty(), "a refused command left events: {:?}", batch.events);
        self.scheduler.observe(&batch.events, &self.state);
        self.log.extend(batch.events);
        reply
    }

    pub fn register(&mut self, name: &str, cpus: i64, boot: &str, holds: &[AttemptKey]) -> Vec<AttemptKey> {
        let spec = NodeSpec {
            name: name.into(),
            capacity: Amounts::new()
                .with(ResourceId::CPU, cpus * 1000)
                .with(ResourceId::GPU, i64::from(self.gpus) * 1000),
            devices: (0..self.gpus)
                .map(|i| Device { kind: "h".into(), uuid: i.to_string(), mem_mib: 0, numa: -1, ..Device::default() })
                .collect(),
            boot_id: boot.into(),
            ..NodeSpec::default()
        };
        match self
            .run(Command::NodeReport(NodeReport::Register { spec, holds: holds.to_vec(), faults: Default::default() }))
            .unwrap()
        {
            Reply::Node { unknown, .. } => unknown,
            other => panic!("{other:?}"),
        }
    }

    pub fn try_submit(&mut self, job: TestJob) -> Result<JobId, Refusal> {
        let command = Command::Submit {
            spec: Arc::new(job.0),
            script: None,
            environment: Digest::default(),
            known_ends: Vec::new(),
        };
        self.run(command).map(|reply| match reply {
            Reply::Job(id) => id,
            other => panic!("{other:?}"),
        })
    }

    pub fn submit(&mut self, job: TestJob) -> JobId {
        self.try_submit(job).unwrap()
    }

    /// One cycle; the ids that it started.
    pub fn cycle(&mut self) -> Vec<u64> {
        self.cycle_by(&mut FirstComeFirstServed)
    }

    /// One cycle under that policy; the ids that it started.
    pub fn cycle_by(&mut self, policy: &mut dyn Scheduling) -> Vec<u64> {
        let groups = self.scheduler.cycle(&self.state, self.now, 1_000_000, policy).unwrap().groups;
        let Reply::Groups(taken) = self.run(Command::Plan { groups: groups.clone() }).unwrap() else { panic!() };
        self.scheduler.committed(taken.clone());
        let taken = groups.iter().zip(taken).filter(|(_, taken)| *taken);
        taken.flat_map(|(group, _)| group.starts.iter().map(|s| s.job.0)).collect()
    }

    /// The controller starts anew from what the store keeps.
    pub fn restart(&mut self) {
        let rows = self.state.row_keys().into_iter().map(|k| (k.clone(), self.state.row(&k).unwrap()));
        self.state = State::from_rows(rows).unwrap();
        self.scheduler = Scheduler::new(&self.state);
    }

    /// The start that is promised to a job.
    pub fn promised(&self, job: JobId) -> Option<i64> {
        self.state.promises.get(&job).map(|promise| promise.start.0)
    }

    pub fn wait(&mut self, ms: i64) {
        self.now = self.now + Span(ms);
    }

    pub fn attempt(&self, job: JobId) -> AttemptKey {
        self.state.attempts.get(&job).unwrap().key
    }

    pub fn begin(&mut self, job: JobId) {
        let key = self.attempt(job);
        self.run(Command::NodeReport(NodeReport::Began { key })).unwrap();
    }

    pub fn end(&mut self, job: JobId, code: i32, cause: EndCause) {
        let key = self.attempt(job);
        let exit = Exit { code, signal: 0 };
        let usage = Usage::default();
        let report = NodeReport::Ended { key, exit, cause, message: String::new(), usage };
        self.run(Command::NodeReport(report)).unwrap();
    }

    pub fn finish(&mut self, job: JobId, code: i32) {
        self.end(job, code, EndCause::Exited);
    }

    pub fn act(&mut self, action: Action, job: JobId) -> Result<Reply, Refusal> {
        self.run(Command::Act { action, job, whole: true, by: system() })
    }

    pub fn act_as_user(&mut self, action: Action, job: JobId) -> Result<Reply, Refusal> {
        let by = Actor { name: "ann".into(), operator: false };
        self.run(Command::Act { action, job, whole: true, by })
    }

    /// Changes a job as a user or an operator.
    pub fn modify(&mut self, job: JobId, operator: bool, change: impl FnOnce(&mut JobSpec)) -> Result<Reply, Refusal> {
        let (first, was) = self.state.find(job).map(|(entry, _)| (entry.job.id, entry.job.spec.clone())).unwrap();
        let mut spec = (*was).clone();
        change(&mut spec);
        let by = Actor { name: "ann".into(), operator };
        let job = if job == first { first } else { job };
        let change = Change { was, spec: Arc::new(spec) };
        self.run(Command::Modify { job, change, known_ends: Vec::new(), by })
    }

    pub fn eligible(&self, id: JobId) -> Option<Timestamp> {
        self.state.element(id).unwrap().1.eligible
    }

    pub fn job_state(&self, id: JobId) -> JobState {
        self.state.element(id).unwrap().1.state
    }

    /// Folds the whole log anew, and builds the state from its rows: both must be this state, row by row (law 3).
    pub fn check_fold(&self) {
        let mut folded = State::default();
        let mut touched = std::collections::BTreeSet::new();
        for stamped in &self.log {
            folded.apply(stamped, &mut touched).unwrap();
        }
        let rows = |s: &State| s.row_keys().into_iter().map(|k| (k.clone(), s.row(&k))).collect::<Vec<_>>();
        let mine = rows(&self.state);
        assert_eq!(rows(&folded), mine);
        let loaded = State::from_rows(mine.iter().filter_map(|(k, r)| r.clone().map(|r| (k.clone(), r)))).unwrap();
        assert_eq!(rows(&loaded), mine);
        for id in loaded.nodes.keys() {
            assert_eq!(loaded.free(*id), self.state.free(*id), "free on node {id}");
        }
        let (loaded, mine) = (loaded.derived, &self.state.derived);
        assert_eq!((loaded.unfinished, loaded.finished), (mine.unfinished, mine.finished));
        assert_eq!(loaded.dependents, mine.dependents);
        assert_eq!(loaded.names, mine.names);
        assert_eq!(loaded.deadlines, mine.deadlines);
    }
}

/// Conservative backfill at its plainest: everybody in order, anew where capacity came free early.
#[derive(Default)]
pub struct Conservative {
    /// The causes of its last cycle.
    pub causes: Vec<Cause>,
}

impl Scheduling for Conservative {
    fn schedule(&mut self, mut cycle: Box<Cycle>) -> (Box<Cycle>, Result<(), Fault>) {
        self.causes = cycle.causes();
        let anew = self.causes.iter().any(|c| !matches!(c, Cause::Arrived(_) | Cause::Released));
        let all = cycle.next(Scope::All, None, 1_000);
        cycle.start_or_reserve(&all, &Placing::default(), Keep::Durable, anew);
        (cycle, Ok(()))
    }

    fn label(&self) -> String {
        "conservative".into()
    }
}

/// A policy of a few lines.
pub struct By<F>(pub F);

impl<F: FnMut(&mut Cycle) + Send> Scheduling for By<F> {
    fn schedule(&mut self, mut cycle: Box<Cycle>) -> (Box<Cycle>, Result<(), Fault>) {
        (self.0)(&mut cycle);
        (cycle, Ok(()))
    }

    fn label(&self) -> String {
        "a test".into()
    }
}
