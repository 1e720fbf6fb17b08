//! Model test: whatever commands come in whatever order, nothing is granted twice, no limit is passed, the replica
//! agrees with the state, and the log folds to the same rows (laws 3, 7).

mod bounds;
mod support;

use ephor_core::command::{Action, DeviceChange, NodeReport};
use ephor_core::cycle::{Afterwards, Cycle, Scope};
use ephor_core::{Command, DeviceFaults, NodeHealth, OnFault};
use ephor_model::{AllocationPart, AttemptKey, EndCause, GpuRequest, JobId, JobState, ResourceId, Span};
use ephor_placement::Placing;
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::{By, Conservative, World, job};

#[derive(Clone, Debug)]
enum Step {
    Submit {
        cpus: u32,
        gpu: u32,
        array: u32,
        hold: bool,
        depends: Option<u8>,
        whose: u16,
    },
    Reserve {
        node: u8,
        user: u8,
        start: u16,
        length: u16,
    },
    Bound {
        what: u8,
        most: u8,
    },
    Cycle,
    Promise,
    Evict {
        which: u8,
        grace: u16,
        again: bool,
    },
    Begin(u8),
    End {
        which: u8,
        code: i32,
    },
    Act {
        action: u8,
        job: u8,
    },
    Silent(u8),
    Return {
        node: u8,
        reboot: bool,
    },
    Drain {
        node: u8,
        on: bool,
    },
    /// What its agent says of a GPU, or what people do to it.
    Device {
        node: u8,
        device: u8,
        what: u8,
    },
    Wait(u16),
    Modify {
        job: u8,
        what: u8,
        value: u16,
    },
    Expire,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u32..4, 0u32..14, 0u32..5, any::<bool>(), proptest::option::of(any::<u8>()), any::<u16>()).prop_map(
            |(cpus, gpu, array, hold, depends, whose)| {
                Step::Submit { cpus, gpu, array, hold: hold && array == 1, depends, whose }
            }
        ),
        1 => (any::<u8>(), 0u8..4).prop_map(|(what, most)| Step::Bound { what, most }),
        1 => (any::<u8>(), 0u8..4, any::<u16>(), any::<u16>())
            .prop_map(|(node, user, start, length)| Step::Reserve { node, user, start, length }),
        4 => Just(Step::Cycle),
        4 => Just(Step::Promise),
        3 => (any::<u8>(), any::<u16>(), any::<bool>())
            .prop_map(|(which, grace, again)| Step::Evict { which, grace, again }),
        3 => any::<u8>().prop_map(Step::Begin),
        4 => (any::<u8>(), 0..2).prop_map(|(which, code)| Step::End { which, code }),
        2 => (0u8..4, any::<u8>()).prop_map(|(action, job)| Step::Act { action, job }),
        1 => any::<u8>().prop_map(Step::Silent),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(node, reboot)| Step::Return { node, reboot }),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(node, on)| Step::Drain { node, on }),
        1 => (any::<u8>(), any::<u8>(), 0u8..5).prop_map(|(node, device, what)| Step::Device { node, device, what }),
        2 => any::<u16>().prop_map(Step::Wait),
        2 => (any::<u8>(), any::<u8>(), any::<u16>()).prop_map(|(job, what, value)| Step::Modify { job, what, value }),
        1 => Just(Step::Expire),
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
        Step::Submit { cpus, gpu, array, hold, depends, whose } => {
            let gpus = match gpu {
                tenths @ 1..10 => GpuRequest::Share(tenths * 100),
                10 | 11 => GpuRequest::PerNode(gpu - 9),
                _ => GpuRequest::None,
            };
            let mut new = job().cpus(*cpus).gpus(gpus);
            new.0.hold = *hold;
            new.0.requeue = Some(*cpus == 2);
            new.0.name = format!("name{cpus}");
            if *array == 0 {
                new = new.limit(10_000).deadline(world.now.0 + 60_000);
            }
            if *array > 1 {
                new = new.array(&format!("0-{array}%2"));
            }
            let known = world.state.meta.next_job;
            if let Some(d) = depends.filter(|_| known > 1) {
                let kinds = ephor_model::DependencyKind::NAMES;
                let on = JobId(1 + u64::from(d) % (known - 1));
                new = match d % 7 {
                    6 => new.after_element(kinds[d as usize % 4].0, on, u32::from(d) % 4),
                    _ => new.after(kinds[d as usize % kinds.len()].0, on),
                };
            }
            bounds::sign(&mut new, *whose);
            // Refused where it waits for an element that is not there, or a limit binds it.
            let _ = world.try_submit(new);
        }
        Step::Bound { what, most } => bounds::change(world, *what, *most),
        Step::Reserve { node, user, start, length } => bounds::reserve(world, *node, *user, *start, *length),
        Step::Cycle => {
            for id in world.cycle() {
                bounds::check_start(world, JobId(id));
            }
        }
        Step::Promise => {
            for id in world.cycle_by(&mut Conservative::default()) {
                bounds::check_start(world, JobId(id));
            }
        }
        Step::Evict { which, grace, again } => {
            for id in world.cycle_by(&mut By(|cycle: &mut Cycle| make_room(cycle, *which, *grace, *again))) {
                bounds::check_start(world, JobId(id));
            }
        }
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
        Step::Device { node, device, what } => {
            let node = ephor_model::NodeId(u32::from(*node) % NODES);
            let device = u32::from(*device) % GPUS;
            let by = "root".to_owned();
            let command = match what {
                0 => Command::SetDevice { node, device, change: DeviceChange::Take("test".into()), by },
                1 => Command::SetDevice { node, device, change: DeviceChange::Return(vec!["bad 2".into()]), by },
                n => {
                    let jobs = [OnFault::Keep, OnFault::Requeue, OnFault::Cancel][usize::from(*n) - 2];
                    let faults = DeviceFaults { faulty: vec![(device.to_string(), vec![format!("bad {n}")])], jobs };
                    Command::NodeReport(NodeReport::Devices { node, faults })
                }
            };
            world.run(command).unwrap();
        }
        Step::Wait(ms) => world.wait(i64::from(*ms)),
        Step::Modify { job, what, value } => {
            let id = JobId(1 + u64::from(*job) % world.state.meta.next_job.max(1));
            let at = world.now.0 + i64::from(*value);
            if world.state.find(id).is_some() {
                // Refused where the job has started or ended, or is an element.
                let _ = world.modify(id, *value % 2 == 0, |spec| match what % 6 {
                    0 => spec.time_limit = Some(ephor_model::Span(i64::from(*value) + 1)),
                    1 => spec.begin = (*value % 3 > 0).then_some(ephor_model::Timestamp(at)),
                    2 => spec.deadline = (*value % 3 > 0).then_some(ephor_model::Timestamp(at)),
                    3 => spec.dependencies = Vec::new(),
                    4 => spec.request.cpus_per_task = u32::from(*value) % 4 + 1,
                    _ => {
                        let kind = ephor_model::DependencyKind::NAMES[*value as usize % 6].0;
                        spec.dependencies = vec![ephor_model::Dependency::on(kind, JobId(1))];
                    }
                });
            }
        }
        Step::Expire => drop(world.run(Command::Expire).unwrap()),
    }
}

/// Lets an attempt give way to whoever comes first, and perhaps its job claim its next start; part of it is undone.
fn make_room(cycle: &mut Cycle, which: u8, grace: u16, again: bool) {
    let attempts = cycle.rows("attempts").unwrap();
    if attempts == 0 {
        return;
    }
    let how = Placing { may_claim: true, ..Placing::default() };
    let victims = [u32::from(which) % attempts, u32::from(which / 7) % attempts];
    for (undo, victim) in [true, false].into_iter().zip(victims) {
        let savepoint = cycle.savepoint();
        let then = if which % 5 == 0 { Afterwards::Cancel } else { Afterwards::Requeue };
        let told = cycle.evict(victim, Span(i64::from(grace)), then, "for the sake of it").is_ok();
        for row in cycle.next(Scope::All, None, 50) {
            let _ = cycle.try_start(row, None, &how);
        }
        if again && told {
            let _ = cycle.re_place(victim, &how);
        }
        match undo {
            true => cycle.rollback(savepoint).unwrap(),
            false => cycle.accept(savepoint).unwrap(),
        }
    }
}

fn check(world: &World) {
    bounds::check(world);
    let now = world.scheduler.replica().cluster.now();
    for (id, promise) in &world.state.promises {
        let (_, element) = world.state.element(*id).unwrap();
        let waits = element.state == JobState::Pending && element.eligible.is_some();
        let eviction = world.state.attempts.get(id).and_then(|a| a.eviction());
        let moves = promise.claim && eviction.is_some_and(|e| world.state.would_run_again(*id, e));
        assert!(waits || moves, "job {id} does not wait");
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
        let reserved = world.state.reservations.values().any(|r| r.has(*id));
        if node.health == NodeHealth::Up && !reserved {
            let free = world.scheduler.replica().cluster.free_devices(*id);
            let out = node.out_of_service();
            let left = |device: u32| match out.contains(&device) {
                true => 0,
                false => 1000 - devices.get(&device).copied().unwrap_or(0),
            };
            assert_eq!(free, (0..GPUS).map(left).collect::<Vec<_>>(), "the replica differs on node {id}");
            let gpus: i64 = (0..GPUS).map(left).sum();
            assert_eq!(world.state.free(*id).get(ResourceId::GPU), gpus, "GPUs of node {id}, of which {out:?} are out");
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
        let pending = entry.elements.iter().filter(|e| e.state == ephor_model::JobState::Pending).count();
        assert_eq!(entry.pending as usize, pending);
        for (i, element) in entry.elements.iter().enumerate() {
            let id = JobId(id.0 + i as u64);
            let in_replica = world.scheduler.replica().pending(id).map(|p| p.eligible);
            let waits = element.state == ephor_model::JobState::Pending;
            assert_eq!(in_replica, element.eligible.filter(|_| waits), "the replica differs on job {id}");
        }
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
        bounds::set_up(&mut world);
        let mut boots = 1;
        for step in &steps {
            take(&mut world, step, &mut boots);
            check(&world);
        }
        world.check_fold();
    }
}
