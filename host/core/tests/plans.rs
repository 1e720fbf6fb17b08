//! Plans are hostile input: each group is checked against the state as it is now, whole or not at all (laws 4, 7).

mod support;

use ephor_core::command::{Group, Start};
use ephor_core::{Command, Reply};
use ephor_model::{Allocation, AllocationPart, Amounts, JobId, NodeId, ResourceId};
use smallvec::smallvec;
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
