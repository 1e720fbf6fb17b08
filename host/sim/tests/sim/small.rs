//! Small logs with schedules worked out by hand.

use crate::common::native::{Easy, EasyByWindow, Idle};
use crate::common::{run, seconds, workload};
use ephor_core::Event;
use ephor_core::scheduler::FirstComeFirstServed;
use ephor_model::{JobState, Timestamp};
use ephor_sim::policies::Policies;
use ephor_sim::report::{Heading, Report};
use ephor_sim::workload::Estimates;
use std::sync::Arc;

/// Four processors. Job 2 cannot start before job 1 ends at 10; job 3 fits beside job 1 and ends by then; job 4 would
/// delay job 2; job 5 fits only when job 3 is gone.
const LOG: [(i64, i64, u32, i64); 5] = [(0, 10, 3, 10), (1, 5, 4, 5), (2, 4, 1, 8), (3, 20, 1, 20), (4, 2, 1, 2)];

#[test]
fn strict_order() {
    let workload = workload(&LOG, 4, Estimates::Max);
    let (outcome, _) = run(&workload, 4, &mut Policies::native(FirstComeFirstServed));
    assert_eq!(seconds(&outcome), [Some(0), Some(10), Some(15), Some(15), Some(15)]);
}

#[test]
fn backfill_overtakes_without_delay() {
    let workload = workload(&LOG, 4, Estimates::Max);
    for (outcome, _) in
        [run(&workload, 4, &mut Policies::native(Easy)), run(&workload, 4, &mut Policies::native(EasyByWindow))]
    {
        // Job 3 runs from 2 to 6, job 5 from 6 to 8, job 2 from 10 to 15 as promised, job 4 after it.
        assert_eq!(seconds(&outcome), [Some(0), Some(10), Some(2), Some(15), Some(6)]);
    }
}

#[test]
fn a_job_may_use_what_the_promise_leaves_over() {
    // Job 2 needs three of four from 10 on: one processor is left over, for however long.
    let jobs = [(0, 10, 3, 10), (1, 5, 3, 5), (2, 50, 1, 50)];
    let (outcome, _) = run(&workload(&jobs, 4, Estimates::Max), 4, &mut Policies::native(Easy));
    assert_eq!(seconds(&outcome), [Some(0), Some(10), Some(2)]);
}

#[test]
fn a_job_past_its_deadline_ends_unstarted_when_it_can_no_longer_end_in_time() {
    let jobs = [(0, 10, 4, 10), (1, 5, 4, 5), (2, 5, 4, 5)];
    let mut workload = workload(&jobs, 4, Estimates::Max);
    Arc::make_mut(&mut workload.jobs[1].spec).deadline = Some(Timestamp(14_000));
    let (outcome, recorder) = run(&workload, 4, &mut Policies::native(FirstComeFirstServed));
    assert_eq!(seconds(&outcome), [Some(0), None, Some(10)]);
    let passed = recorder.log.iter().find(|s| matches!(s.event, Event::DeadlinePassed { .. })).unwrap();
    assert_eq!(passed.at, Timestamp(9_001));
}

#[test]
fn completions_come_before_arrivals_and_one_pass_follows() {
    // Both jobs at 10 are seen together with the processors that came free then; the order of the log decides.
    let jobs = [(0, 10, 2, 10), (10, 5, 2, 5), (10, 5, 2, 5)];
    let (outcome, recorder) = run(&workload(&jobs, 2, Estimates::Max), 2, &mut Policies::native(FirstComeFirstServed));
    assert_eq!(seconds(&outcome), [Some(0), Some(10), Some(15)]);
    let at_ten: Vec<_> = recorder.log.iter().filter(|s| s.at.0 == 10_000).map(|s| &s.event).collect();
    assert!(matches!(
        at_ten.as_slice(),
        [
            Event::Ended { .. },
            Event::Submitted { .. },
            Event::Submitted { .. },
            Event::Started { .. },
            Event::Began { .. }
        ]
    ));
}

#[test]
fn an_early_end_is_used_at_once() {
    // Job 1 said 100 and took 10: job 2 starts at 10, not at the promised 100.
    let jobs = [(0, 10, 2, 100), (1, 5, 2, 5)];
    let (outcome, _) = run(&workload(&jobs, 2, Estimates::Max), 2, &mut Policies::native(Easy));
    assert_eq!(seconds(&outcome), [Some(0), Some(10)]);
}

#[test]
fn kill_ends_a_job_at_its_estimate() {
    let jobs = [(0, 50, 2, 20), (1, 5, 2, 5)];
    let workload = workload(&jobs, 2, Estimates::Kill);
    let (outcome, recorder) = run(&workload, 2, &mut Policies::native(FirstComeFirstServed));
    assert_eq!(seconds(&outcome), [Some(0), Some(20)]);
    let ends = recorder.log.iter().filter_map(|s| match &s.event {
        Event::Ended { state, .. } => Some(*state),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [JobState::Timeout, JobState::Completed]);
}

#[test]
fn what_never_runs_is_counted_and_holds_up_nobody() {
    let jobs = [(0, 10, 9, 10), (1, 10, 2, 10), (2, 0, 1, 5)];
    let workload = workload(&jobs, 4, Estimates::Max);
    let (outcome, _) = run(&workload, 4, &mut Policies::native(FirstComeFirstServed));
    let report = Report::of(&workload, &outcome, Heading { processors: 4, ..Heading::default() });
    assert_eq!((report.jobs, report.never_runnable, report.dropped, report.never_started), (1, 1, 1, 0));
    assert_eq!((report.total_wait_s, report.utilisation), (0, 0.5));
}

#[test]
fn a_policy_that_starts_nothing_comes_to_an_end() {
    let workload = workload(&LOG, 4, Estimates::Max);
    let (outcome, _) = run(&workload, 4, &mut Policies::native(Idle));
    let report = Report::of(&workload, &outcome, Heading { processors: 4, ..Heading::default() });
    assert_eq!((report.jobs, report.never_started), (0, 5));
    assert_eq!(report.cycles, 5);
}

#[test]
fn same_inputs_same_bits() {
    let workload = workload(&LOG, 4, Estimates::Kill);
    let (_, first) = run(&workload, 4, &mut Policies::native(Easy));
    let (_, second) = run(&workload, 4, &mut Policies::native(Easy));
    assert_eq!(first.log, second.log);
}
