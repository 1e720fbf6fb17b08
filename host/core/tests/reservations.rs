//! Reservations: who may start on their nodes, who may run into them, and who waits for what.

mod support;

use ephor_core::command::{Group, NodeChoice, ObjectKind, Objects, ReservationWish, Start};
use ephor_core::scheduler::FirstComeFirstServed;
use ephor_core::{Command, Refusal, Reply, reservations};
use ephor_model::{
    Account, Allocation, AllocationPart, Amounts, JobId, NodeId, Owner, ReasonCode, Reservation, ResourceId, Span,
    Timestamp, Uid,
};
use smallvec::smallvec;
use std::sync::Arc;
use support::{Conservative, TestJob, World, job};

const HOUR: i64 = 3_600_000;

fn wish(name: &str, start: i64, hours: i64, nodes: &[&str]) -> ReservationWish {
    let is = Reservation {
        name: name.into(),
        start: Timestamp(start),
        end: Timestamp(start + hours * HOUR),
        nodes: Vec::new(),
        users: Vec::new(),
        accounts: Vec::new(),
        maintenance: true,
        ignore_running: false,
        description: String::new(),
    };
    ReservationWish { is, nodes: NodeChoice::Named(nodes.iter().map(|n| (*n).to_owned()).collect()) }
}

fn for_user(user: &str, mut wish: ReservationWish) -> ReservationWish {
    wish.is.users = vec![user.into()];
    wish.is.maintenance = false;
    wish
}

fn apply(world: &mut World, wish: ReservationWish) -> Result<Reply, Refusal> {
    world.run(Command::Apply(Objects { reservations: vec![wish], ..Objects::default() }))
}

fn of(user: &str, mut job: TestJob) -> TestJob {
    job.0.owner = Owner { uid: Uid(user.len() as u32), gid: 1, name: user.into() };
    job
}

fn inside(name: &str, mut job: TestJob) -> TestJob {
    job.0.reservation = Some(name.into());
    job
}

fn nodes(world: &World, id: JobId) -> Vec<u32> {
    world.state.attempts.get(&id).unwrap().allocation.parts.iter().map(|p| p.node.0).collect()
}

#[test]
fn nothing_runs_into_maintenance_and_all_start_when_it_is_over() {
    let mut world = World::new(2, 4);
    let start = world.now.0 + HOUR / 2;
    apply(&mut world, wish("maint", start, 2, &["n0", "n1"])).unwrap();
    let long = world.submit(job());
    let mut short = job();
    short.0.time_limit = Some(Span::minutes(20));
    let short = world.submit(short);
    // First come, first served: the long one waits, and the short one behind it does too.
    assert_eq!(world.cycle(), [0u64; 0]);
    let (entry, _) = world.state.element(long).unwrap();
    let why = reservations::in_the_way(&world.state, &entry.job, world.now, Span::minutes(60));
    assert!(
        why[0].starts_with("reservation 'maint' keeps 2 nodes for maintenance from 1970-01-01T00:30:01"),
        "{why:?}"
    );
    world.act(ephor_core::command::Action::Hold, long).unwrap();
    assert_eq!(world.cycle(), [short.0]);
    world.finish(short, 0);
    world.act(ephor_core::command::Action::Release, long).unwrap();
    assert_eq!(world.cycle(), [0u64; 0]);
    // Time alone lets it start: the scheduler knows when to look again.
    world.wait(2 * HOUR);
    assert!(!world.scheduler.due(world.now));
    assert_eq!(world.scheduler.next_time(), Some(Timestamp(start + 2 * HOUR)));
    world.wait(HOUR / 2);
    assert!(world.scheduler.due(world.now));
    assert_eq!(world.cycle(), [long.0]);
    world.check_fold();
}

#[test]
fn only_those_named_run_inside_and_only_there() {
    let mut world = World::new(3, 4);
    let start = world.now.0 + HOUR;
    assert!(apply(&mut world, for_user("ann", wish("course", start, 4, &["n1", "n2"]))).is_ok());
    assert!(world.try_submit(of("bob", inside("course", job()))).unwrap_err().text.contains("not for user 'bob'"));
    assert!(world.try_submit(of("ann", inside("none", job()))).unwrap_err().text.contains("no reservation 'none'"));
    let mut long = job();
    long.0.time_limit = Some(Span::minutes(300));
    assert!(world.try_submit(of("ann", inside("course", long))).unwrap_err().text.contains("lasts 04:00:00"));
    let ann: Vec<JobId> = (0..3).map(|_| world.submit(of("ann", inside("course", job().cpus(4))))).collect();
    assert_eq!(world.cycle(), [0u64; 0]);
    world.wait(HOUR);
    let bob: Vec<JobId> = (0..2).map(|_| world.submit(of("bob", job().cpus(4)))).collect();
    // Inside there is room for two of ann's, outside for one of bob's, who is not held up by the third of ann's.
    let plan = world.scheduler.cycle(&world.state, world.now, 1_000_000, &mut FirstComeFirstServed).unwrap();
    let note = plan.notes.get(&ann[2]).unwrap().clone();
    assert_eq!(note.code, ReasonCode::Reservation);
    assert!(note.text.starts_with("in reservation 'course': "), "{}", note.text);
    let Reply::Groups(taken) = world.run(Command::Plan { groups: plan.groups }).unwrap() else { panic!() };
    assert_eq!(taken, [true; 3]);
    assert_eq!([nodes(&world, ann[0]), nodes(&world, ann[1]), nodes(&world, bob[0])], [[1], [2], [0]]);
    world.finish(ann[0], 0);
    assert_eq!(world.cycle(), [ann[2].0]);
    // Too late to end inside.
    let late = world.submit(of("ann", inside("course", job())));
    world.finish(ann[1], 0);
    world.finish(ann[2], 0);
    world.wait(3 * HOUR + 1);
    assert_eq!(world.cycle(), [0u64; 0]);
    world.act(ephor_core::command::Action::Cancel, late).unwrap();
    world.check_fold();
}

#[test]
fn accounts_below_may_use_what_those_above_may() {
    let mut world = World::new(1, 4);
    let account = |name: &str, parent: Option<&str>| Account {
        name: name.into(),
        parent: parent.map(str::to_owned),
        ..Account::default()
    };
    let accounts = vec![account("lab", None), account("team", Some("lab"))];
    world.run(Command::Apply(Objects { accounts, ..Objects::default() })).unwrap();
    let mut wish = wish("r", world.now.0, 4, &["n0"]);
    wish.is.accounts = vec!["lab".into()];
    apply(&mut world, wish).unwrap();
    let mut mine = inside("r", job());
    mine.0.account = "team".into();
    let mine = world.submit(mine);
    assert!(world.try_submit(inside("r", job())).is_err());
    assert_eq!(world.cycle(), [mine.0]);
}

#[test]
fn a_plan_that_runs_into_a_reservation_is_dropped() {
    let mut world = World::new(2, 4);
    let (a, b) = (world.submit(job()), world.submit(of("ann", job())));
    let now = world.now.0;
    apply(&mut world, wish("maint", now + HOUR / 2, 1, &["n0"])).unwrap();
    apply(&mut world, for_user("ann", wish("course", now, 4, &["n1"]))).unwrap();
    let c = world.submit(of("ann", inside("course", job())));
    let mut start = |job, node| {
        let amounts = Amounts::new().with(ResourceId::CPU, 1000);
        let part = AllocationPart { node: NodeId(node), tasks: 1, amounts, devices: smallvec![] };
        let start = Start { job, allocation: Arc::new(Allocation { parts: smallvec![part] }) };
        world.run(Command::Plan { groups: vec![Group { starts: vec![start], ..Group::default() }] }).unwrap()
    };
    let dropped = Reply::Groups(vec![false]);
    assert_eq!(start(a, 0), dropped, "it would run into the maintenance");
    assert_eq!(start(b, 1), dropped, "it does not ask for the reservation that it would run in");
    assert_eq!(start(c, 0), dropped, "it asks for one, and would run outside");
    assert_eq!(start(c, 1), Reply::Groups(vec![true]));
}

#[test]
fn nodes_are_chosen_by_count_among_those_that_are_free() {
    let mut world = World::new(4, 4);
    let running = world.submit(job().cpus(4));
    assert_eq!(world.cycle(), [running.0]);
    let busy = nodes(&world, running)[0];
    let count = |name: &str, n, start| {
        let mut wish = wish(name, start, 1, &[]);
        wish.is.maintenance = false;
        wish.is.users = vec!["ann".into()];
        wish.nodes = NodeChoice::Count(n);
        wish
    };
    let now = world.now.0;
    apply(&mut world, count("a", 2, now)).unwrap();
    let chosen = world.state.reservation_by_name("a").unwrap().1.nodes.clone();
    assert!(!chosen.contains(&NodeId(busy)) && chosen.len() == 2, "{chosen:?}");
    let refused = apply(&mut world, count("b", 2, now)).unwrap_err();
    assert!(refused.text.contains("wants 2 nodes, and 1 are free"), "{refused}");
    apply(&mut world, count("b", 2, now + HOUR)).unwrap();
    // The same again changes nothing, and keeps the nodes.
    let again = apply(&mut world, count("a", 2, now)).unwrap();
    assert_eq!(again, Reply::Applied { created: 0, changed: 0, unchanged: 1 });
    let refused = apply(&mut world, wish("c", now, 1, &[&format!("n{busy}")])).unwrap_err();
    assert!(refused.text.contains("job 1 runs into reservation 'c'"), "{refused}");
    let mut ignoring = wish("c", now, 1, &[&format!("n{busy}")]);
    ignoring.is.ignore_running = true;
    apply(&mut world, ignoring).unwrap();
    world.check_fold();
}

#[test]
fn reservations_that_make_no_sense_are_refused() {
    let mut world = World::new(1, 4);
    let now = world.now.0;
    let mut error = |wish| apply(&mut world, wish).unwrap_err().text;
    assert!(error(wish("r", now, 0, &["n0"])).contains("over before it begins"));
    assert!(error(wish("r", now - 3 * HOUR, 2, &["n0"])).contains("or already"));
    assert!(error(wish("r", now, 1, &["n7"])).contains("'n7', which is not there"));
    assert!(error(wish("r", now, 1, &[])).contains("no nodes"));
    let mut nobody = wish("r", now, 1, &["n0"]);
    nobody.is.maintenance = false;
    assert!(error(nobody).contains("nobody could use"));
    apply(&mut world, for_user("ann", wish("r", now, 2, &["n0"]))).unwrap();
    let clash = apply(&mut world, for_user("bob", wish("s", now + HOUR, 2, &["n0"]))).unwrap_err();
    assert!(clash.text.contains("reservation 'r' has some of the nodes"), "{clash}");
    let waits = world.submit(of("ann", inside("r", job().cpus(4))));
    let delete = Command::Delete { kind: ObjectKind::Reservation, name: "r".into() };
    assert!(world.run(delete.clone()).unwrap_err().text.contains("still asked for by 1"));
    world.act(ephor_core::command::Action::Cancel, waits).unwrap();
    world.run(delete).unwrap();
    let free = world.submit(job().cpus(4));
    assert_eq!(world.cycle(), [free.0]);
}

#[test]
fn what_a_cycle_does_inside_is_taken_back_exactly() {
    use ephor_core::cycle::{Cause, Cycle, Outcome, Scope};
    let mut world = World::new(2, 4);
    let now = world.now.0;
    apply(&mut world, for_user("ann", wish("r", now, 4, &["n0"]))).unwrap();
    let ids: Vec<JobId> = (0..2).map(|_| world.submit(of("ann", inside("r", job().cpus(3))))).collect();
    let replica = Box::new(ephor_core::replica::Replica::of(&world.state));
    let mut cycle = Cycle::begin(replica, world.state.clone(), world.now, 100_000, vec![Cause::Settings], Vec::new());
    let how = ephor_placement::Placing::default();
    let rows = cycle.next(Scope::All, None, 10);
    assert_eq!(rows.len(), ids.len());
    for _ in 0..2 {
        let savepoint = cycle.savepoint();
        assert_eq!(cycle.try_start(rows[0], None, &how), Ok(Outcome::Started));
        assert!(cycle.try_start(rows[1], None, &how).is_err());
        cycle.rollback(savepoint).unwrap();
    }
    assert_eq!(cycle.try_start(rows[1], None, &how), Ok(Outcome::Started));
    let replica = cycle.abandon();
    let mut fresh = ephor_core::replica::Replica::of(&world.state);
    fresh.advance(world.now);
    assert_eq!(format!("{:?}", replica.cluster), format!("{:?}", fresh.cluster));
}

#[test]
fn a_reservation_made_over_a_promise_lifts_it_and_the_next_promise_respects_it() {
    let mut world = World::new(1, 4);
    let running = world.submit(job().cpus(4));
    assert_eq!(world.cycle(), [running.0]);
    let waits = world.submit(job().cpus(4));
    world.cycle_by(&mut Conservative::default());
    let end = world.now.0 + HOUR;
    let promised = |world: &World| world.state.promises.get(&waits).map(|p| p.start.0);
    assert_eq!(promised(&world), Some(end));
    apply(&mut world, wish("maint", end + HOUR / 2, 2, &["n0"])).unwrap();
    assert_eq!(promised(&world), None);
    assert!(world.scheduler.due(world.now));
    world.cycle_by(&mut Conservative::default());
    assert_eq!(promised(&world), Some(end + HOUR / 2 + 2 * HOUR));
    world.check_fold();
}
