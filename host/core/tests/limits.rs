//! Limits and licences: refused at submit, waited for at start, with the reason; checked again when a plan is committed.

mod support;

use ephor_core::command::{Action, Group, Objects, Start};
use ephor_core::cycle::{Cause, Cycle, CycleRefusal, Outcome, Scope, StopRule};
use ephor_core::replica::Replica;
use ephor_core::scheduler::FirstComeFirstServed;
use ephor_core::{Command, Refusal, RefusalKind, Reply, pools};
use ephor_model::{
    Account, Allocation, AllocationPart, Amounts, Association, JobId, JobState, Licence, NodeId, Owner, Qos, Queue,
    ReasonCode, ResourceId, Span, Uid, UseLimits, User,
};
use ephor_placement::Placing;
use smallvec::smallvec;
use std::sync::Arc;
use support::{By, Conservative, TestJob, World, job};

fn limits(text: &str) -> UseLimits {
    let mut limits = UseLimits::default();
    for part in text.split(' ') {
        let (key, value) = part.split_once('=').unwrap();
        let value: i64 = value.parse().unwrap();
        match key {
            "running" => limits.running = Some(value as u32),
            "submitted" => limits.submitted = Some(value as u32),
            "wall" => limits.wall = Some(Span::minutes(value)),
            _ => match key.strip_suffix("-minutes") {
                Some(resource) => drop(limits.minutes.insert(resource.into(), value)),
                None => drop(limits.in_use.insert(key.into(), value)),
            },
        }
    }
    limits
}

fn apply(world: &mut World, objects: Objects) -> Result<Reply, Refusal> {
    world.run(Command::Apply(objects))
}

fn account(world: &mut World, name: &str, parent: Option<&str>, all: &str, per_user: &str) {
    let read = |text: &str| if text.is_empty() { UseLimits::default() } else { limits(text) };
    let account = Account {
        name: name.into(),
        parent: parent.map(str::to_owned),
        limits: read(all),
        per_user: read(per_user),
        ..Account::default()
    };
    apply(world, Objects { accounts: vec![account], ..Objects::default() }).unwrap();
}

fn qos(world: &mut World, qos: Qos) {
    apply(world, Objects { qos: vec![qos], ..Objects::default() }).unwrap();
}

fn licence(world: &mut World, name: &str, count: u32) {
    let licences = vec![Licence { name: name.into(), count }];
    apply(world, Objects { licences, ..Objects::default() }).unwrap();
}

fn of(uid: u32, mut job: TestJob) -> TestJob {
    job.0.owner = Owner { uid: Uid(uid), gid: 1, name: format!("u{uid}") };
    job
}

fn in_account(name: &str, mut job: TestJob) -> TestJob {
    job.0.account = name.into();
    job
}

fn with_qos(name: &str, mut job: TestJob) -> TestJob {
    job.0.qos = Some(name.into());
    job
}

fn with_licence(name: &str, count: u32, mut job: TestJob) -> TestJob {
    job.0.licences.push((name.into(), count));
    job
}

/// One cycle in order of the queue: what it started, and why the named job waits.
fn reason(world: &mut World, job: JobId) -> (Vec<u64>, ReasonCode, String) {
    let plan = world.scheduler.cycle(&world.state, world.now, 1_000_000, &mut FirstComeFirstServed).unwrap();
    let note = plan.notes.get(&job).unwrap_or_else(|| panic!("no note for {job}")).clone();
    let started = plan.groups.iter().flat_map(|g| g.starts.iter().map(|s| s.job.0)).collect();
    let Reply::Groups(taken) = world.run(Command::Plan { groups: plan.groups }).unwrap() else { panic!() };
    assert!(taken.iter().all(|t| *t), "what a cycle starts within limits, the commit takes");
    world.scheduler.committed(taken);
    (started, note.code, note.text.to_string())
}

#[test]
fn a_submit_beyond_a_limit_is_refused_with_its_numbers() {
    let mut world = World::new(1, 4);
    account(&mut world, "lab", None, "submitted=5", "submitted=3");
    world.submit(of(1, in_account("lab", job().array("0-2"))));
    let refusal = world.try_submit(of(1, in_account("lab", job()))).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Limit);
    assert_eq!(refusal.text, "user 'u1' in account 'lab' may have 3 jobs waiting or running and has 3");
    let refusal = world.try_submit(of(2, in_account("lab", job().array("1-3")))).unwrap_err();
    assert_eq!(refusal.text, "account 'lab' may have 5 jobs waiting or running and has 3; this array adds 3");
    world.submit(of(2, in_account("lab", job().array("1-2"))));
    // What ended no longer counts; what would come back counts again.
    assert_eq!(world.cycle(), [1, 2, 3, 4]);
    world.finish(JobId(1), 0);
    let more = world.submit(of(1, in_account("lab", job())));
    let by = ephor_core::command::system();
    let again = Command::Act { action: Action::Requeue, job: JobId(1), whole: false, by };
    let back = world.run(again).unwrap_err();
    assert_eq!(back.kind, RefusalKind::Limit, "{back}");
    assert_eq!(world.job_state(more), JobState::Pending);
    world.check_fold();
}

#[test]
fn a_time_limit_beyond_the_longest_is_refused_and_later_waits() {
    let mut world = World::new(1, 4);
    account(&mut world, "lab", None, "wall=30", "");
    let refusal = world.try_submit(in_account("lab", job())).unwrap_err();
    assert_eq!(refusal.text, "account 'lab' may ask for a time limit of at most 00:30:00, not 01:00:00");
    account(&mut world, "lab", None, "wall=60", "");
    let id = world.submit(in_account("lab", job()));
    account(&mut world, "lab", None, "wall=30", "");
    let (started, code, text) = reason(&mut world, id);
    assert_eq!((started.as_slice(), code), (&[][..], ReasonCode::AssocMaxWallDurationPerJobLimit), "{text}");
}

#[test]
fn run_limits_wait_and_hold_up_nobody_else() {
    let mut world = World::new(2, 8);
    account(&mut world, "lab", None, "cpu=6000", "running=2");
    account(&mut world, "team", Some("lab"), "", "");
    let a: Vec<JobId> = (0..3).map(|_| world.submit(of(1, in_account("team", job().cpus(2))))).collect();
    let b = world.submit(of(2, in_account("lab", job().cpus(4))));
    let other = world.submit(of(3, job().cpus(4)));
    let (started, code, text) = reason(&mut world, a[2]);
    assert_eq!(started, [a[0].0, a[1].0, other.0]);
    assert_eq!(code, ReasonCode::AssocMaxJobsLimit);
    assert_eq!(text, "user 'u1' in account 'lab' may have 2 jobs running at a time and has 2");
    world.wait(1);
    // The first end makes the scheduler look again: nobody polls.
    assert!(!world.scheduler.due(world.now));
    world.finish(a[0], 0);
    assert!(world.scheduler.due(world.now));
    let (started, code, text) = reason(&mut world, b);
    assert_eq!((started.as_slice(), code), (&[a[2].0][..], ReasonCode::AssocGrpCpuLimit));
    assert_eq!(text, "account 'lab' may use 6 cores at a time and uses 4 cores; the job asks for 4 cores");
    // So does a change of the limit.
    assert!(!world.scheduler.due(world.now));
    account(&mut world, "lab", None, "cpu=8000", "running=2");
    assert!(world.scheduler.due(world.now));
    assert_eq!(world.cycle(), [b.0]);
    world.check_fold();
}

#[test]
fn a_user_may_have_limits_of_its_own_in_an_account() {
    let mut world = World::new(1, 8);
    account(&mut world, "lab", None, "", "running=1");
    let user = User {
        uid: Uid(1),
        name: "u1".into(),
        limits: limits("running=3"),
        associations: vec![Association { account: "lab".into(), limits: limits("running=2") }],
        ..User::default()
    };
    apply(&mut world, Objects { users: vec![user], ..Objects::default() }).unwrap();
    let mine: Vec<u64> = (0..3).map(|_| world.submit(of(1, in_account("lab", job()))).0).collect();
    let elsewhere: Vec<u64> = (0..2).map(|_| world.submit(of(1, job())).0).collect();
    let theirs: Vec<u64> = (0..2).map(|_| world.submit(of(2, in_account("lab", job()))).0).collect();
    assert_eq!(world.cycle(), [mine[0], mine[1], elsewhere[0], theirs[0]]);
}

#[test]
fn qos_bounds_in_all_per_user_and_per_account() {
    let mut world = World::new(1, 16);
    account(&mut world, "lab", None, "", "");
    qos(
        &mut world,
        Qos {
            name: "high".into(),
            limits: limits("cpu-minutes=600000"),
            per_user: limits("cpu=3000"),
            per_account: limits("running=3"),
            accounts: vec!["lab".into(), "default".into()],
            users: vec!["u1".into(), "u2".into(), "u3".into()],
            ..Qos::default()
        },
    );
    let high = |uid, name: &str, cpus| of(uid, in_account(name, with_qos("high", job().cpus(cpus))));
    assert!(world.try_submit(high(9, "lab", 1)).unwrap_err().text.contains("not for user 'u9'"));
    assert!(world.try_submit(with_qos("low", job())).unwrap_err().text.contains("there are: high"));
    let a = world.submit(high(1, "lab", 2));
    let b = world.submit(high(1, "lab", 2));
    let (started, code, _) = reason(&mut world, b);
    assert_eq!((started.as_slice(), code), (&[a.0][..], ReasonCode::QOSMaxCpuPerUserLimit));
    let c: Vec<JobId> = [(2, 1), (2, 2), (3, 1)].map(|(uid, n)| world.submit(high(uid, "lab", n))).to_vec();
    let (started, code, text) = reason(&mut world, c[2]);
    assert_eq!((started.as_slice(), code), (&[c[0].0, c[1].0][..], ReasonCode::MaxJobsPerAccount), "{text}");
    // 2 + 1 + 2 cores for an hour are granted of 10 core-hours.
    let d = world.submit(high(3, "default", 3));
    let e = world.submit(high(3, "default", 3));
    let (started, code, text) = reason(&mut world, e);
    assert_eq!((started.as_slice(), code), (&[d.0][..], ReasonCode::QOSGrpCPURunMinutesLimit), "{text}");
    world.check_fold();
}

#[test]
fn a_job_without_a_qos_gets_that_of_its_account_then_of_its_queue() {
    let mut world = World::new(1, 4);
    let named = |name: &str| Qos { name: name.into(), ..Qos::default() };
    let queue = Queue { name: "main".into(), default_qos: Some("q".into()), ..Queue::default() };
    let lab = Account { name: "lab".into(), default_qos: Some("a".into()), ..Account::default() };
    let team = Account { name: "team".into(), parent: Some("lab".into()), ..Account::default() };
    let objects = Objects {
        queues: vec![(queue, None)],
        accounts: vec![lab, team],
        qos: vec![named("q"), named("a")],
        ..Objects::default()
    };
    apply(&mut world, objects).unwrap();
    let of_job = |world: &World, id| world.state.element(id).unwrap().0.job.spec.qos.clone().unwrap();
    let (one, two) = (world.submit(job()), world.submit(in_account("team", job())));
    assert_eq!((of_job(&world, one).as_str(), of_job(&world, two).as_str()), ("q", "a"));
    let gone = world.run(Command::Delete { kind: ephor_core::command::ObjectKind::Qos, name: "q".into() });
    assert!(gone.unwrap_err().text.contains("still has 1 job"));
}

#[test]
fn licences_are_counted_over_the_cluster() {
    let mut world = World::new(4, 8);
    licence(&mut world, "solver", 5);
    assert!(world.try_submit(with_licence("solver", 6, job())).unwrap_err().text.contains("there are 5 in all"));
    assert!(world.try_submit(with_licence("other", 1, job())).unwrap_err().text.contains("there are: solver"));
    let ids: Vec<JobId> = (0..3).map(|_| world.submit(with_licence("solver", 2, job()))).collect();
    let (started, code, text) = reason(&mut world, ids[2]);
    assert_eq!((started.as_slice(), code), (&[ids[0].0, ids[1].0][..], ReasonCode::Licenses));
    assert_eq!(text, "of 5 licences 'solver' 4 are in use, and the job asks for 2");
    // Fewer licences than are in use: those that run go on, none is given out.
    licence(&mut world, "solver", 2);
    world.finish(ids[0], 0);
    assert_eq!(world.cycle(), [0u64; 0]);
    world.finish(ids[1], 0);
    assert_eq!(world.cycle(), [ids[2].0]);
    world.check_fold();
}

#[test]
fn limits_may_name_licences_and_only_what_is_there() {
    let mut world = World::new(1, 8);
    let lab = Account { name: "lab".into(), per_user: limits("licence:solver=1"), ..Account::default() };
    let refused = apply(&mut world, Objects { accounts: vec![lab.clone()], ..Objects::default() }).unwrap_err();
    assert!(refused.text.contains("'licence:solver'"), "{refused}");
    let licences = vec![Licence { name: "solver".into(), count: 9 }];
    apply(&mut world, Objects { accounts: vec![lab], licences, ..Objects::default() }).unwrap();
    let take = |uid| of(uid, in_account("lab", with_licence("solver", 1, job())));
    let (a, b, c) = (world.submit(take(1)), world.submit(take(1)), world.submit(take(2)));
    let (started, code, _) = reason(&mut world, b);
    assert_eq!((started.as_slice(), code), (&[a.0, c.0][..], ReasonCode::AssocGrpLicense));
}

#[test]
fn a_limit_of_zero_lets_nothing_through_and_bounds_nothing_else() {
    let mut world = World::new(1, 8);
    account(&mut world, "lab", None, "gpu=0", "");
    account(&mut world, "shut", None, "running=0", "");
    let (a, b) = (world.submit(in_account("lab", job())), world.submit(in_account("shut", job())));
    let (started, code, _) = reason(&mut world, b);
    assert_eq!((started.as_slice(), code), (&[a.0][..], ReasonCode::AssocGrpJobsLimit));
}

#[test]
fn a_plan_beyond_a_limit_is_dropped_whatever_the_policy_says() {
    let mut world = World::new(1, 8);
    account(&mut world, "lab", None, "running=1", "");
    let (a, b) = (world.submit(in_account("lab", job())), world.submit(in_account("lab", job())));
    let start = |job| {
        let amounts = Amounts::new().with(ResourceId::CPU, 1000);
        let part = AllocationPart { node: NodeId(0), tasks: 1, amounts, devices: smallvec![] };
        Start { job, allocation: Arc::new(Allocation { parts: smallvec![part] }) }
    };
    let groups = vec![
        Group { starts: vec![start(a), start(b)], ..Group::default() },
        Group { starts: vec![start(b)], ..Group::default() },
    ];
    let reply = world.run(Command::Plan { groups }).unwrap();
    assert_eq!(reply, Reply::Groups(vec![false, true]));
    let reply =
        world.run(Command::Plan { groups: vec![Group { starts: vec![start(a)], ..Group::default() }] }).unwrap();
    assert_eq!(reply, Reply::Groups(vec![false]));
}

#[test]
fn a_cycle_sees_pools_and_puts_back_what_it_rolls_back() {
    let mut world = World::new(1, 8);
    account(&mut world, "lab", None, "cpu=4000", "");
    licence(&mut world, "solver", 3);
    let ids: Vec<JobId> =
        (0..3).map(|_| world.submit(in_account("lab", with_licence("solver", 1, job().cpus(2))))).collect();
    let replica = Box::new(Replica::of(&world.state));
    let mut cycle = Cycle::begin(replica, world.state.clone(), world.now, 100_000, vec![Cause::Settings], Vec::new());
    let how = Placing::default();
    let rows = cycle.next(Scope::All, None, 10);
    let pools = cycle.rows("pools").unwrap();
    assert_eq!(pools, 2, "the cores of the account, and the licence");
    assert_eq!(cycle.ragged("jobs", "pools", &rows[..1]).unwrap(), (vec![2], vec![0, 1]));
    assert_eq!(cycle.ragged("jobs", "draws", &rows[..1]).unwrap(), (vec![2], vec![2000, 1]));
    let used = |cycle: &mut Cycle| cycle.column("pools", "used", None).unwrap();
    assert_eq!(cycle.column("pools", "ceiling", None).unwrap(), [4000, 3]);
    let savepoint = cycle.savepoint();
    let outcomes = cycle.start_in_order(&rows, &how, StopRule::FirstRefusal);
    assert_eq!(outcomes[..2], [Outcome::Started, Outcome::Started]);
    assert_eq!(outcomes[2], Outcome::Refused(CycleRefusal::Pool(0)));
    assert_eq!(used(&mut cycle), [4000, 2]);
    cycle.rollback(savepoint).unwrap();
    assert_eq!(used(&mut cycle), [0, 0]);
    assert_eq!(cycle.try_start(rows[2], None, &how), Ok(Outcome::Started));
    assert_eq!(used(&mut cycle), [2000, 1]);
    assert_eq!(cycle.abandon().pending(ids[2]).map(|p| p.licensed), Some(true));
}

#[test]
fn objects_that_make_no_sense_are_refused() {
    let mut world = World::new(1, 1);
    account(&mut world, "lab", None, "", "");
    account(&mut world, "team", Some("lab"), "", "");
    let ring = Account { name: "lab".into(), parent: Some("team".into()), ..Account::default() };
    let refused = apply(&mut world, Objects { accounts: vec![ring], ..Objects::default() }).unwrap_err();
    assert!(refused.text.contains("below itself"));
    let gone = world.run(Command::Delete { kind: ephor_core::command::ObjectKind::Account, name: "lab".into() });
    assert!(gone.unwrap_err().text.contains("'team' lies below"));
    let queue = Queue { name: "main".into(), default_qos: Some("none".into()), ..Queue::default() };
    let refused = apply(&mut world, Objects { queues: vec![(queue, None)], ..Objects::default() }).unwrap_err();
    assert!(refused.text.contains("QOS 'none'"));
    assert_eq!(pools::count_anew(&world.state).len(), 0);
}

#[test]
fn nothing_is_promised_to_a_job_that_waits_for_a_limit() {
    let mut world = World::new(1, 4);
    account(&mut world, "lab", None, "running=1", "");
    let ids: Vec<JobId> = (0..2).map(|_| world.submit(in_account("lab", job()))).collect();
    let other = world.submit(job().cpus(4));
    assert_eq!(world.cycle_by(&mut Conservative::default()), [ids[0].0]);
    let promised: Vec<JobId> = world.state.promises.keys().copied().collect();
    assert_eq!(promised, [other]);
    world.finish(ids[0], 0);
    // Now it starts, since it ends before what is promised to the other.
    assert_eq!(world.cycle_by(&mut Conservative::default()), [ids[1].0]);
}

/// A long queue of one user's jobs under one limit: the first refusal speaks for all that ask for the same, and for nobody
/// else; each job's user still hears once what stands against it.
#[test]
fn one_refusal_for_a_limit_speaks_for_all_that_ask_for_the_same() {
    let mut world = World::new(1, 8);
    qos(&mut world, Qos { name: "few".into(), per_user: limits("cpu=1000"), ..Qos::default() });
    let mine = || of(7, with_qos("few", job()));
    let ids: Vec<JobId> = (0..4).map(|_| world.submit(mine())).collect();
    let told = |world: &mut World| {
        let mut tried = Vec::new();
        let mut policy = By(|cycle: &mut Cycle| {
            while let [row] = cycle.next(Scope::Awake, tried.last().copied(), 1)[..] {
                let _ = cycle.try_start(row, None, &Placing::default());
                tried.push(row);
            }
        });
        let plan = world.scheduler.cycle(&world.state, world.now, 100_000, &mut policy).unwrap();
        let notes: Vec<(JobId, ReasonCode)> = plan.notes.iter().map(|(job, note)| (*job, note.code)).collect();
        let reply = world.run(Command::Plan { groups: plan.groups }).unwrap();
        let Reply::Groups(taken) = reply else { panic!("{reply:?}") };
        world.scheduler.committed(taken);
        world.scheduler.wake();
        (tried.len(), notes)
    };
    let full = ReasonCode::QOSMaxCpuPerUserLimit;
    assert_eq!(told(&mut world), (4, vec![(ids[1], full), (ids[2], full), (ids[3], full)]));
    assert_eq!(told(&mut world), (1, vec![(ids[1], full)]));
    // Another user's job starts, two cores are more than one, and who comes hears it.
    let other = world.submit(of(8, with_qos("few", job())));
    let wide = world.submit(of(7, with_qos("few", job().cpus(2))));
    let came = world.submit(mine());
    assert_eq!(told(&mut world), (4, vec![(ids[1], full), (wide, full), (came, full)]));
    assert_eq!(world.job_state(other), JobState::Configuring);
    world.begin(ids[0]);
    world.finish(ids[0], 0);
    told(&mut world);
    assert_eq!(world.job_state(ids[1]), JobState::Configuring);
}
