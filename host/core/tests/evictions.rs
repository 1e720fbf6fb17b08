//! Evictions and claims: who gives way ends once, whoever claims what is released gets it and nobody else, and nothing
//! is evicted in vain.

mod support;

use ephor_core::command::{Action, Group, Kept, Objects};
use ephor_core::cycle::{Afterwards, Cycle, CycleRefusal, Outcome, Scope};
use ephor_core::{Command, Event, Eviction, LiftCause, Reply};
use ephor_model::{
    Allocation, AllocationPart, Amounts, AttemptKey, EndCause, JobId, JobState, NodeId, Queue, ResourceId, Span,
    Timestamp, limits,
};
use ephor_placement::Placing;
use smallvec::smallvec;
use std::sync::Arc;
use support::{By, TestJob, World, job};

/// Grace of the evictions here, in milliseconds.
const GRACE: i64 = 10_000;

fn claiming() -> Placing {
    Placing { may_claim: true, ..Placing::default() }
}

/// Row of a job's attempt.
fn row_of(cycle: &mut Cycle, job: JobId) -> u32 {
    let jobs = cycle.column("attempts", "job", None).unwrap();
    jobs.iter().position(|id| *id == job.0 as i64).unwrap() as u32
}

fn evict(cycle: &mut Cycle, victim: JobId) -> Result<(), CycleRefusal> {
    let row = row_of(cycle, victim);
    cycle.evict(row, Span(GRACE), Afterwards::Requeue, "somebody else is due")
}

/// The outcome of the first job that waits.
fn claim_first(cycle: &mut Cycle) -> Result<Outcome, CycleRefusal> {
    let first = cycle.next(Scope::All, None, 1)[0];
    cycle.try_start(first, None, &claiming())
}

/// A policy that does nothing.
fn nobody() -> By<impl FnMut(&mut Cycle) + Send> {
    By(|_: &mut Cycle| {})
}

/// `victim` runs on the one node of four cores, `next` wants it whole and claims it.
fn claimed(victim: TestJob) -> (World, JobId, JobId) {
    let mut world = World::new(1, 4);
    let victim = world.submit(victim.cpus(4));
    assert_eq!(world.cycle(), [victim.0]);
    world.begin(victim);
    let next = world.submit(job().cpus(4));
    let started = world.cycle_by(&mut By(move |cycle: &mut Cycle| {
        assert!(matches!(claim_first(cycle), Err(CycleRefusal::NotNow(_))), "nothing is released yet");
        let savepoint = cycle.savepoint();
        evict(cycle, victim).unwrap();
        assert_eq!(claim_first(cycle), Ok(Outcome::Claimed));
        assert!(cycle.next(Scope::All, None, 10).is_empty(), "who has a claim is in no window");
        cycle.accept(savepoint).unwrap();
    }));
    assert!(started.is_empty());
    (world, victim, next)
}

#[test]
fn whoever_claims_starts_as_soon_as_the_victim_has_ended() {
    let (mut world, victim, next) = claimed(job().requeue());
    assert_eq!(world.job_state(victim), JobState::Completing);
    assert_eq!(world.promised(next), Some(world.now.0 + GRACE));
    world.check_fold();
    world.wait(2_000);
    // A third job comes before the victim has ended, and goes before everybody in its policy's eyes.
    let third = world.submit(job().cpus(4));
    world.end(victim, 0, EndCause::Preempted);
    assert!(world.scheduler.due(world.now));
    assert_eq!(world.cycle(), [next.0], "the host honours the claim, whatever the policy does");
    assert_eq!(world.job_state(victim), JobState::Pending);
    let detail = world.state.element(victim).unwrap().1.detail.clone();
    assert_eq!(detail.as_deref(), Some("somebody else is due"));
    assert_eq!(world.job_state(third), JobState::Pending);
    assert_eq!(world.promised(next), None);
    world.check_fold();
}

#[test]
fn a_claim_is_honoured_under_a_policy_that_does_nothing_and_after_a_restart() {
    let (mut world, victim, next) = claimed(job().requeue());
    world.restart();
    assert!(world.cycle_by(&mut nobody()).is_empty(), "the victim still holds the node");
    world.wait(GRACE);
    world.end(victim, 0, EndCause::Preempted);
    assert_eq!(world.cycle_by(&mut nobody()), [next.0]);
}

#[test]
fn a_victim_that_may_not_run_twice_or_is_not_to_ends_for_good() {
    let (mut world, victim, _) = claimed(job());
    world.end(victim, 0, EndCause::Preempted);
    assert_eq!(world.job_state(victim), JobState::Preempted);

    let mut world = World::new(1, 4);
    let victim = world.submit(job().cpus(4).requeue());
    world.cycle();
    world.cycle_by(&mut By(move |cycle: &mut Cycle| {
        let row = row_of(cycle, victim);
        cycle.evict(row, Span(0), Afterwards::Cancel, "it has to go").unwrap();
    }));
    world.end(victim, 0, EndCause::Preempted);
    assert_eq!(world.job_state(victim), JobState::Preempted);
}

#[test]
fn a_victim_that_does_not_end_is_no_longer_counted_on_and_the_claim_expires() {
    let (mut world, victim, next) = claimed(job().requeue());
    world.wait(GRACE + limits::CLAIM_LATE_MS - 1);
    assert!(world.cycle_by(&mut nobody()).is_empty());
    assert!(world.promised(next).is_some());
    world.wait(1);
    assert!(world.scheduler.due(world.now), "a cycle is due when a claim expires");
    world.cycle_by(&mut By(|cycle: &mut Cycle| {
        assert_eq!(cycle.column("attempts", "release", None), Ok(vec![Timestamp::NEVER.0]));
        assert!(matches!(claim_first(cycle), Err(CycleRefusal::NotNow(_))), "it is stuck");
    }));
    assert_eq!(world.promised(next), None);
    let lifted = |e: &Event| matches!(e, Event::PromiseLifted { job, why: LiftCause::Expired } if *job == next);
    assert!(world.log.iter().any(|stamped| lifted(&stamped.event)));
    // It ends at last: whoever waits is served in the ordinary way.
    world.end(victim, 0, EndCause::Preempted);
    assert_eq!(world.cycle(), [victim.0]);
    world.check_fold();
}

#[test]
fn an_eviction_that_is_rolled_back_never_was() {
    let mut world = World::new(1, 4);
    let victim = world.submit(job().cpus(4).requeue());
    world.cycle();
    world.submit(job().cpus(4));
    world.cycle_by(&mut By(move |cycle: &mut Cycle| {
        let before = cycle.column("attempts", "release", None);
        let savepoint = cycle.savepoint();
        evict(cycle, victim).unwrap();
        assert_ne!(cycle.column("attempts", "release", None), before);
        assert_eq!(claim_first(cycle), Ok(Outcome::Claimed));
        cycle.rollback(savepoint).unwrap();
        assert_eq!(cycle.column("attempts", "release", None), before);
        assert_eq!(cycle.column("attempts", "releasing-since", None), Ok(vec![-1]));
        assert!(matches!(claim_first(cycle), Err(CycleRefusal::NotNow(_))));
        evict(cycle, victim).unwrap();
        assert!(matches!(evict(cycle, victim), Err(CycleRefusal::Other(_))), "once is enough");
    }));
    let evicted = world.log.iter().filter(|s| matches!(s.event, Event::Evicted { .. })).count();
    assert_eq!((evicted, world.state.promises.len()), (1, 0));
}

#[test]
fn nobody_lifts_a_claim_or_starts_what_has_one() {
    let (mut world, _, next) = claimed(job().requeue());
    world.cycle_by(&mut By(|cycle: &mut Cycle| {
        assert_eq!(cycle.column("reservations", "durable", None), Ok(vec![2]));
        assert!(matches!(cycle.lift(0), Err(CycleRefusal::Other(_))));
        cycle.lift_all();
        assert!(cycle.next(Scope::All, None, 10).is_empty());
    }));
    assert!(world.promised(next).is_some());
}

#[test]
fn a_victim_moves_and_stands_behind_its_own_end() {
    // Two nodes of four: two jobs of two on one each; the third wants a whole one.
    let mut world = World::new(2, 4);
    let (a, b) = (world.submit(job().cpus(3).requeue()), world.submit(job().cpus(3).requeue()));
    assert_eq!(world.cycle(), [a.0, b.0]);
    let wide = world.submit(job().cpus(2));
    let extra = world.submit(job().cpus(1));
    assert_eq!(world.cycle_by(&mut nobody()), Vec::<u64>::new());
    // `a` makes room for `wide` and finds none for itself: nothing of it stands.
    world.cycle_by(&mut By(move |cycle: &mut Cycle| {
        let savepoint = cycle.savepoint();
        evict(cycle, a).unwrap();
        assert_eq!(claim_first(cycle), Ok(Outcome::Claimed));
        let row = row_of(cycle, a);
        assert!(matches!(cycle.re_place(row, &Placing::default()), Err(CycleRefusal::NotNow(_))));
        cycle.rollback(savepoint).unwrap();
        let row = row_of(cycle, a);
        assert!(matches!(cycle.re_place(row, &Placing::default()), Err(CycleRefusal::Other(_))), "not evicted");
    }));
    world.finish(b, 0);
    // Now there is a free node: `a` moves to it, though `wide` could have it as well.
    world.cycle_by(&mut By(move |cycle: &mut Cycle| {
        let savepoint = cycle.savepoint();
        evict(cycle, a).unwrap();
        let other = Placing { only: Some(vec![NodeId(1)]), ..Placing::default() };
        let row = row_of(cycle, a);
        assert_eq!(cycle.re_place(row, &other), Ok(Outcome::Claimed));
        cycle.accept(savepoint).unwrap();
    }));
    world.check_fold();
    assert!(world.promised(a).is_some());
    // It starts nowhere before it has ended; the room that it claimed is nobody else's.
    assert!(world.cycle_by(&mut nobody()).is_empty());
    world.wait(GRACE / 2);
    world.end(a, 0, EndCause::Preempted);
    assert_eq!(world.cycle(), [a.0, wide.0, extra.0]);
    assert_eq!(world.state.attempts[&a].allocation.parts[0].node, NodeId(1));
    assert_eq!(world.attempt(a).number, 2);
    world.check_fold();
}

#[test]
fn a_victim_that_its_user_cancels_meanwhile_does_not_run_again() {
    let mut world = World::new(2, 4);
    let a = world.submit(job().cpus(3).requeue());
    world.cycle();
    world.cycle_by(&mut By(move |cycle: &mut Cycle| {
        let savepoint = cycle.savepoint();
        evict(cycle, a).unwrap();
        let row = row_of(cycle, a);
        assert_eq!(cycle.re_place(row, &Placing::default()), Ok(Outcome::Claimed));
        cycle.accept(savepoint).unwrap();
    }));
    assert!(world.promised(a).is_some());
    world.act_as_user(Action::Cancel, a).unwrap();
    assert_eq!(world.promised(a), None, "it has no use for its claim");
    world.end(a, 0, EndCause::Cancelled);
    assert_eq!(world.job_state(a), JobState::Cancelled);
    assert!(world.cycle().is_empty());
    world.check_fold();
}

#[test]
fn what_a_victim_gives_back_of_a_limit_counts_for_the_claim_and_for_nobody_else() {
    let mut world = World::new(2, 4);
    let limit = Amounts::new().with(ResourceId::CPU, 4_000);
    let queue = Queue { name: "main".into(), default: true, limit, ..Queue::default() };
    world.run(Command::Apply(Objects { queues: vec![(queue, None)], ..Objects::default() })).unwrap();
    let victim = world.submit(job().cpus(4).requeue());
    assert_eq!(world.cycle(), [victim.0]);
    let (next, late) = (world.submit(job().cpus(4)), world.submit(job().cpus(1)));
    world.cycle_by(&mut By(move |cycle: &mut Cycle| {
        let rows = cycle.next(Scope::All, None, 10);
        assert!(matches!(cycle.try_start(rows[0], None, &claiming()), Err(CycleRefusal::Pool(_))));
        evict(cycle, victim).unwrap();
        // There is an idle node, and yet its queue has no room before the victim has ended.
        assert!(matches!(cycle.try_start(rows[0], None, &Placing::default()), Err(CycleRefusal::Pool(_))));
        assert_eq!(cycle.try_start(rows[0], None, &claiming()), Ok(Outcome::Claimed));
        assert!(matches!(cycle.try_start(rows[1], None, &claiming()), Err(CycleRefusal::Pool(_))), "all is claimed");
    }));
    world.cycle_by(&mut By(move |cycle: &mut Cycle| {
        let late = cycle.next(Scope::All, None, 10)[0];
        assert!(matches!(cycle.try_start(late, None, &claiming()), Err(CycleRefusal::Pool(_))), "still");
    }));
    world.end(victim, 0, EndCause::Preempted);
    assert_eq!(world.cycle(), [next.0]);
    assert_eq!(world.job_state(late), JobState::Pending);
}

#[test]
fn a_group_whose_victim_has_ended_meanwhile_is_dropped_whole() {
    let mut world = World::new(1, 4);
    let victim = world.submit(job().cpus(4).requeue());
    world.cycle();
    let next = world.submit(job().cpus(4));
    let key = world.attempt(victim);
    world.finish(victim, 0);
    let group = group(key, next, world.now + Span(GRACE), "due");
    assert_eq!(commit(&mut world, vec![group]), [false]);
    assert!(world.state.promises.is_empty());
}

#[test]
fn evictions_are_checked_like_everything_else() {
    let mut world = World::new(1, 4);
    let victim = world.submit(job().cpus(4).requeue());
    world.cycle();
    let next = world.submit(job().cpus(4));
    let (key, at) = (world.attempt(victim), world.now + Span(GRACE));
    let unknown = AttemptKey { number: 7, ..key };
    let early = group(key, next, world.now + Span(GRACE - 1), "due");
    let twice = Group { evictions: vec![group(key, next, at, "due").evictions[0].clone(); 2], ..Group::default() };
    let bad = vec![group(unknown, next, at, "due"), group(key, next, at, ""), early, twice];
    assert_eq!(commit(&mut world, bad), [false; 4]);
    assert_eq!(commit(&mut world, vec![group(key, next, at, "due")]), [true]);
    assert_eq!(commit(&mut world, vec![group(key, next, at, "due")]), [false], "it was told already");
    world.check_fold();

    let mut world = World::new(1, 4);
    let victim = world.submit(job().cpus(4));
    world.cycle();
    world.cycle_by(&mut By(move |cycle: &mut Cycle| {
        let row = row_of(cycle, victim);
        let refused = |answer| assert!(matches!(answer, Err(CycleRefusal::Other(_))));
        refused(cycle.evict(row + 1, Span(0), Afterwards::Requeue, "due"));
        refused(cycle.evict(row, Span(-1), Afterwards::Requeue, "due"));
        refused(cycle.evict(row, Span(limits::EVICTION_GRACE_MS + 1), Afterwards::Requeue, "due"));
        refused(cycle.evict(row, Span(0), Afterwards::Requeue, " "));
        evict(cycle, victim).unwrap();
        assert!(matches!(cycle.re_place(row, &claiming()), Err(CycleRefusal::Other(_))), "its user wants one run");
    }));
}

/// That attempt gives way, and that job is promised the whole node at that time.
fn group(key: AttemptKey, job: JobId, start: Timestamp, why: &str) -> Group {
    let amounts = Amounts::new().with(ResourceId::CPU, 4_000);
    let part = AllocationPart { node: NodeId(0), tasks: 1, amounts, devices: smallvec![] };
    let allocation = Arc::new(Allocation { parts: smallvec![part] });
    let eviction = Arc::new(Eviction { why: why.into(), grace: Span(GRACE), requeue: true });
    let claim = Kept { job, start, allocation, claim: true };
    Group { evictions: vec![(key, eviction)], promises: vec![claim], ..Group::default() }
}

fn commit(world: &mut World, groups: Vec<Group>) -> Vec<bool> {
    match world.run(Command::Plan { groups }).unwrap() {
        Reply::Groups(taken) => taken,
        other => panic!("{other:?}"),
    }
}
