//! Strict order, against a fake cycle.

use ephor_sdk::NoConfig;
use ephor_sdk::scheduling::Scheduling;
use ephor_sdk::testing::FakeCycle;
use scheduling_fifo::Fifo;

fn run(cycle: FakeCycle) -> FakeCycle {
    Fifo::schedule(&cycle, &NoConfig {});
    cycle
}

#[test]
fn jobs_start_in_order_until_one_does_not_fit() {
    let cycle = run(FakeCycle::new(0, 10).pending(4, 100).pending(4, 100).pending(4, 100).pending(1, 1));
    assert_eq!(cycle.started(), [0, 1]);
    assert!(cycle.promises().is_empty() && cycle.notes().is_empty());
}

#[test]
fn a_job_that_can_never_run_is_passed_over_with_a_note() {
    let cycle = run(FakeCycle::new(0, 10).pending(11, 100).pending(4, 100));
    assert_eq!(cycle.started(), [1]);
    assert_eq!(cycle.notes(), [(0, "needs 11 cores, and there are 10".to_owned())]);
}

#[test]
fn long_queues_are_worked_through_window_by_window() {
    let many = (0..5_000).fold(FakeCycle::new(0, 4_000), |cycle, _| cycle.pending(1, 100));
    let started = run(many).started();
    assert!(started.iter().copied().eq(0..4_000));
}

#[test]
fn it_stops_where_the_work_is_used_up() {
    let cycle = run(FakeCycle::new(0, 10).pending(1, 1).pending(1, 1).pending(1, 1).with_budget(2));
    assert_eq!(cycle.started(), [0, 1]);
}

#[test]
fn an_empty_queue_is_no_work() {
    assert!(run(FakeCycle::new(0, 10)).started().is_empty());
}

#[test]
fn promises_of_another_policy_hold_up_nobody() {
    let cycle = run(FakeCycle::new(0, 10).pending(10, 100).pending(8, 100).promised(50));
    assert_eq!(cycle.started(), [0]);
    assert!(cycle.promised_at_the_end().is_empty());
}
