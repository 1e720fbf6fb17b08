//! Plans are hostile input: each group is checked against the state as it is now, whole or not at all (laws 4, 7).

mod support;

use ephor_core::command::{Group, Start};
use ephor_core::{Command, Reply};
use ephor_model::{Allocation, AllocationPart, Amounts, GpuRequest, JobId, NodeId, ResourceId};
use smallvec::smallvec;
use std::collections::BTreeMap;
use std::sync::Arc;
use support::{World, job};

fn start(job: JobId, node: u32, millicores: i64) -> Start {
    let amounts = Amounts::new().with(ResourceId::CPU, millicores);
    let part = AllocationPart { node: NodeId(node), tasks: 1, amounts, devices: smallvec![] };
    Start { job, allocation: Arc::new(Allocation { parts: smallvec![part] }) }
}

fn commit(world: &mut World, groups: Vec<Vec<Start>>) -> Vec<bool> {
    let groups = groups.into_iter().map(|starts| Group { starts, ..Group::default() }).collect();
    match world.run(Command::Plan { groups }).unwrap() {
        Reply::Groups(taken) => taken,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_group_with_one_bad_start_is_dropped_whole() {
    let mut world = World::new(1, 2);
    let (a, b, c) = (world.submit(job()), world.submit(job()), world.submit(job()));
    // Together they ask for more than the node has.
    let taken = commit(&mut world, vec![vec![start(a, 0, 1000), start(b, 0, 1500)], vec![start(c, 0, 2000)]]);
    assert_eq!(taken, [false, true]);
    assert!(world.state.attempts.get(&a).is_none());
    world.check_fold();
}

#[test]
fn nonsense_is_dropped() {
    let mut world = World::new(1, 4);
    let a = world.submit(job());
    let held = world.submit(job().on_hold());
    let bad = [
        vec![start(JobId(999), 0, 1000)],
        vec![start(held, 0, 1000)],
        vec![start(a, 7, 1000)],
        vec![start(a, 0, -1000)],
        vec![start(a, 0, 1000), start(a, 0, 1000)],
        vec![Start { job: a, allocation: Arc::default() }],
    ];
    for group in bad {
        assert_eq!(commit(&mut world, vec![group.clone()]), [false], "{group:?}");
    }
    assert_eq!(commit(&mut world, vec![vec![start(a, 0, 1000)]]), [true]);
    // It runs: starting it again is nonsense too.
    assert_eq!(commit(&mut world, vec![vec![start(a, 0, 1000)]]), [false]);
}

#[test]
fn a_plan_made_on_an_old_view_loses_only_what_no_longer_fits() {
    let mut world = World::new(2, 1);
    let (a, b) = (world.submit(job()), world.submit(job()));
    let node = world.state.nodes.get(&NodeId(1)).unwrap().id;
    world.run(Command::DrainNode { node, reason: Some("disk".into()), by: "root".into() }).unwrap();
    assert_eq!(commit(&mut world, vec![vec![start(a, 0, 1000)], vec![start(b, 1, 1000)]]), [true, false]);
}

/// A start that takes so many thousandths of a device.
fn on_device(job: JobId, device: u32, milli: i64) -> Start {
    let mut start = start(job, 0, 1000);
    let part = &mut Arc::make_mut(&mut start.allocation).parts[0];
    part.amounts.set(ResourceId::GPU, milli);
    part.devices = smallvec![device];
    start
}

#[test]
fn a_device_is_given_away_once_in_all_its_parts() {
    let mut world = World::with_gpus(1, 8, 2);
    let jobs: Vec<JobId> = (0..6).map(|_| world.submit(job().gpus(GpuRequest::Share(400)))).collect();
    // Together they take more than all of device 0.
    let both = vec![on_device(jobs[0], 0, 600), on_device(jobs[1], 0, 500)];
    assert_eq!(commit(&mut world, vec![both]), [false]);
    assert_eq!(commit(&mut world, vec![vec![on_device(jobs[0], 0, 600)]]), [true]);
    assert_eq!(commit(&mut world, vec![vec![on_device(jobs[1], 0, 1000)]]), [false], "the whole of one in use");
    assert_eq!(commit(&mut world, vec![vec![on_device(jobs[1], 0, 401)]]), [false], "more than is left");
    assert_eq!(commit(&mut world, vec![vec![on_device(jobs[1], 0, 400)]]), [true]);
    assert_eq!(commit(&mut world, vec![vec![on_device(jobs[2], 2, 100)]]), [false], "a device that is not there");
    assert_eq!(commit(&mut world, vec![vec![on_device(jobs[2], 1, 1000)]]), [true]);
    assert_eq!(commit(&mut world, vec![vec![on_device(jobs[3], 1, 1)]]), [false], "a part of one that is held whole");
    world.begin(jobs[0]);
    world.finish(jobs[0], 0);
    assert_eq!(commit(&mut world, vec![vec![on_device(jobs[3], 0, 600)]]), [true]);
    world.check_fold();
}

#[test]
fn cycles_fill_devices_with_parts() {
    let mut world = World::with_gpus(1, 8, 2);
    let share = |milli| job().gpus(GpuRequest::Share(milli));
    let whole = world.submit(job().gpus(GpuRequest::PerNode(1)));
    let parts: Vec<JobId> = [700, 200, 100].into_iter().map(|milli| world.submit(share(milli))).collect();
    let late = world.submit(share(1));
    assert_eq!(world.cycle(), [whole, parts[0], parts[1], parts[2]].map(|id| id.0));
    assert_eq!(world.cycle(), [] as [u64; 0]);
    let held = &world.state.derived.held.get(&NodeId(0)).unwrap().devices;
    assert_eq!(held.iter().map(|(d, n)| (*d, *n)).collect::<BTreeMap<u32, i64>>(), [(0, 1000), (1, 1000)].into());
    world.begin(parts[2]);
    world.finish(parts[2], 0);
    assert_eq!(world.cycle(), [late.0]);
    world.check_fold();
}
