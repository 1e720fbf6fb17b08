//! Model test: whatever commands come in whatever order, nothing is granted twice, the replica agrees with the state,
//! and the log folds to the same rows (laws 3, 7).

mod support;

use ephor_core::command::{Action, NodeReport};
use ephor_core::{Command, NodeHealth};
use ephor_model::{AllocationPart, AttemptKey, EndCause, GpuRequest, JobId, JobState, ResourceId};
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::{Conservative, World, job};

#[derive(Clone, Debug)]
enum Step {
    Submit { cpus: u32, gpu: u32, array: u32, hold: bool, depends: Option<u8> },
    Cycle,
    Promise,
    Begin(u8),
    End { which: u8, code: i32 },
    Act { action: u8, job: u8 },
    Silent(u8),
    Return { node: u8, reboot: bool },
    Drain { node: u8, on: bool },
    Wait(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u32..4, 0u32..14, 0u32..5, any::<bool>(), proptest::option::of(any::<u8>())).prop_map(
            |(cpus, gpu, array, hold, depends)| Step::Submit { cpus, gpu, array, hold: hold && array == 1, depends }
        ),
        4 => Just(Step::Cycle),
        4 => Just(Step::Promise),
        3 => any::<u8>().prop_map(Step::Begin),
        4 => (any::<u8>(), 0..2).prop_map(|(which, code)| Step::End { which, code }),
        2 => (0u8..4, any::<u8>()).prop_map(|(action, job)| Step::Act { action, job }),
        1 => any::<u8>().prop_map(Step::Silent),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(node, reboot)| Step::Return { node, reboot }),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(node, on)| Step::Drain { node, on }),
        2 => any::<u16>().prop_map(Step::Wait),
    ]
}

const NODES: u32 = 3;
const CPUS: i64 = 4;
const GPUS: u32 = 2;

fn pick(world: &World, which: u8) -> Option<JobId> {
    let live: Vec<JobId> = world.state.attempts.keys().copied().collect();
    (!live.is_empty()).then(|| live[which as usize % live.len()])
}

fn take(world: &mut World, step: &Step, boots: &mut u32) {
    match step {
        Step::Submit { cpus, gpu, array, hold, depends } => {
            let gpus = match gpu {
                tenths @ 1..10 => GpuRequest::Share(tenths * 100),
                10 | 11 => GpuRequest::PerNode(gpu - 9),
                _ => GpuRequest::None,
            };
            let mut new = job().cpus(*cpus).gpus(gpus);
            new.0.hold = *hold;
            new.0.requeue = Some(*cpus == 2);
            if *array > 1 {
                new = new.array(&format!("0-{array}%2"));
            }
            let known = world.state.meta.next_job;
            if let Some(d) = depends.filter(|_| known > 1) {
                let kinds = ephor_model::DependencyKind::NAMES;
                let on = JobId(1 + u64::from(d) % (known - 1));
                new = new.after(kinds[d as usize % kinds.len()].0, on);
            }
            world.submit(new);
        }
        Step::Cycle => drop(world.cycle()),
        Step::Promise => drop(world.cycle_by(&mut Conservative::default())),
        Step::Begin(which) => {
            if let Some(id) = pick(world, *which) {
                world.begin(id);
            }
        }
        Step::End { which, code } => {
            if let Some(id) = pick(world, *which) {
                world.end(id, *code, EndCause::Exited);
            }
        }
        Step::Act { action, job } => {
            let actions = [Action::Cancel, Action::Hold, Action::Release, Action::Requeue];
            let id = JobId(1 + u64::from(*job) % world.state.meta.next_job.max(1));
            let _ = world.act(actions[*action as usize % 4], id);
        }
        Step::Silent(node) => {
            let node = ephor_model::NodeId(u32::from(*node) % NODES);
            world.run(Command::NodeReport(NodeReport::Silent { node, reason: "silent".into() })).unwrap();
        }
        Step::Return { node, reboot } => {
            *boots += u32::from(*reboot);
            let id = ephor_model::NodeId(u32::from(*node) % NODES);
            let node = world.state.nodes.get(&id).unwrap().clone();
            let boot = if *reboot { format!("boot-{boots}-again") } else { node.spec.boot_id.clone() };
            let held = world.state.derived.held.get(&id).map(|h| h.jobs.clone()).unwrap_or_default();
            let holds: Vec<AttemptKey> = match *reboot {
                true => Vec::new(),
                false => held.iter().filter_map(|j| world.state.attempts.get(j)).map(|a| a.key).collect(),
            };
            world.register(&node.spec.name, CPUS, &boot, &holds);
        }
        Step::Drain { node, on } => {
            let node = ephor_model::NodeId(u32::from(*node) % NODES);
            let reason = on.then(|| "test".to_owned());
            world.run(Command::DrainNode { node, reason, by: "root".into() }).unwrap();
        }
        Step::Wait(ms) => world.wait(i64::from(*ms)),
    }
}

fn check(world: &World) {
    let now = world.scheduler.replica().cluster.now();
    for (id, promise) in &world.state.promises {
        let (_, element) = world.state.element(*id).unwrap();
        assert!(element.state == JobState::Pending && element.eligible.is_some(), "job {id} does not wait");
        let kept = world.scheduler.replica().promises().get(*id).unwrap();
        assert_eq!(&kept.promise, promise, "the replica's promise differs");
        let up = |p: &AllocationPart| world.state.nodes.get(&p.node).unwrap().takes_jobs();
        assert!(promise.allocation.parts.iter().all(up), "a node that takes no jobs is promised to job {id}");
    }
    assert_eq!(world.scheduler.replica().promises().len(), world.state.promises.len());
    for (id, node) in &world.state.nodes {
        let held: i64 = world
            .state
            .attempts
            .values()
            .flat_map(|a| a.allocation.parts.iter())
            .filter(|p| p.node == *id)
            .map(|p| p.amounts.get(ResourceId::CPU))
            .sum();
        assert!(held <= CPUS * 1000, "node {id} is over-committed: {held}");
        assert_eq!(world.state.free(*id).get(ResourceId::CPU), CPUS * 1000 - held);
        let mut devices: BTreeMap<u32, i64> = BTreeMap::new();
        let parts = world.state.attempts.values().flat_map(|a| a.allocation.parts.iter());
        for part in parts.filter(|p| p.node == *id && !p.devices.is_empty()) {
            // By hand: of one device as much as the amount says, of several all.
            let each = part.amounts.get(ResourceId::GPU) / part.devices.len() as i64;
            part.devices.iter().for_each(|d| *devices.entry(*d).or_default() += each);
        }
        assert!(devices.iter().all(|(d, milli)| *d < GPUS && *milli <= 1000), "GPUs of node {id}: {devices:?}");
        if node.health == NodeHealth::Up {
            let free = world.scheduler.replica().cluster.free_devices(*id);
            let left = |device: u32| 1000 - devices.get(&device).copied().unwrap_or(0);
            assert_eq!(free, (0..GPUS).map(left).collect::<Vec<_>>(), "the replica differs on node {id}");
            let replica = world.scheduler.replica().cluster.free(*id).unwrap();
            // What is promised from now on or before is kept free already.
            let begun = world.state.promises.values().filter(|p| p.start <= now && p.until > now);
            let begun = begun.flat_map(|p| p.allocation.parts.iter()).filter(|p| p.node == *id);
            let kept: i64 = begun.map(|p| p.amounts.get(ResourceId::CPU)).sum();
            let free = CPUS * 1000 - held - kept;
            assert_eq!(replica.get(ResourceId::CPU), free, "the replica differs on node {id}");
        }
    }
    for (id, entry) in &world.state.jobs {
        let running = (0..entry.elements.len() as u64)
            .filter(|i| world.state.attempts.contains_key(&JobId(id.0 + i)))
            .count() as u32;
        assert_eq!(entry.running, running);
        if entry.job.spec.array.is_some() {
            assert!(running <= 2, "array {id} passed its throttle");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn any_history_is_sound(steps in proptest::collection::vec(step(), 1..60)) {
        let mut world = World::with_gpus(NODES, CPUS, GPUS);
        let mut boots = 1;
        for step in &steps {
            take(&mut world, step, &mut boots);
            check(&world);
        }
        world.check_fold();
    }
}
