//! Promises and what starts around them, against a fake cycle.

use ephor_sdk::scheduling::Scheduling;
use ephor_sdk::testing::FakeCycle;
use scheduling_backfill::{Backfill, Config, Preempt, Reservations};

fn run(cycle: FakeCycle, config: Config) -> FakeCycle {
    Backfill::schedule(&cycle, &config);
    cycle
}

/// Ten cores, eight of them busy until 100, and a head of six that must wait for that.
fn waiting_head() -> FakeCycle {
    FakeCycle::new(0, 10).running(8, 100).pending(6, 50)
}

#[test]
fn the_head_is_promised_its_earliest_start() {
    assert_eq!(run(waiting_head(), Config::default()).promises(), [(0, 100)]);
}

#[test]
fn what_ends_in_time_or_leaves_enough_beside_the_promise_starts() {
    // Two cores are free now. One job ends at 100; one runs on, on a core that the head leaves.
    let cycle = run(waiting_head().pending(1, 100).pending(1, 10_000), Config::default());
    assert_eq!(cycle.started(), [1, 2]);
}

#[test]
fn what_would_delay_the_head_waits() {
    // At 100 there are ten cores; the head takes six, so four remain: five would be in its way.
    let cycle = FakeCycle::new(0, 10).running(5, 100).pending(6, 50).pending(5, 101).pending(4, 101);
    assert_eq!(run(cycle, Config::default()).started(), [2]);
}

#[test]
fn one_promise_lets_later_jobs_be_delayed_and_more_promises_do_not() {
    let queue = || FakeCycle::new(0, 10).running(8, 100).pending(6, 50).pending(4, 100).pending(2, 150);
    assert_eq!(run(queue(), Config::default()).started(), [2]);
    let two = Config { reservations: Reservations::PerCycle(2), ..Config::default() };
    let cycle = run(queue(), two);
    assert_eq!(cycle.promises(), [(0, 100), (1, 100)]);
    assert!(cycle.started().is_empty());
    let three = Config { reservations: Reservations::PerCycle(3), ..Config::default() };
    assert_eq!(run(queue(), three).promises(), [(0, 100), (1, 100), (2, 150)]);
}

#[test]
fn a_job_that_can_never_run_takes_no_promise() {
    let cycle = FakeCycle::new(0, 10).running(8, 100).pending(11, 5).pending(6, 50).pending(12, 5).pending(2, 100);
    let cycle = run(cycle, Config::default());
    assert_eq!((cycle.promises(), cycle.started()), (vec![(1, 100)], vec![3]));
    let noted: Vec<u32> = cycle.notes().into_iter().map(|(job, _)| job).collect();
    assert_eq!(noted, [0, 2]);
}

#[test]
fn max_tested_bounds_the_look_behind_the_promise() {
    let cycle = || waiting_head().pending(3, 1).pending(3, 1).pending(1, 1);
    let config = |max_tested| Config { max_tested, window: 2, ..Config::default() };
    assert!(run(cycle(), config(2)).started().is_empty());
    assert_eq!(run(cycle(), config(3)).started(), [3]);
    assert_eq!(run(cycle(), config(0)).started(), [3]);
}

#[test]
fn without_work_for_a_promise_nothing_overtakes() {
    // One unit for the head's try, none for its promise.
    assert!(run(waiting_head().pending(1, 1).with_budget(1), Config::default()).started().is_empty());
}

#[test]
fn without_room_it_needs_no_call_once_all_promises_are_given() {
    let cycle = run(waiting_head().pending(6, 50), Config::default());
    assert_eq!((cycle.promises(), cycle.rests_until_room()), (vec![(0, 100)], Some(Some(0))));
    let two = Config { reservations: Reservations::PerCycle(2), ..Config::default() };
    assert_eq!(run(waiting_head().pending(6, 50).pending(6, 50), two).rests_until_room(), Some(Some(1)));
    // Who comes would get the promise that is left.
    assert_eq!(run(waiting_head(), two).rests_until_room(), None);
    assert_eq!(run(FakeCycle::new(0, 10).pending(6, 50), Config::default()).rests_until_room(), None);
    let all = Config { reservations: Reservations::All, ..Config::default() };
    assert_eq!(run(waiting_head(), all).rests_until_room(), None, "every job is promised a start when it comes");
    assert_eq!(run(waiting_head().with_budget(3), Config::default()).rests_until_room(), None);
    let preempting = Config { preempt: Preempt::Queue, ..Config::default() };
    assert_eq!(run(waiting_head(), preempting).rests_until_room(), None, "who comes may make others give way");
}
