//! Calls that a scheduling policy does not need are left out, and no other.

mod support;

use ephor_core::cycle::{Cause, Cycle, CycleRefusal, Outcome, Scope, StopRule};
use ephor_core::scheduler::Notes;
use ephor_model::{JobId, Span};
use ephor_placement::Placing;
use support::{By, World, job};

/// Work units of a cycle: plenty.
const WORK: u64 = 1_000_000;

/// Starts jobs in order; without room it needs no call, and none for those who come behind the first that has none.
fn cycle(world: &mut World) -> Vec<u64> {
    world.cycle_by(&mut By(|cycle: &mut Cycle| {
        let jobs = cycle.next(Scope::All, None, 100);
        let outcomes = cycle.start_in_order(&jobs, &Placing::default(), StopRule::FirstRefusal);
        let waits = |outcome: &Outcome| matches!(outcome, Outcome::Refused(CycleRefusal::NotNow(_)));
        if let Some(at) = outcomes.iter().position(waits) {
            cycle.rest_until_room(Some(jobs[at])).unwrap();
        }
    }))
}

/// Whether the call that is due is left out; what is then said of whom.
fn rests(world: &mut World) -> Option<Notes> {
    assert!(world.scheduler.due(world.now));
    let notes = world.scheduler.rests(world.now, WORK)?;
    assert!(!world.scheduler.due(world.now), "a call that was left out is due again");
    Some(notes.into_iter().collect())
}

/// A node of four cores, three of them taken by the first job, and a second job that waits for two.
fn world_with_a_waiting_job() -> (World, JobId, JobId) {
    let mut world = World::new(1, 4);
    let (runs, waits) = (world.submit(job().cpus(3)), world.submit(job().cpus(2)));
    assert_eq!(cycle(&mut world), [runs.0]);
    // Its own start is no reason for another call.
    world.begin(runs);
    (world, runs, waits)
}

#[test]
fn who_comes_behind_and_has_no_room_needs_no_call_and_is_told_why() {
    let (mut world, runs, waits) = world_with_a_waiting_job();
    let (like, wider) = (world.submit(job().cpus(2)), world.submit(job().cpus(3)));
    let notes = rests(&mut world).unwrap();
    assert_eq!(notes.keys().copied().collect::<Vec<_>>(), [like, wider]);
    assert!(notes.values().all(|note| !note.text.is_empty()));
    // The next call knows of those who came before it.
    world.finish(runs, 0);
    assert_eq!(rests(&mut world), None);
    let mut arrived = 0;
    world.cycle_by(&mut By(|cycle: &mut Cycle| arrived = cycle.next(Scope::Arrived, None, 100).len()));
    assert_eq!(arrived, 2);
    assert_eq!(cycle(&mut world), [waits.0, like.0]);
}

#[test]
fn who_has_room_needs_a_call() {
    let (mut world, ..) = world_with_a_waiting_job();
    world.submit(job().cpus(1));
    assert_eq!(rests(&mut world), None);
}

#[test]
fn who_comes_before_somebody_who_has_room_needs_a_call() {
    let (mut world, runs, waits) = world_with_a_waiting_job();
    let narrow = world.submit(job().cpus(1));
    assert_eq!(cycle(&mut world), [0; 0], "{narrow} waits for its turn");
    let urgent = world.submit(job().cpus(2));
    assert!(rests(&mut world).is_some());
    world.scheduler.replica_mut().set_priorities([(urgent, 5)]);
    world.submit(job().cpus(2));
    assert_eq!(rests(&mut world), None);
    world.finish(runs, 0);
    assert_eq!(cycle(&mut world), [urgent.0, waits.0]);
}

#[test]
fn who_comes_behind_somebody_who_waits_for_its_turn_needs_a_call_only_with_room() {
    let (mut world, ..) = world_with_a_waiting_job();
    let narrow = world.submit(job().cpus(1));
    assert_eq!(cycle(&mut world), [0; 0], "{narrow} waits for its turn");
    world.submit(job().cpus(2));
    assert!(rests(&mut world).is_some());
    world.submit(job().cpus(1));
    assert_eq!(rests(&mut world), None);
}

#[test]
fn an_end_that_makes_no_room_needs_no_call_and_one_that_does_needs_one() {
    let mut world = World::new(1, 4);
    let (wide, narrow, waits) = (job().cpus(3), job().cpus(1), job().cpus(2));
    let (wide, narrow, waits) = (world.submit(wide), world.submit(narrow), world.submit(waits));
    assert_eq!(cycle(&mut world), [wide.0, narrow.0]);
    world.begin(narrow);
    world.finish(narrow, 0);
    assert!(rests(&mut world).is_some());
    world.begin(wide);
    world.finish(wide, 0);
    assert_eq!(rests(&mut world), None);
    assert_eq!(cycle(&mut world), [waits.0]);
}

#[test]
fn a_node_or_a_setting_needs_a_call() {
    let (mut world, ..) = world_with_a_waiting_job();
    world.register("n1", 4, "boot-1", &[]);
    assert_eq!(rests(&mut world), None);
    let (mut world, ..) = world_with_a_waiting_job();
    world.scheduler.wake();
    assert_eq!(rests(&mut world), None);
}

#[test]
fn what_was_said_holds_until_the_next_call() {
    let (mut world, ..) = world_with_a_waiting_job();
    world.submit(job().cpus(2));
    assert!(rests(&mut world).is_some());
    world.cycle_by(&mut By(|_: &mut Cycle| {}));
    world.submit(job().cpus(2));
    assert_eq!(rests(&mut world), None);
}

#[test]
fn a_policy_is_called_at_the_time_that_it_asked_for_and_not_again() {
    let (mut world, ..) = world_with_a_waiting_job();
    let now = world.now;
    world.submit(job().cpus(4));
    world.cycle_by(&mut By(|cycle: &mut Cycle| {
        cycle.rest_until_room(None).unwrap();
        cycle.wake_at(now + Span::minutes(10)).unwrap();
        cycle.wake_at(now + Span::minutes(5)).unwrap();
    }));
    assert_eq!(world.scheduler.next_time(), Some(now + Span::minutes(5)));
    assert!(!world.scheduler.due(world.now));
    world.now = now + Span::minutes(5);
    assert!(world.scheduler.due(world.now));
    // Not even where it needs none before somebody has room.
    assert_eq!(world.scheduler.rests(world.now, WORK), None);
    let mut causes = Vec::new();
    world.cycle_by(&mut By(|cycle: &mut Cycle| causes = cycle.causes()));
    assert_eq!(causes, [Cause::Asked]);
    assert!(!world.scheduler.due(world.now + Span::minutes(5)));
}

#[test]
fn a_policy_that_always_asks_is_called_once_a_second() {
    let (mut world, ..) = world_with_a_waiting_job();
    let now = world.now;
    world.submit(job().cpus(4));
    world.cycle_by(&mut By(|cycle: &mut Cycle| cycle.wake_at(now).unwrap()));
    assert_eq!(world.scheduler.next_time(), Some(now + Span::seconds(1)));
}
