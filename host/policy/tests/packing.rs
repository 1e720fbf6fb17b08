//! The packing policy through the host, on small clusters with several kinds of GPU.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may its helpers")]

mod common;

use common::*;
use ephor_core::command::{NodeReport, Objects};
use ephor_core::cycle::Plan;
use ephor_core::decide::{Batch, execute};
use ephor_core::{Command, Reply, State};
use ephor_model::{
    Account, Amounts, Device, Digest, GpuRequest, JobId, NodeId, NodeSpec, Queue, Request, ResourceId, Role, Span,
    Timestamp,
};
use ephor_policy::Loaded;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A cluster under construction.
struct World(State);

impl World {
    /// Nodes with 16 cores and so many GPUs of that kind each; the last one has the feature `special`.
    fn new(nodes: &[(&str, usize)]) -> Self {
        let mut world = Self(State::default());
        world.run(Command::BeginEpoch { at_least: 1 });
        let queue = Queue { name: "main".into(), default: true, ..Queue::default() };
        let account = Account { name: "default".into(), ..Account::default() };
        world.run(Command::Apply(Objects {
            queues: vec![(queue, None)],
            accounts: vec![account],
            ..Objects::default()
        }));
        for (i, (kind, gpus)) in nodes.iter().enumerate() {
            let capacity = Amounts::new()
                .with(ResourceId::CPU, 16_000)
                .with(ResourceId::MEM, 65_536)
                .with(ResourceId::GPU, *gpus as i64 * 1000);
            let device = |d: usize| Device {
                kind: (*kind).into(),
                uuid: format!("{i}-{d}"),
                mem_mib: 1,
                numa: -1,
                ..Device::default()
            };
            let features = if i + 1 == nodes.len() { vec!["special".to_owned()] } else { Vec::new() };
            let spec = NodeSpec {
                name: format!("n{i}"),
                capacity,
                devices: (0..*gpus).map(device).collect(),
                features,
                boot_id: "boot".into(),
                ..NodeSpec::default()
            };
            world.run(Command::NodeReport(NodeReport::Register {
                spec,
                holds: Vec::new(),
                faults: Default::default(),
            }));
        }
        world
    }

    fn run(&mut self, command: Command) -> Reply {
        execute(&mut self.0, Timestamp(1_000), command, &mut Batch::default()).unwrap()
    }

    fn submit(&mut self, minutes: i64, request: Request) -> JobId {
        let mut spec = draft().spec;
        spec.time_limit = Some(Span::minutes(minutes));
        spec.request = request.into();
        let (script, environment) = (Some(Digest::default()), Digest::default());
        match self.run(Command::Submit { spec: Arc::new(spec), script, environment, known_ends: Vec::new() }) {
            Reply::Job(id) => id,
            other => panic!("{other:?}"),
        }
    }

    /// One cycle of the policy, committed: on which node each job that it started is.
    fn cycle(&mut self, policy: &[u8], config: &str) -> BTreeMap<JobId, NodeId> {
        let plan = self.plan(policy, config, 1_000_000);
        let on = |s: &ephor_core::command::Start| (s.job, s.allocation.parts[0].node);
        let placed = plan.groups.iter().flat_map(|g| g.starts.iter().map(on)).collect();
        let groups = plan.groups.len();
        match self.run(Command::Plan { groups: plan.groups }) {
            Reply::Groups(taken) => assert_eq!(taken, vec![true; groups]),
            other => panic!("{other:?}"),
        }
        placed
    }

    fn plan(&self, policy: &[u8], config: &str, work: u64) -> Plan {
        self.plan_of(&load(Role::Scheduling, policy, config), work)
    }

    fn plan_of(&self, loaded: &Loaded, work: u64) -> Plan {
        let (cycle, result) = loaded.scheduling().unwrap().schedule(cycle_with_work(&self.0, work));
        result.unwrap();
        cycle.finish().1
    }
}

fn gpus(n: u32, kinds: &[&str]) -> Request {
    let mut request = Request { cpus_per_task: 2, gpus: GpuRequest::PerNode(n), ..Request::default() };
    request.set_gpu_types(kinds.iter().map(|k| (*k).to_owned()).collect());
    request
}

fn share(milli: u32) -> Request {
    Request { gpus: GpuRequest::Share(milli), ..gpus(1, &[]) }
}

#[test]
fn jobs_that_take_any_kind_leave_the_rare_one_to_those_that_need_it() {
    let Some(policy) = plugin("scheduling-packing") else { return };
    let mut world = World::new(&[("rare", 2), ("rare", 2), ("plain", 2), ("plain", 2)]);
    (0..4).for_each(|_| _ = world.submit(60, gpus(1, &[])));
    let rare: Vec<JobId> = (0..4).map(|_| world.submit(60, gpus(1, &["none", "rare"]))).collect();
    let placed = world.cycle(&policy, "");
    assert_eq!(placed.len(), 8, "{placed:?}");
    assert!(rare.iter().all(|job| placed[job].0 < 2), "{placed:?}");
}

#[test]
fn parts_of_gpus_fill_devices_and_leave_whole_ones() {
    let Some(policy) = plugin("scheduling-packing") else { return };
    let mut world = World::new(&[("a", 2), ("a", 2)]);
    [500, 500, 300, 700].into_iter().for_each(|milli| _ = world.submit(60, share(milli)));
    let pair = world.submit(60, gpus(2, &[]));
    let placed = world.cycle(&policy, "");
    assert_eq!(placed.len(), 5, "{placed:?}");
    let others = placed.iter().filter(|(job, _)| **job != pair);
    assert!(others.into_iter().all(|(_, node)| *node != placed[&pair]), "{placed:?}");
}

#[test]
fn what_the_policy_does_not_see_the_host_tells_it() {
    let Some(policy) = plugin("scheduling-packing") else { return };
    let mut world = World::new(&[("a", 2), ("a", 2), ("a", 2), ("a", 2), ("a", 2), ("a", 2), ("a", 2)]);
    let special = Request { features: vec!["special".into()], ..gpus(1, &[]) };
    let jobs: Vec<JobId> = (0..3).map(|_| world.submit(60, special.clone())).collect();
    let placed = world.cycle(&policy, "");
    // Two GPUs are on the only node that will do.
    assert_eq!(placed, BTreeMap::from([(jobs[0], NodeId(6)), (jobs[1], NodeId(6))]));
}

#[test]
fn the_first_that_waits_is_promised_a_start_unless_the_site_says_otherwise() {
    let Some(policy) = plugin("scheduling-packing") else { return };
    let mut world = World::new(&[("a", 2), ("a", 2)]);
    world.submit(30, gpus(2, &[]));
    assert_eq!(world.cycle(&policy, "").len(), 1);
    // A gang of both nodes, whole; behind it a long job that would be in its way, and a short one that is not.
    let gang = world.submit(60, Request { nodes_min: 2, nodes_max: Some(2), ..gpus(2, &[]) });
    let (long, short) = (world.submit(60, gpus(1, &[])), world.submit(5, gpus(1, &[])));
    let started = |plan: Plan| plan.groups.iter().flat_map(|g| g.starts.iter().map(|s| s.job)).collect::<Vec<_>>();
    assert_eq!(started(world.plan(&policy, "", 1_000_000)), [short]);
    assert_eq!(started(world.plan(&policy, r#"{"promises": 0}"#, 1_000_000)), [long, short]);
    assert!(!world.0.attempts.contains_key(&gang));
}

#[test]
fn with_little_work_left_the_plan_so_far_stands() {
    let Some(policy) = plugin("scheduling-packing") else { return };
    let mut world = World::new(&[("a", 2), ("a", 2)]);
    (0..4).for_each(|_| _ = world.submit(60, gpus(1, &[])));
    let loaded = load(Role::Scheduling, &policy, "");
    let count = |work| world.plan_of(&loaded, work).groups.len();
    assert_eq!(count(0), 0);
    let counts: Vec<usize> = (0..200).map(count).collect();
    assert!(counts.contains(&1) && counts.contains(&4), "{counts:?}");
}
