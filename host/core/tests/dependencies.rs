//! What jobs wait for: elements, counterparts, being alone under a name, and deadlines.

mod support;

use ephor_core::command::Action;
use ephor_core::{Command, RefusalKind};
use ephor_model::{DependencyKind, JobId, JobState, Timestamp};
use support::{World, job};

#[test]
fn one_element_of_an_array_is_enough() {
    let mut world = World::new(2, 4);
    let array = world.submit(job().array("0,2,4"));
    let on_first = world.submit(job().after_element(DependencyKind::AfterOk, array, 0));
    let on_last = world.submit(job().after_element(DependencyKind::AfterOk, array, 4));
    let on_all = world.submit(job().after(DependencyKind::AfterOk, array));
    let refusal = world.try_submit(job().after_element(DependencyKind::AfterOk, array, 3)).unwrap_err();
    assert!(refusal.text.contains("no such element"), "{}", refusal.text);
    assert_eq!(world.cycle(), [1, 2, 3]);
    world.finish(JobId(1), 0);
    assert!(world.eligible(on_first).is_some());
    assert!(world.eligible(on_last).is_none());
    world.finish(JobId(3), 1);
    assert!(world.state.jobs.get(&on_last).unwrap().job.never);
    assert!(world.state.jobs.get(&on_all).unwrap().job.never);
    world.check_fold();
}

#[test]
fn elements_wait_for_their_counterparts() {
    let mut world = World::new(4, 4);
    let first = world.submit(job().array("0-3"));
    let second = world.submit(job().array("1-3").after(DependencyKind::AfterCorr, first));
    assert_eq!(world.cycle(), [1, 2, 3, 4]);
    world.finish(JobId(first.0 + 2), 0);
    let element = |index: u64| JobId(second.0 + index - 1);
    assert!(world.eligible(element(2)).is_some() && world.eligible(element(1)).is_none());
    assert_eq!(world.cycle(), [element(2).0]);
    world.finish(JobId(first.0 + 3), 7);
    assert!(world.state.element(element(3)).unwrap().1.never);
    world.finish(JobId(first.0), 0);
    world.finish(JobId(first.0 + 1), 0);
    assert!(world.eligible(element(1)).is_some() && world.eligible(element(3)).is_none());
    assert!(world.state.jobs.get(&second).unwrap().job.waiting.is_empty());
    // A later array finds its counterparts ended.
    let third = world.submit(job().array("2,3").after(DependencyKind::AfterCorr, first));
    assert!(world.eligible(third).is_some() && world.eligible(JobId(third.0 + 1)).is_none());
    let refusal = world.try_submit(job().array("3-4").after(DependencyKind::AfterCorr, first)).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Invalid);
    assert!(refusal.text.contains("no element 4"), "{}", refusal.text);
    world.check_fold();
}

#[test]
fn without_elements_on_both_sides_the_whole_corresponds_to_the_whole() {
    let mut world = World::new(1, 4);
    let single = world.submit(job());
    let array = world.submit(job().array("0-1").after(DependencyKind::AfterCorr, single));
    world.cycle();
    assert!(world.eligible(array).is_none());
    world.finish(single, 0);
    assert!(world.eligible(array).is_some());
    world.check_fold();
}

#[test]
fn a_singleton_waits_until_it_is_alone_under_its_name() {
    let mut world = World::new(4, 4);
    let other = world.submit(job().named("other"));
    let first = world.submit(job().named("build"));
    let second = world.submit(job().named("build").alone());
    let third = world.submit(job().named("build").alone());
    let fourth = world.submit(job().named("build"));
    assert_eq!(world.cycle(), [other.0, first.0, fourth.0]);
    world.act(Action::Cancel, third).unwrap();
    world.finish(first, 0);
    // Jobs that came later do not count.
    assert_eq!(world.cycle(), [second.0]);
    let fifth = world.submit(job().named("build").alone());
    world.finish(second, 1);
    assert_eq!(world.cycle(), [] as [u64; 0]);
    world.finish(fourth, 0);
    assert_eq!(world.cycle(), [fifth.0]);
    assert!(world.state.derived.names.is_empty());
    world.check_fold();
}

#[test]
fn a_singleton_of_an_unused_name_waits_for_nobody() {
    let mut world = World::new(1, 4);
    let only = world.submit(job().named("solo").alone());
    assert_eq!(world.cycle(), [only.0]);
    world.check_fold();
}

#[test]
fn a_job_that_misses_its_deadline_ends_unstarted() {
    let mut world = World::new(1, 1);
    let blocker = world.submit(job());
    world.cycle();
    let late = world.submit(job().limit(10_000).deadline(60_000));
    let held = world.submit(job().limit(5_000).deadline(60_000).on_hold());
    let after = world.submit(job().after(DependencyKind::AfterNotOk, late));
    assert_eq!(world.state.next_deadline(), Some(Timestamp(50_001)));
    world.now = Timestamp(50_000);
    world.run(Command::Expire).unwrap();
    assert_eq!(world.job_state(late), JobState::Pending);
    world.now = Timestamp(50_001);
    world.run(Command::Expire).unwrap();
    assert_eq!((world.job_state(late), world.job_state(held)), (JobState::Deadline, JobState::Pending));
    assert!(world.eligible(after).is_some());
    world.now = world.state.next_deadline().unwrap();
    world.run(Command::Expire).unwrap();
    assert_eq!((world.job_state(held), world.state.next_deadline()), (JobState::Deadline, None));
    assert_eq!(world.job_state(blocker), JobState::Configuring);
    world.check_fold();
}

#[test]
fn nothing_starts_that_could_end_after_its_deadline() {
    let mut world = World::new(1, 4);
    let refusal = world.try_submit(job().limit(10_000).deadline(10_999)).unwrap_err();
    assert!(refusal.text.contains("before its deadline"), "{}", refusal.text);
    let just = world.submit(job().limit(10_000).deadline(11_000));
    assert_eq!(world.cycle(), [just.0]);
    let late = world.submit(job().limit(10_000).deadline(20_000));
    world.wait(9_001);
    assert_eq!(world.cycle(), [] as [u64; 0]);
    world.run(Command::Expire).unwrap();
    assert_eq!(world.job_state(late), JobState::Deadline);
    assert_eq!(world.job_state(just), JobState::Configuring);
    world.check_fold();
}
