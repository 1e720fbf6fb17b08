//! Devices out of service: one GPU is taken out alone, what runs on it is handled as the site says, and it comes back.

mod support;

use ephor_core::command::{Action, DeviceChange, Group, Kept, NodeReport};
use ephor_core::{Command, DeviceFaults, Event, Eviction, OnFault, RefusalKind, Reply};
use ephor_model::{
    Allocation, AllocationPart, Amounts, EndCause, GpuRequest, JobId, JobState, NodeId, ReasonCode, ResourceId, Span,
};
use smallvec::smallvec;
use std::sync::Arc;
use support::{Conservative, TestJob, World, job};

const NODE: NodeId = NodeId(0);

fn with_gpus(gpus: u32) -> TestJob {
    job().gpus(GpuRequest::PerNode(gpus))
}

fn faults(said: &[(u32, &str)], jobs: OnFault) -> DeviceFaults {
    let faulty = said.iter().map(|(device, why)| (device.to_string(), vec![(*why).to_owned()]));
    DeviceFaults { faulty: faulty.collect(), jobs }
}

fn say(world: &mut World, said: &[(u32, &str)], jobs: OnFault) {
    let report = NodeReport::Devices { node: NODE, faults: faults(said, jobs) };
    world.run(Command::NodeReport(report)).unwrap();
}

fn set(world: &mut World, device: u32, change: DeviceChange) -> Result<Reply, ephor_core::Refusal> {
    world.run(Command::SetDevice { node: NODE, device, change, by: "root".into() })
}

fn devices_of(world: &World, job: JobId) -> Vec<u32> {
    world.state.attempts.get(&job).unwrap().allocation.parts[0].devices.to_vec()
}

fn out(world: &World) -> Vec<u32> {
    world.state.nodes.get(&NODE).unwrap().out_of_service()
}

/// Free GPUs as the state and as the replica have them.
fn free(world: &World) -> (i64, i64) {
    let replica = world.scheduler.replica().cluster.free(NODE).unwrap();
    (world.state.free(NODE).get(ResourceId::GPU), replica.get(ResourceId::GPU))
}

#[test]
fn one_gpu_is_taken_out_and_the_others_go_on() {
    let mut world = World::with_gpus(1, 16, 4);
    let jobs: Vec<JobId> = (0..3).map(|_| world.submit(with_gpus(1))).collect();
    world.cycle();
    jobs.iter().for_each(|job| world.begin(*job));
    assert_eq!(devices_of(&world, jobs[1]), [1]);
    say(&mut world, &[(1, "XID 79")], OnFault::Requeue);
    assert_eq!((out(&world), free(&world)), (vec![1], (1000, 1000)));
    let ordered: Vec<_> = world.log.iter().filter(|e| matches!(e.event, Event::EndOrdered { .. })).collect();
    assert_eq!(ordered.len(), 1, "only the job on it is ended");
    world.end(jobs[1], 0, EndCause::Requeued);
    let (_, element) = world.state.element(jobs[1]).unwrap();
    assert_eq!(element.state, JobState::Pending);
    assert_eq!(element.detail.as_deref(), Some("GPU 1 of n0 is out of service: XID 79"));
    assert_eq!(free(&world), (1000, 1000), "what it gave back is not to be had");
    assert_eq!(world.cycle(), [jobs[1].0]);
    assert_eq!(devices_of(&world, jobs[1]), [3]);
    let waits = world.submit(with_gpus(1));
    assert!(world.cycle().is_empty());

    set(&mut world, 1, DeviceChange::Return(vec!["XID 79".into()])).unwrap();
    assert_eq!(world.cycle(), [waits.0]);
    assert_eq!(devices_of(&world, waits), [1]);
    say(&mut world, &[(1, "XID 79")], OnFault::Cancel);
    assert!(out(&world).is_empty(), "that was known when it was taken back");
    say(&mut world, &[(1, "XID 48")], OnFault::Cancel);
    assert_eq!(out(&world), [1]);
    world.end(waits, 0, EndCause::Cancelled);
    assert_eq!(world.job_state(waits), JobState::Cancelled);
    world.check_fold();
}

#[test]
fn jobs_go_on_where_the_site_says_so_and_take_nothing_from_others() {
    let mut world = World::with_gpus(1, 16, 4);
    let long = world.submit(with_gpus(2));
    world.cycle();
    say(&mut world, &[(0, "bad memory"), (3, "bad memory")], OnFault::Keep);
    assert_eq!(world.job_state(long), JobState::Configuring);
    assert_eq!(free(&world), (1000, 1000), "one of four is whole and free, whoever holds another one");
    let (other, third) = (world.submit(with_gpus(1)), world.submit(with_gpus(1)));
    assert_eq!(world.cycle(), [other.0]);
    assert_eq!(devices_of(&world, other), [2]);
    // The earliest start of the third is when GPU 2 comes free, or GPU 1; GPU 0 never is.
    world.cycle_by(&mut Conservative::default());
    assert!(world.promised(third).is_some());
    let wide = world.submit(with_gpus(3));
    world.cycle_by(&mut Conservative::default());
    assert_eq!(world.promised(wide), None, "no three are in service");
    world.check_fold();
}

#[test]
fn a_job_that_is_not_to_run_twice_fails_with_its_gpu() {
    let mut world = World::with_gpus(1, 16, 1);
    let mut once = with_gpus(1);
    once.0.requeue = Some(false);
    let once = world.submit(once);
    world.cycle();
    world.begin(once);
    say(&mut world, &[(0, "XID 95")], OnFault::Requeue);
    world.end(once, 0, EndCause::NodeFailed);
    let (_, element) = world.state.element(once).unwrap();
    assert_eq!((element.state, element.reason), (JobState::NodeFail, ReasonCode::NodeDown));
    assert!(element.detail.as_deref().unwrap().contains("XID 95"));
}

#[test]
fn a_boot_clears_what_the_agent_said_and_not_what_people_did() {
    let mut world = World::with_gpus(1, 16, 3);
    say(&mut world, &[(0, "XID 79"), (1, "XID 79")], OnFault::Keep);
    set(&mut world, 2, DeviceChange::Take("to be looked at".into())).unwrap();
    world.register("n0", 16, "boot-1", &[]);
    assert_eq!(out(&world), [0, 1, 2], "the agent came back in the same boot");
    let mut spec = world.state.nodes.get(&NODE).unwrap().spec.clone();
    spec.boot_id = "boot-2".into();
    let said = faults(&[(1, "a row could not be replaced")], OnFault::Keep);
    world.run(Command::NodeReport(NodeReport::Register { spec, holds: Vec::new(), faults: said })).unwrap();
    assert_eq!(out(&world), [1, 2]);
    set(&mut world, 2, DeviceChange::Return(Vec::new())).unwrap();
    assert_eq!(out(&world), [1]);
    world.restart();
    assert_eq!((out(&world), free(&world)), (vec![1], (2000, 2000)));
    world.check_fold();
}

#[test]
fn promises_do_not_count_on_what_is_out() {
    let mut world = World::with_gpus(1, 16, 2);
    let first = world.submit(with_gpus(2).limit(60_000));
    world.cycle();
    let second = world.submit(with_gpus(2));
    world.cycle_by(&mut Conservative::default());
    assert!(world.promised(second).is_some());
    say(&mut world, &[(1, "XID 79")], OnFault::Keep);
    assert_eq!(world.promised(second), None);
    world.cycle_by(&mut Conservative::default());
    assert_eq!(world.promised(second), None);
    let small = world.submit(with_gpus(1));
    world.cycle_by(&mut Conservative::default());
    assert!(world.promised(small).is_some(), "GPU 0 comes free");
    world.act(Action::Cancel, first).unwrap();
    world.end(first, 0, EndCause::Cancelled);
    assert_eq!(world.cycle_by(&mut Conservative::default()), [small.0]);
    assert_eq!(devices_of(&world, small), [0]);
}

#[test]
fn a_share_ends_with_its_gpu_and_nobody_joins_one_that_is_out() {
    let mut world = World::with_gpus(1, 16, 2);
    let share = || job().gpus(GpuRequest::Share(300));
    let (a, b) = (world.submit(share()), world.submit(share()));
    world.cycle();
    assert_eq!((devices_of(&world, a), devices_of(&world, b)), (vec![0], vec![0]));
    say(&mut world, &[(0, "XID 79")], OnFault::Requeue);
    assert_eq!(free(&world), (1000, 1000));
    let c = world.submit(share());
    assert_eq!(world.cycle(), [c.0]);
    assert_eq!(devices_of(&world, c), [1]);
    let ordered = world.log.iter().filter(|e| matches!(e.event, Event::EndOrdered { .. })).count();
    assert_eq!(ordered, 2);
    world.check_fold();
}

#[test]
fn a_claim_counts_on_no_gpu_that_is_out() {
    let mut world = World::with_gpus(1, 16, 2);
    let victim = world.submit(with_gpus(2).requeue());
    world.cycle();
    world.begin(victim);
    say(&mut world, &[(1, "XID 79")], OnFault::Keep);
    let (both, one) = (world.submit(with_gpus(2)), world.submit(with_gpus(1)));
    let (key, grace) = (world.attempt(victim), Span(10_000));
    let start = world.now + grace;
    let claim = |job: JobId, gpus: i64| {
        let amounts = Amounts::new().with(ResourceId::GPU, gpus * 1000);
        let part = AllocationPart { node: NODE, tasks: 1, amounts, devices: smallvec![] };
        let allocation = Arc::new(Allocation { parts: smallvec![part] });
        let eviction = Arc::new(Eviction { why: "due".into(), grace, requeue: true });
        let promises = vec![Kept { job, start, allocation, claim: true }];
        Group { evictions: vec![(key, eviction)], promises, ..Group::default() }
    };
    let groups = vec![claim(both, 2), claim(one, 1)];
    match world.run(Command::Plan { groups }).unwrap() {
        Reply::Groups(taken) => assert_eq!(taken, [false, true]),
        other => panic!("{other:?}"),
    }
    world.end(victim, 0, EndCause::Preempted);
    assert_eq!(world.cycle(), [one.0]);
    assert_eq!(devices_of(&world, one), [0]);
}

#[test]
fn nonsense_is_refused() {
    let mut world = World::with_gpus(1, 16, 2);
    let refusal = set(&mut world, 2, DeviceChange::Take("why".into())).unwrap_err();
    assert!(refusal.kind == RefusalKind::NotFound && refusal.to_string().contains("it has 2"), "{refusal}");
    assert_eq!(set(&mut world, 1, DeviceChange::Take(" ".into())).unwrap_err().kind, RefusalKind::Invalid);
    say(&mut world, &[(77, "no such GPU")], OnFault::Cancel);
    assert!(out(&world).is_empty());
}
