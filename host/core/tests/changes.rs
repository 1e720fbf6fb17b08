//! Changing jobs that were submitted: what changes, what may, and who may.

mod support;

use ephor_core::command::Actor;
use ephor_core::decide::Change;
use ephor_core::{Command, RefusalKind};
use ephor_model::{Dependency, DependencyKind, JobId, Span, Timestamp};
use std::sync::Arc;
use support::{World, job};

#[test]
fn a_waiting_job_is_placed_by_what_it_asks_for_now() {
    let mut world = World::new(1, 4);
    let big = world.submit(job().cpus(8));
    assert_eq!(world.cycle(), [] as [u64; 0]);
    world.modify(big, false, |spec| spec.request.cpus_per_task = 3).unwrap();
    assert_eq!(world.cycle(), [big.0]);
    world.check_fold();
}

#[test]
fn the_limit_of_what_runs_falls_for_its_owner_and_rises_for_operators() {
    let mut world = World::new(1, 1);
    let runs = world.submit(job().limit(60_000));
    world.cycle();
    let next = world.submit(job());
    let end = |world: &World| world.state.attempts.get(&runs).unwrap().expected_end;
    let set = |ms| move |spec: &mut ephor_model::JobSpec| spec.time_limit = Some(Span(ms));
    let refusal = world.modify(runs, false, set(70_000)).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Conflict);
    assert!(refusal.text.contains("only an operator"), "{}", refusal.text);
    world.modify(runs, false, set(30_000)).unwrap();
    assert_eq!(end(&world), Timestamp(31_000));
    assert_eq!(world.scheduler.replica().cluster.expected_end(runs), Some(Timestamp(31_000)));
    world.modify(runs, true, set(90_000)).unwrap();
    assert_eq!(end(&world), Timestamp(91_000));
    let refusal = world.modify(runs, true, |spec| spec.request.cpus_per_task = 2).unwrap_err();
    assert!(refusal.text.contains("has started"), "{}", refusal.text);
    world.modify(next, false, set(70_000)).unwrap();
    world.check_fold();
}

#[test]
fn a_begin_time_can_be_moved_both_ways() {
    let mut world = World::new(1, 4);
    let id = world.submit(job());
    world.wait(1_000);
    world.modify(id, false, |spec| spec.begin = Some(Timestamp(9_000))).unwrap();
    assert_eq!((world.cycle().len(), world.eligible(id)), (0, Some(Timestamp(9_000))));
    assert_eq!(world.scheduler.next_time(), Some(Timestamp(9_000)));
    world.modify(id, false, |spec| spec.begin = Some(Timestamp(4_000))).unwrap();
    world.now = Timestamp(4_000);
    assert_eq!(world.cycle(), [id.0]);
    world.check_fold();
}

#[test]
fn a_throttle_can_be_opened_while_elements_run() {
    let mut world = World::new(1, 8);
    let id = world.submit(job().array("0-7%2"));
    assert_eq!(world.cycle(), [1, 2]);
    let throttle = |n| move |spec: &mut ephor_model::JobSpec| spec.array.as_mut().unwrap().throttle = n;
    world.modify(id, false, throttle(Some(3))).unwrap();
    assert_eq!(world.cycle(), [3]);
    world.modify(id, false, throttle(None)).unwrap();
    assert_eq!(world.cycle(), [4, 5, 6, 7, 8]);
    let refusal = world.modify(JobId(4), false, |spec| spec.nice = 1).unwrap_err();
    assert!(refusal.text.contains("whole array"), "{}", refusal.text);
    world.check_fold();
}

#[test]
fn dependencies_can_be_changed_and_lifted() {
    let mut world = World::new(1, 4);
    let held = world.submit(job().on_hold());
    let id = world.submit(job().after(DependencyKind::AfterOk, held));
    let set = |list: Vec<Dependency>| move |spec: &mut ephor_model::JobSpec| spec.dependencies = list;
    let refusal = world.modify(id, false, set(vec![Dependency::on(DependencyKind::AfterAny, id)])).unwrap_err();
    assert!(refusal.text.contains("submitted before"), "{}", refusal.text);
    world.modify(id, false, set(Vec::new())).unwrap();
    assert_eq!(world.cycle(), [id.0]);
    assert!(world.state.derived.dependents.is_empty());
    world.check_fold();
}

#[test]
fn a_change_is_refused_where_the_job_is_no_longer_what_it_was_made_from() {
    let mut world = World::new(1, 4);
    let id = world.submit(job().on_hold());
    let was = world.state.jobs.get(&id).unwrap().job.spec.clone();
    world.modify(id, false, |spec| spec.nice = 1).unwrap();
    let change = |edit: fn(&mut ephor_model::JobSpec)| {
        let mut spec = (*was).clone();
        edit(&mut spec);
        let by = Actor { name: "ann".into(), operator: false };
        let change = Change { was: was.clone(), spec: Arc::new(spec) };
        Command::Modify { job: id, change, known_ends: Vec::new(), by }
    };
    let refusal = world.run(change(|spec| spec.nice = 2)).unwrap_err();
    assert!(refusal.text.contains("somebody else"), "{}", refusal.text);
    let refusal = world.modify(id, true, |spec| spec.owner.uid = ephor_model::Uid(0x7fff)).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Invalid);
    assert_eq!(world.state.jobs.get(&id).unwrap().job.spec.nice, 1);
    world.check_fold();
}
