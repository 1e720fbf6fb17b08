//! Scenarios: what becomes of jobs under commands and reports.

mod support;

use ephor_core::command::{Action, NodeReport};
use ephor_core::{Command, RefusalKind};
use ephor_model::{DependencyKind, EndCause, JobId, JobState};
use support::{World, job};

#[test]
fn a_job_runs_to_its_end_and_gives_back_what_it_held() {
    let mut world = World::new(1, 4);
    let a = world.submit(job().cpus(4));
    let b = world.submit(job().cpus(1));
    assert_eq!(world.cycle(), [a.0]);
    world.begin(a);
    assert_eq!(world.job_state(a), JobState::Running);
    assert_eq!(world.cycle(), [0u64; 0]);
    world.wait(5_000);
    world.finish(a, 0);
    assert_eq!(world.job_state(a), JobState::Completed);
    assert_eq!(world.cycle(), [b.0]);
    world.finish(b, 3);
    assert_eq!(world.job_state(b), JobState::Failed);
    world.check_fold();
}

#[test]
fn dependencies_let_jobs_start_or_never() {
    let mut world = World::new(1, 8);
    let first = world.submit(job());
    let ok = world.submit(job().after(DependencyKind::AfterOk, first));
    let not_ok = world.submit(job().after(DependencyKind::AfterNotOk, first));
    let any = world.submit(job().after(DependencyKind::AfterAny, first));
    let after = world.submit(job().after(DependencyKind::After, first));
    assert_eq!(world.cycle(), [first.0]);
    // `after` counts from the start.
    assert_eq!(world.cycle(), [after.0]);
    world.finish(first, 1);
    assert_eq!(world.cycle(), [not_ok.0, any.0]);
    let (entry, _) = world.state.element(ok).unwrap();
    assert!(entry.job.never);
    world.check_fold();
}

#[test]
fn one_of_several_dependencies_is_enough_where_any_was_asked() {
    let mut world = World::new(1, 8);
    let a = world.submit(job());
    let b = world.submit(job());
    let any = world.submit(job().after(DependencyKind::AfterOk, a).after(DependencyKind::AfterOk, b).any_dependency());
    world.cycle();
    world.finish(a, 1);
    assert_eq!(world.cycle(), [0u64; 0]);
    world.finish(b, 0);
    assert_eq!(world.cycle(), [any.0]);
    world.check_fold();
}

#[test]
fn a_dependency_on_an_array_waits_for_all_its_elements() {
    let mut world = World::new(1, 8);
    let array = world.submit(job().array("0-2"));
    let then = world.submit(job().after(DependencyKind::AfterOk, array));
    assert_eq!(world.cycle().len(), 3);
    world.finish(JobId(array.0), 0);
    world.finish(JobId(array.0 + 2), 0);
    assert_eq!(world.cycle(), [0u64; 0]);
    world.finish(JobId(array.0 + 1), 0);
    assert_eq!(world.cycle(), [then.0]);
    world.check_fold();
}

#[test]
fn an_array_keeps_to_its_throttle() {
    let mut world = World::new(1, 8);
    let array = world.submit(job().array("1-5%2"));
    assert_eq!(world.cycle(), [array.0, array.0 + 1]);
    world.finish(array, 0);
    assert_eq!(world.cycle(), [array.0 + 2]);
    world.act(Action::Cancel, array).unwrap();
    assert_eq!(world.job_state(JobId(array.0 + 4)), JobState::Cancelled);
    assert_eq!(world.job_state(JobId(array.0 + 1)), JobState::Completing);
    world.check_fold();
}

#[test]
fn holds_and_begin_times_keep_a_job_back() {
    let mut world = World::new(1, 8);
    let held = world.submit(job().on_hold());
    let later = world.submit(job().begin(60_000));
    assert_eq!(world.cycle(), [0u64; 0]);
    world.act_as_user(Action::Release, held).unwrap();
    assert_eq!(world.cycle(), [held.0]);
    assert!(!world.scheduler.due(world.now));
    world.wait(59_000);
    assert!(world.scheduler.due(world.now));
    assert_eq!(world.cycle(), [later.0]);
    let operators = world.submit(job());
    world.act(Action::Hold, operators).unwrap();
    let refusal = world.act_as_user(Action::Release, operators).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Conflict);
    world.check_fold();
}

#[test]
fn a_requeued_job_runs_again_and_a_cancelled_one_does_not() {
    let mut world = World::new(1, 8);
    let a = world.submit(job());
    world.cycle();
    world.act(Action::Requeue, a).unwrap();
    assert_eq!(world.job_state(a), JobState::Completing);
    world.end(a, 0, EndCause::Cancelled);
    assert_eq!(world.job_state(a), JobState::Pending);
    assert_eq!(world.cycle(), [a.0]);
    assert_eq!(world.attempt(a).number, 2);
    world.act(Action::Requeue, a).unwrap();
    world.act(Action::Cancel, a).unwrap();
    world.end(a, 0, EndCause::Cancelled);
    assert_eq!(world.job_state(a), JobState::Cancelled);
    world.check_fold();
}

#[test]
fn a_silent_node_loses_its_attempts_and_ends_them_only_when_that_is_certain() {
    let mut world = World::new(2, 1);
    let a = world.submit(job().requeue());
    let b = world.submit(job());
    world.cycle();
    let (on_a, on_b) = (world.attempt(a), world.attempt(b));
    world.begin(a);
    world.begin(b);
    for id in [on_a, on_b] {
        let node = world.state.attempts.get(&id.job).unwrap().allocation.parts[0].node;
        world.run(Command::NodeReport(NodeReport::Silent { node, reason: "silent".into() })).unwrap();
    }
    assert!(world.state.attempts.get(&a).unwrap().lost);
    assert_eq!(world.job_state(a), JobState::Running);
    // Law 8: nothing of it is granted again, and it does not run twice.
    assert_eq!(world.cycle(), [0u64; 0]);
    // The one node comes back with its attempt, the other after a reboot.
    let node_a = world.state.attempts.get(&a).unwrap().allocation.parts[0].node;
    let name_a = world.state.node_name(node_a);
    world.register(&name_a, 1, "boot-1", &[on_a]);
    assert!(!world.state.attempts.get(&a).unwrap().lost);
    let name_b = if name_a == "n0" { "n1" } else { "n0" };
    world.register(name_b, 1, "boot-2", &[]);
    assert_eq!(world.job_state(b), JobState::NodeFail);
    // An attempt that its agent no longer holds has ended; this job asked to run again.
    world.register(&name_a, 1, "boot-1", &[]);
    assert_eq!(world.job_state(a), JobState::Pending);
    assert_eq!(world.cycle(), [a.0]);
    world.check_fold();
}

#[test]
fn an_agent_is_told_of_attempts_that_are_not_its_own_to_keep() {
    let mut world = World::new(1, 1);
    let a = world.submit(job());
    world.cycle();
    let key = world.attempt(a);
    world.finish(a, 0);
    assert_eq!(world.register("n0", 1, "boot-1", &[key]), [key]);
}

#[test]
fn late_and_repeated_reports_change_nothing() {
    let mut world = World::new(1, 1);
    let a = world.submit(job());
    world.cycle();
    let key = world.attempt(a);
    world.finish(a, 0);
    let events = world.log.len();
    world.run(Command::NodeReport(NodeReport::Began { key })).unwrap();
    let report = NodeReport::Ended {
        key,
        exit: ephor_model::Exit { code: 9, signal: 0 },
        cause: EndCause::Exited,
        message: String::new(),
        usage: ephor_model::Usage::default(),
    };
    world.run(Command::NodeReport(report)).unwrap();
    assert_eq!(world.log.len(), events);
    assert_eq!(world.job_state(a), JobState::Completed);
}

#[test]
fn refusals_name_what_is_there() {
    let mut world = World::new(1, 1);
    let refusal = world.try_submit(job().queue("nowhere")).unwrap_err();
    assert_eq!(
        (refusal.kind, refusal.text.as_str()),
        (RefusalKind::NotFound, "there is no queue 'nowhere'; there are: main")
    );
    let refusal = world.try_submit(job().after(DependencyKind::AfterOk, JobId(99))).unwrap_err();
    assert!(refusal.text.contains("job 99"), "{refusal}");
    assert_eq!(world.act(Action::Cancel, JobId(7)).unwrap_err().kind, RefusalKind::NotFound);
}
