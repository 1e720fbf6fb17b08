//! Promises: given and kept, checked as hostile input, ended with the wait of their job, and broken only aloud.

mod support;

use ephor_core::command::{Action, Group, Kept, NodeReport, Objects, Start};
use ephor_core::cycle::{Cause, Cycle, Keep, Outcome, Scope};
use ephor_core::{Command, Event, LiftCause, Reply};
use ephor_model::{Allocation, AllocationPart, Amounts, EndCause, JobId, NodeId, QueueState, ResourceId, Timestamp};
use ephor_placement::Placing;
use smallvec::smallvec;
use std::sync::Arc;
use support::{By, Conservative, World, job};

const HOUR: i64 = 3_600_000;
/// When the worlds begin.
const T0: i64 = 1_000;

fn on(node: u32, millicores: i64) -> Arc<Allocation> {
    let amounts = Amounts::new().with(ResourceId::CPU, millicores);
    Arc::new(Allocation {
        parts: smallvec![AllocationPart { node: NodeId(node), tasks: 1, amounts, devices: smallvec![] }],
    })
}

fn keep(job: JobId, start: i64, node: u32, millicores: i64) -> Kept {
    Kept { job, start: Timestamp(start), allocation: on(node, millicores), claim: false }
}

fn start(job: JobId, node: u32, millicores: i64) -> Start {
    Start { job, allocation: on(node, millicores) }
}

fn commit(world: &mut World, groups: Vec<Group>) -> Vec<bool> {
    match world.run(Command::Plan { groups }).unwrap() {
        Reply::Groups(taken) => taken,
        other => panic!("{other:?}"),
    }
}

fn promise(kept: Kept) -> Group {
    Group { promises: vec![kept], ..Group::default() }
}

fn lifts(world: &World) -> Vec<LiftCause> {
    let of = |event: &Event| match event {
        Event::PromiseLifted { why, .. } => Some(*why),
        _ => None,
    };
    world.log.iter().filter_map(|s| of(&s.event)).collect()
}

fn conservative(world: &mut World) -> Vec<u64> {
    world.cycle_by(&mut Conservative::default())
}

/// One node of four cores: `a` runs on three, `b` (four) and `c` (two) wait.
fn busy() -> (World, JobId, JobId, JobId) {
    let mut world = World::new(1, 4);
    let (a, b, c) = (world.submit(job().cpus(3)), world.submit(job().cpus(4)), world.submit(job().cpus(2)));
    assert_eq!(conservative(&mut world), [a.0]);
    (world, a, b, c)
}

#[test]
fn each_job_is_promised_a_start_and_gets_it_at_that_time() {
    let (mut world, a, b, c) = busy();
    assert_eq!((world.promised(b), world.promised(c)), (Some(T0 + HOUR), Some(T0 + 2 * HOUR)));
    assert!(!world.scheduler.due(world.now));
    assert_eq!(world.scheduler.next_time(), Some(Timestamp(T0 + HOUR)));
    world.wait(HOUR);
    world.end(a, 0, EndCause::TimeLimit);
    assert!(world.scheduler.due(world.now));
    assert_eq!(conservative(&mut world), [b.0]);
    assert_eq!((world.promised(b), world.promised(c)), (None, Some(T0 + 2 * HOUR)));
    world.check_fold();
}

#[test]
fn an_early_end_moves_promises_forward_and_says_so_to_the_policy() {
    let (mut world, a, b, c) = busy();
    world.wait(HOUR / 2);
    world.finish(a, 0);
    let mut policy = Conservative::default();
    assert_eq!(world.cycle_by(&mut policy), [b.0]);
    assert_eq!(policy.causes, [Cause::ReleasedEarly]);
    assert_eq!(world.promised(c), Some(T0 + HOUR + HOUR / 2));
    world.wait(HOUR);
    world.end(b, 0, EndCause::TimeLimit);
    world.cycle_by(&mut policy);
    assert_eq!(policy.causes, [Cause::Released]);
}

#[test]
fn a_promise_outlives_a_restart_and_holds_up_what_would_break_it() {
    let (mut world, _, b, c) = busy();
    world.restart();
    assert_eq!((world.promised(b), world.promised(c)), (Some(T0 + HOUR), Some(T0 + 2 * HOUR)));
    // One core is free for an hour; longer would be in the way of `b`.
    let (long, short) = (world.submit(job().cpus(1)), world.submit(job().cpus(1)));
    world.wait(1);
    let mut refused = Vec::new();
    world.cycle_by(&mut By(|cycle: &mut Cycle| {
        for row in cycle.next(Scope::Arrived, None, 10) {
            refused.push(cycle.try_start(row, None, &Placing::default()).is_err());
        }
    }));
    assert!(refused.iter().filter(|refused| **refused).count() >= 2, "{refused:?}");
    assert!(world.state.attempts.get(&long).is_none() && world.state.attempts.get(&short).is_none());
    // A hostile plan that says so all the same is dropped.
    assert_eq!(commit(&mut world, vec![Group { starts: vec![start(long, 0, 1000)], ..Group::default() }]), [false]);
    world.check_fold();
}

#[test]
fn promises_that_overlap_are_refused_with_their_group() {
    let (mut world, a, b, c) = busy();
    let d = world.submit(job().cpus(2));
    let at = T0 + 2 * HOUR;
    // Two cores are left beside `c`; nothing is left beside `b`, and `a` runs until T0 + HOUR.
    assert_eq!(commit(&mut world, vec![promise(keep(d, at, 0, 2001))]), [false]);
    assert_eq!(commit(&mut world, vec![promise(keep(d, at - 1, 0, 1000))]), [false]);
    assert_eq!(commit(&mut world, vec![promise(keep(d, T0, 0, 2000))]), [false]);
    assert_eq!(commit(&mut world, vec![promise(keep(d, at, 0, 2000)), promise(keep(c, at, 0, 2500))]), [true, false]);
    // Nonsense.
    assert_eq!(commit(&mut world, vec![promise(keep(a, at, 0, 1))]), [false], "it runs");
    assert_eq!(commit(&mut world, vec![promise(keep(JobId(99), at, 0, 1))]), [false]);
    assert_eq!(commit(&mut world, vec![promise(keep(d, at, 7, 1000))]), [false]);
    assert_eq!(commit(&mut world, vec![promise(keep(d, at, 0, -1000))]), [false]);
    let twice = Group { promises: vec![keep(d, at, 0, 1000), keep(d, at, 0, 1000)], ..Group::default() };
    assert_eq!(commit(&mut world, vec![twice]), [false]);
    assert_eq!(world.promised(b), Some(T0 + HOUR));
    world.check_fold();
}

#[test]
fn a_group_of_lifts_promises_and_starts_stands_or_falls_together() {
    let (mut world, _, b, c) = busy();
    let d = world.submit(job().cpus(1));
    let group = |promised: i64| Group {
        starts: vec![start(d, 0, 1000)],
        promises: vec![keep(b, T0 + HOUR, 0, promised)],
        lifts: vec![(c, LiftCause::Policy)],
        ..Group::default()
    };
    // `d` runs an hour from now on, so that all four cores are promised to `b` just behind it.
    world.wait(10);
    assert_eq!(commit(&mut world, vec![group(4000)]), [false]);
    assert!(world.promised(c).is_some() && world.state.attempts.get(&d).is_none());
    let mut later = group(4000);
    later.promises = vec![keep(b, T0 + HOUR + 10, 0, 4000)];
    assert_eq!(commit(&mut world, vec![later]), [true]);
    assert_eq!((world.promised(b), world.promised(c)), (Some(T0 + HOUR + 10), None));
    assert_eq!(lifts(&world), [LiftCause::Policy]);
    world.check_fold();
}

#[test]
fn two_jobs_may_change_places_within_one_group_only() {
    let (mut world, _, b, c) = busy();
    let swap = || vec![keep(b, T0 + 2 * HOUR, 0, 4000), keep(c, T0 + HOUR, 0, 2000)];
    let apart = swap().into_iter().map(promise).collect();
    assert_eq!(commit(&mut world, apart), [false, false]);
    assert_eq!(commit(&mut world, vec![Group { promises: swap(), ..Group::default() }]), [true]);
    assert_eq!((world.promised(b), world.promised(c)), (Some(T0 + 2 * HOUR), Some(T0 + HOUR)));
}

#[test]
fn a_promise_ends_with_the_wait_of_its_job() {
    let (mut world, _, b, c) = busy();
    world.act(Action::Hold, b).unwrap();
    assert_eq!(world.promised(b), None);
    let mut policy = Conservative::default();
    world.cycle_by(&mut policy);
    assert!(policy.causes.contains(&Cause::ReleasedEarly), "{:?}", policy.causes);
    assert_eq!(world.promised(c), Some(T0 + HOUR), "it moved up");
    world.act(Action::Cancel, c).unwrap();
    assert_eq!(world.promised(c), None);
    world.act(Action::Release, b).unwrap();
    conservative(&mut world);
    assert_eq!(world.promised(b), Some(T0 + HOUR));
    assert!(lifts(&world).is_empty());
    world.check_fold();
}

#[test]
fn nodes_that_go_or_shrink_break_promises_aloud_and_the_policy_promises_anew() {
    let mut world = World::new(2, 4);
    let (a, b, c) = (world.submit(job().cpus(4)), world.submit(job().cpus(4)), world.submit(job().cpus(3)));
    assert_eq!(conservative(&mut world), [a.0, b.0]);
    let first = world.state.promises.get(&c).unwrap().allocation.parts[0].node;
    let other = NodeId(1 - first.0);
    world.run(Command::DrainNode { node: first, reason: Some("disk".into()), by: "root".into() }).unwrap();
    assert_eq!((world.promised(c), lifts(&world)), (None, vec![LiftCause::Node(first)]));
    let mut policy = Conservative::default();
    world.cycle_by(&mut policy);
    assert_eq!(policy.causes, [Cause::Nodes]);
    assert_eq!(world.state.promises.get(&c).unwrap().allocation.parts[0].node, other);
    // Silence breaks it too.
    world.run(Command::NodeReport(NodeReport::Silent { node: other, reason: "silent".into() })).unwrap();
    assert_eq!(world.promised(c), None);
    conservative(&mut world);
    assert_eq!(world.promised(c), None, "there is no node to promise");
    let key = world.attempt(if first.0 == 0 { b } else { a });
    world.register(&format!("n{}", other.0), 4, "boot-1", &[key]);
    conservative(&mut world);
    assert!(world.promised(c).is_some());
    // A node that comes back with less no longer has room for it.
    world.register(&format!("n{}", other.0), 2, "boot-1", &[key]);
    assert_eq!(world.promised(c), None);
    conservative(&mut world);
    assert_eq!(world.promised(c), None);
    world.check_fold();
}

#[test]
fn one_that_comes_late_starts_and_whoever_is_promised_its_place_waits_for_its_end() {
    let (mut world, a, b, c) = busy();
    world.wait(HOUR + 5);
    world.end(a, 0, EndCause::TimeLimit);
    assert_eq!(conservative(&mut world), [b.0], "five milliseconds late, into the promise of the next");
    assert_eq!(world.promised(c), Some(T0 + 2 * HOUR));
    // Its time comes while `b` is about to end: it waits, without a cycle every millisecond, and then starts.
    world.wait(HOUR - 5);
    assert!(world.scheduler.due(world.now));
    assert!(conservative(&mut world).is_empty());
    assert!(!world.scheduler.due(world.now + ephor_model::Span(1)));
    world.wait(7);
    world.end(b, 0, EndCause::TimeLimit);
    assert_eq!(conservative(&mut world), [c.0]);
    world.check_fold();
}

#[test]
fn a_promise_that_nobody_keeps_is_lifted_in_the_end() {
    let (mut world, a, b, c) = busy();
    let mut idle = By(|_: &mut Cycle| {});
    world.finish(a, 0);
    world.cycle_by(&mut idle);
    world.wait(HOUR);
    assert!(world.scheduler.due(world.now));
    world.cycle_by(&mut idle);
    assert_eq!(world.scheduler.next_time(), Some(Timestamp(T0 + 2 * HOUR)));
    world.wait(HOUR);
    world.cycle_by(&mut idle);
    assert_eq!((world.promised(b), lifts(&world)), (None, vec![LiftCause::Expired]));
    assert!(world.promised(c).is_some());
    world.check_fold();
}

#[test]
fn a_queue_that_starts_no_jobs_keeps_no_promises() {
    let (mut world, _, b, c) = busy();
    let (_, queue) = world.state.queue_by_name("main").unwrap();
    let mut queue = (**queue).clone();
    queue.state = QueueState::Stopped;
    let objects = Objects { queues: vec![(queue, None)], ..Objects::default() };
    world.run(Command::Apply(objects)).unwrap();
    conservative(&mut world);
    assert_eq!((world.promised(b), world.promised(c)), (None, None));
    assert_eq!(lifts(&world), [LiftCause::Expired; 2]);
    world.check_fold();
}

#[test]
fn strict_order_lifts_what_it_finds() {
    let (mut world, a, b, _) = busy();
    let urgent = world.submit(job().cpus(4));
    world.scheduler.observe(&[], &world.state);
    world.finish(a, 0);
    assert_eq!(world.cycle(), [b.0]);
    assert!(world.state.promises.is_empty());
    world.finish(b, 0);
    world.cycle();
    assert!(world.state.attempts.get(&urgent).is_none(), "two cores of four are taken by the one before it");
}

#[test]
fn savepoints_take_promises_back_exactly_and_make_one_group_of_them() {
    let (mut world, _, b, c) = busy();
    let before = format!("{:?}", world.scheduler.replica().cluster);
    let mut groups = 0;
    let mut seen = Vec::new();
    world.cycle_by(&mut By(|cycle: &mut Cycle| {
        let save = cycle.savepoint();
        let column = |cycle: &mut Cycle, name| cycle.column("reservations", name, None).unwrap();
        assert_eq!(column(cycle, "durable"), [1, 1]);
        let jobs = column(cycle, "job");
        cycle.lift(0).unwrap();
        assert!(cycle.lift(0).is_err());
        assert_eq!(column(cycle, "start")[0], -1);
        let row = cycle.next(Scope::All, None, 1)[0];
        assert_eq!(i64::from(row), jobs[0]);
        let slot = cycle.earliest_start(row, None, &Placing::default(), Timestamp(T0 + 5 * HOUR)).unwrap();
        assert_eq!(cycle.reserve(&slot, Keep::Durable).unwrap(), 0);
        seen = column(cycle, "start");
        cycle.rollback(save).unwrap();
        assert_eq!(column(cycle, "start"), [T0 + HOUR, T0 + 2 * HOUR]);
        assert_eq!(cycle.column("jobs", "promised", Some(&[row])).unwrap(), [T0 + HOUR]);
        // The first goes to the end, the second takes its place.
        let save = cycle.savepoint();
        cycle.lift(0).unwrap();
        let rows = cycle.next(Scope::All, None, 2);
        let moved = cycle.start_or_reserve(&rows[1..], &Placing::default(), Keep::Durable, true);
        assert_eq!(moved, [Outcome::Reserved(Timestamp(T0 + HOUR))]);
        cycle.start_or_reserve(&rows[..1], &Placing::default(), Keep::Durable, true);
        cycle.accept(save).unwrap();
        groups += 1;
    }));
    assert_eq!(seen, [T0 + 5 * HOUR, T0 + 2 * HOUR]);
    assert_eq!((world.promised(c), world.promised(b)), (Some(T0 + HOUR), Some(T0 + 2 * HOUR)));
    // A cycle that does nothing leaves the cluster as it was.
    let (same, _, _, _) = busy();
    assert_eq!(format!("{:?}", same.scheduler.replica().cluster), before);
}

#[test]
fn no_more_elements_of_an_array_are_promised_than_may_run() {
    let mut world = World::new(1, 4);
    let a = world.submit(job().cpus(4));
    assert_eq!(conservative(&mut world), [a.0]);
    let array = world.submit(job().array("0-4%2"));
    conservative(&mut world);
    assert_eq!(world.state.promises.len(), 2);
    world.finish(a, 0);
    assert_eq!(conservative(&mut world), [array.0, array.0 + 1]);
    assert!(world.state.promises.is_empty());
    world.finish(array, 0);
    assert_eq!(conservative(&mut world), [array.0 + 2]);
    world.check_fold();
}
