//! Every job is promised a start that lasts, against a fake cycle.

use ephor_sdk::scheduling::{Cause, Scheduling};
use ephor_sdk::testing::FakeCycle;
use scheduling_backfill::{Backfill, Config, Reservations};

fn run(cycle: FakeCycle) -> FakeCycle {
    run_with(cycle, Config::default())
}

fn run_with(cycle: FakeCycle, config: Config) -> FakeCycle {
    Backfill::schedule(&cycle, &Config { reservations: Reservations::All, ..config });
    cycle
}

/// Ten cores, eight of them busy until 100.
fn busy() -> FakeCycle {
    FakeCycle::new(0, 10).running(8, 100)
}

#[test]
fn a_job_starts_or_is_promised_its_earliest_start_when_it_comes() {
    let cycle = run(busy().pending(6, 50).pending(2, 100).pending(2, 100));
    assert_eq!(cycle.started(), [1]);
    assert_eq!(cycle.promised_at_the_end(), [(0, 100), (2, 100)]);
}

#[test]
fn a_job_starts_when_its_time_has_come() {
    let at_100 = FakeCycle::new(100, 10).pending(6, 50).promised(100).pending(4, 10).promised(150);
    assert_eq!(run(at_100).started(), [0], "the other is not looked at");
}

#[test]
fn an_early_end_pulls_promises_forward_in_order_and_an_expected_one_does_not() {
    let queue = || FakeCycle::new(50, 10).pending(6, 50).promised(100).pending(6, 50).promised(150);
    let early = run(queue().because(&[Cause::ReleasedEarly]));
    assert_eq!((early.started(), early.promised_at_the_end()), (vec![0], vec![(1, 100)]));
    let expected = run(queue().because(&[Cause::Released]));
    assert_eq!((expected.started(), expected.promised_at_the_end()), (vec![], vec![(0, 100), (1, 150)]));
}

#[test]
fn what_comes_later_delays_nobody() {
    // Six cores at 100 are promised to the first, so that the second, of four, fits beside it and the third does not.
    let cycle = busy().pending(6, 50).promised(100).pending(2, 300).pending(4, 300).pending(5, 300);
    let cycle = run(cycle.because(&[Cause::Arrived(1)]));
    assert_eq!(cycle.started(), [1]);
    assert_eq!(cycle.promised_at_the_end(), [(0, 100), (2, 150), (3, 300)]);
}

#[test]
fn a_job_that_was_refused_before_gets_its_try_when_something_ends() {
    let cycle = run(FakeCycle::new(100, 10).pending(6, 50).because(&[Cause::Released]));
    assert_eq!(cycle.started(), [0]);
}

#[test]
fn without_work_nothing_overtakes() {
    assert!(run(busy().pending(6, 50).pending(2, 10).with_budget(0)).started().is_empty());
}

#[test]
fn only_so_many_jobs_of_a_user_or_queue_are_looked_at() {
    let queue = || (0..4).fold(busy(), |cycle, _| cycle.pending(6, 50)).with_column("jobs", "user", &[1, 1, 1, 2]);
    let per_user = Config { max_jobs_per_user: 2, ..Config::default() };
    assert_eq!(run_with(queue(), per_user).promised_at_the_end(), [(0, 100), (1, 150), (3, 200)]);
    let per_queue = Config { max_jobs_per_queue: 1, ..Config::default() };
    let cycle = run_with(queue().with_column("jobs", "queue", &[5, 6, 5, 6]), per_queue);
    assert_eq!(cycle.promised_at_the_end(), [(0, 100), (1, 150)]);
    let easy = Config { max_jobs_per_user: 1, ..Config::default() };
    let cycle = busy().pending(6, 50).pending(1, 10).pending(1, 10).with_column("jobs", "user", &[1, 1, 2]);
    Backfill::schedule(&cycle, &easy);
    assert_eq!(cycle.started(), [2]);
}

#[test]
fn a_due_promise_is_kept_beyond_the_bound() {
    let one = Config { max_jobs_per_user: 1, ..Config::default() };
    let cycle =
        FakeCycle::new(100, 10).pending(9, 50).pending(6, 50).promised(100).with_column("jobs", "user", &[1, 1]);
    assert_eq!(run_with(cycle, one).started(), [1]);
}

#[test]
fn easy_lifts_the_promises_that_it_finds() {
    // Two jobs that nobody starts hold everything; the first in order may not.
    let cycle = FakeCycle::new(0, 10).pending(10, 50).pending(8, 50).promised(20).pending(8, 50).promised(70);
    let cycle = cycle.because(&[Cause::Settings]);
    Backfill::schedule(&cycle, &Config::default());
    assert_eq!(cycle.started(), [0]);
    assert!(cycle.promised_at_the_end().is_empty());
}
