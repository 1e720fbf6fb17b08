//! Classes that have no room are parked, and none of them for longer than that is so.

mod support;

use ephor_core::command::Action;
use ephor_core::scheduler::FirstComeFirstServed;
use ephor_model::JobState;
use support::{World, job};

/// Work units of a cycle: plenty.
const WORK: u64 = 1_000_000;

#[test]
fn what_waits_for_room_starts_when_something_ends() {
    let mut world = World::new(1, 2);
    let (first, second) = (world.submit(job().cpus(2)), world.submit(job().cpus(2)));
    assert_eq!(world.cycle(), [first.0]);
    assert_eq!(world.cycle(), [0; 0]);
    world.begin(first);
    world.finish(first, 0);
    assert_eq!(world.cycle(), [second.0]);
}

/// A plan that never reached the sequencer, whose queue was full, had parked classes in favour of starts that did not
/// come about; nothing ever freed the nodes that they were thought to be on, so that jobs waited on an idle cluster.
#[test]
fn a_plan_that_was_lost_parks_nobody() {
    let mut world = World::new(1, 2);
    let (first, second) = (world.submit(job().cpus(2)), world.submit(job().cpus(2)));
    let plan = world.scheduler.cycle(&world.state, world.now, WORK, &mut FirstComeFirstServed).unwrap();
    assert_eq!(plan.groups.len(), 1);
    world.scheduler.wake();
    world.act(Action::Cancel, first).unwrap();
    assert_eq!(world.cycle(), [second.0]);
    assert_eq!(world.job_state(second), JobState::Configuring);
}
