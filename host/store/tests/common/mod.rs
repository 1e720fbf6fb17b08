//! A small cluster that lives through whatever numbers say, and commits what happened to a store.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod disk;

use ephor_core::command::{Action, Actor, Command, Group, Kept, NodeReport, ObjectKind, Objects, Start};
use ephor_core::decide::{Batch, execute};
use ephor_core::records::Fading;
use ephor_core::{LiftCause, Reply, State};
use ephor_model::*;
use ephor_store::{CommitBatch, Store, StoreError};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// The state in memory, and what is not committed yet.
pub struct Cluster {
    pub state: State,
    pub batch: Batch,
    pub blobs: Vec<(Digest, Vec<u8>)>,
    now: i64,
}

pub fn digest(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// A batch script of some size, and an environment: few different ones, so that jobs share them.
pub fn blob(which: u64) -> Vec<u8> {
    let line = format!("#!/bin/sh\n# {}\0\n", which % 7);
    line.repeat(1 + (which % 3) as usize * 400).into_bytes()
}

impl Cluster {
    /// Goes on with a state that was loaded.
    pub fn resume(state: State) -> Self {
        Self { now: state.meta.now.0, state, batch: Batch::default(), blobs: Vec::new() }
    }

    /// A cluster with two queues, an account and three nodes; nothing of it is committed.
    pub fn new(state: State) -> Self {
        let mut cluster = Self::resume(state);
        cluster.execute(Command::BeginEpoch { at_least: 0 });
        let queue = |name: &str| (Queue { name: name.into(), ..Queue::default() }, None);
        let queues = vec![queue("main"), queue("other")];
        let accounts = vec![Account { name: "physics".into(), ..Account::default() }];
        let applied = cluster.execute(Command::Apply(Objects { queues, accounts, ..Objects::default() }));
        assert!(applied.is_some());
        (0..3).for_each(|n| cluster.register(n, 1));
        cluster
    }

    pub fn execute(&mut self, command: Command) -> Option<Reply> {
        self.now += 1000;
        execute(&mut self.state, Timestamp(self.now), command, &mut self.batch).ok()
    }

    pub fn register(&mut self, number: u64, boot: u64) {
        let capacity = Amounts::new().with(ResourceId::CPU, 64_000).with(ResourceId::MEM, 1 << 20);
        let spec =
            NodeSpec { name: format!("n{number}"), capacity, boot_id: format!("boot {boot}"), ..NodeSpec::default() };
        self.execute(Command::NodeReport(NodeReport::Register { spec, holds: Vec::new(), faults: Default::default() }));
    }

    /// Submits a job whose texts and size come from the numbers; the id, where it was taken.
    pub fn submit(&mut self, name: &str, a: u64, b: u64) -> Option<JobId> {
        let (script, environment) = (blob(a), blob(b));
        let mut spec = JobSpec::new(name, Payload::Script { args: vec![name.to_owned()] });
        spec.owner = Owner { uid: Uid(1000 + (a % 3) as u32), gid: 100, name: format!("user{}", a % 3) };
        spec.queue = "main".into();
        spec.account = "physics".into();
        spec.comment = (b % 2 == 0).then(|| name.to_owned());
        spec.hold = a % 11 == 0;
        spec.requeue = Some(b % 3 == 0);
        spec.array = (a % 4 == 0).then(|| ArraySpec::parse(&format!("0-{}:2", b % 9)).unwrap());
        let known: Vec<JobId> = self.state.jobs.keys().copied().collect();
        if b % 5 == 0
            && let Some(other) = known.get(a as usize % known.len().max(1))
        {
            let kind = DependencyKind::NAMES[a as usize % 4].0;
            spec.dependencies.push(Dependency::on(kind, *other));
        }
        let command = Command::Submit {
            spec: Arc::new(spec),
            script: Some(digest(&script)),
            environment: digest(&environment),
            known_ends: Vec::new(),
        };
        match self.execute(command)? {
            Reply::Job(id) => {
                self.blobs.extend([script, environment].map(|bytes| (digest(&bytes), bytes)));
                Some(id)
            }
            _ => None,
        }
    }

    /// One thing that happens, as the numbers say. Much of it is refused, as in life.
    pub fn happen(&mut self, what: u8, a: u64, b: u64, name: &str) {
        let ids: Vec<JobId> = self
            .state
            .jobs
            .values()
            .flat_map(|e| (0..e.elements.len() as u64).map(|i| JobId(e.job.id.0 + i)))
            .collect();
        let job = ids.get(a as usize % ids.len().max(1)).copied().unwrap_or(JobId(a));
        let attempts: Vec<AttemptKey> = self.state.attempts.values().map(|at| at.key).collect();
        let attempt = attempts.get(a as usize % attempts.len().max(1)).copied();
        let node = NodeId((b % 4) as u32);
        let command = match what % 20 {
            0..=3 => {
                self.submit(name, a, b);
                return;
            }
            4..=6 => {
                let start = |job: JobId| {
                    let amounts = Amounts::new().with(ResourceId::CPU, 1000 + (b % 3) as i64);
                    let part = AllocationPart { node, tasks: 1, amounts, devices: Default::default() };
                    let allocation = Arc::new(Allocation { parts: [part].into_iter().collect() });
                    if b % 3 == 0 {
                        let kept =
                            Kept { job, start: self.state.meta.now + Span(a as i64 * 1000), allocation, claim: false };
                        return Group { promises: vec![kept], ..Group::default() };
                    }
                    let lifts = vec![(JobId(a), LiftCause::Policy)];
                    Group { starts: vec![Start { job, allocation }], lifts, ..Group::default() }
                };
                Command::Plan { groups: ids.iter().copied().filter(|j| j.0 % 3 == a % 3).map(start).collect() }
            }
            7 => match attempt {
                Some(key) => Command::NodeReport(NodeReport::Began { key }),
                None => return,
            },
            8..=10 => match attempt {
                Some(key) => Command::NodeReport(NodeReport::Ended {
                    key,
                    exit: Exit { code: (b % 2) as i32, signal: 0 },
                    cause: [EndCause::Exited, EndCause::NodeFailed, EndCause::Preempted][(b % 3) as usize],
                    message: name.to_owned(),
                    usage: Usage { cpu_ms: b as i64, peak_mem_mib: 3, held: Amounts::new() },
                }),
                None => return,
            },
            11 => Command::Act {
                action: [Action::Cancel, Action::Hold, Action::Release, Action::Requeue][(b % 4) as usize],
                job,
                whole: b % 8 < 4,
                by: Actor { name: name.to_owned(), operator: b % 3 == 0 },
            },
            12 => Command::Charge(self.state.uncharged.keys().take(3).map(|k| (*k, b as i64 % 1000)).collect()),
            13 => Command::Forget(self.state.jobs.keys().copied().collect()),
            14 if b % 2 == 0 => Command::NodeReport(NodeReport::Silent { node, reason: name.to_owned() }),
            14 => return self.register(a % 5, b % 3),
            15 => Command::DrainNode { node, reason: (b % 2 == 0).then(|| format!("x{name}")), by: name.to_owned() },
            16 => {
                let component = blob(a);
                self.blobs.push((digest(&component), component.clone()));
                let slot = Slot { role: Role::ALL[(b % 5) as usize], name: name.to_owned() };
                Command::Activate { slot, generation: generation(name, &component) }
            }
            17 => match self.state.policies.keys().nth(a as usize % self.state.policies.len().max(1)).cloned() {
                Some(slot) if b % 2 == 0 => Command::RollBack { slot },
                Some(slot) => Command::Disable { slot },
                None => return,
            },
            18 if b % 2 == 0 => Command::IssueToken { token: digest(name.as_bytes()), node: String::new() },
            18 => Command::UseToken { token: digest(name.as_bytes()), node: "n1".into() },
            _ if b % 4 == 0 => Command::SetFading(Fading { period: Span(60_000), factor: 1 << (20 + b % 12) }),
            _ if b % 4 == 1 => Command::Fade,
            _ if b % 4 == 2 => Command::BeginEpoch { at_least: 0 },
            _ => Command::Delete { kind: ObjectKind::Node, name: format!("n{}", a % 5) },
        };
        self.execute(command);
    }

    /// Commits what happened since the last commit.
    pub fn commit(&mut self, store: &mut dyn Store) -> Result<(), StoreError> {
        let batch = std::mem::take(&mut self.batch);
        let blobs = std::mem::take(&mut self.blobs);
        store.commit(self.state.meta.epoch, &CommitBatch::of(&self.state, &batch, blobs))
    }
}

pub fn generation(name: &str, component: &[u8]) -> Generation {
    Generation {
        number: 0,
        name: name.to_owned(),
        version: "1.0.0".into(),
        component: digest(component),
        config: "{}".into(),
        limits: PolicyLimits::default(),
        grants: vec![name.to_owned()],
        since: Timestamp(0),
        by: name.to_owned(),
    }
}

/// Whether two states are the same as rows.
pub fn assert_same(a: &State, b: &State) {
    let keys = a.row_keys();
    assert_eq!(keys, b.row_keys());
    for key in keys {
        assert_eq!(a.row(&key), b.row(&key));
    }
}
