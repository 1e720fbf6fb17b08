//! Limits for the model test: set up, changed on the way, and counted by other means than those of the core.

use crate::support::{TestJob, World};
use ephor_core::command::{NodeChoice, Objects, ReservationWish};
use ephor_core::{Command, Job, pools};
use ephor_model::{
    Account, Allocation, JobId, Licence, Owner, Qos, Reservation, ResourceId, Span, Timestamp, Uid, UseLimits, User,
};

/// Limits that stay as they are, so that they may never be passed.
const LAB_CPU: i64 = 7_000;
const LAB_USER_RUNNING: usize = 3;
const LAB_SUBMITTED: usize = 12;
const HIGH_USER_CPU: i64 = 3_000;
const HIGH_ACCOUNT_MINUTES: i64 = 360_000;
const SOLVERS: u32 = 3;

pub fn set_up(world: &mut World) {
    let in_use = |name: &str, most| UseLimits { in_use: [(name.to_owned(), most)].into(), ..UseLimits::default() };
    let lab = Account {
        name: "lab".into(),
        limits: UseLimits { submitted: Some(LAB_SUBMITTED as u32), ..in_use("cpu", LAB_CPU) },
        per_user: UseLimits { running: Some(LAB_USER_RUNNING as u32), ..UseLimits::default() },
        ..Account::default()
    };
    let team = Account { name: "team".into(), parent: Some("lab".into()), ..Account::default() };
    let high = Qos {
        name: "high".into(),
        per_user: in_use("cpu", HIGH_USER_CPU),
        per_account: UseLimits { minutes: [("cpu".into(), HIGH_ACCOUNT_MINUTES)].into(), ..UseLimits::default() },
        ..Qos::default()
    };
    let licences = vec![Licence { name: "solver".into(), count: SOLVERS }];
    let objects = Objects { accounts: vec![lab, team], qos: vec![high], licences, ..Objects::default() };
    world.run(Command::Apply(objects)).unwrap();
}

/// Says who submits, for which account, with which QOS and licences.
pub fn sign(job: &mut TestJob, whose: u16) {
    let uid = u32::from(whose % 3);
    job.0.owner = Owner { uid: Uid(uid), gid: 1, name: format!("u{uid}") };
    job.0.account = ["default", "lab", "team", "team"][usize::from(whose / 3 % 4)].into();
    job.0.qos = (whose & 64 != 0).then(|| "high".to_owned());
    if whose & 128 != 0 {
        job.0.licences.push(("solver".into(), 1 + u32::from(whose & 1)));
    }
    job.0.reservation = (whose & 0x700 == 0).then(|| "r1".to_owned());
}

/// Sets a node aside, for a user or for maintenance, in place of what was made so for that user before.
pub fn reserve(world: &mut World, node: u8, user: u8, start: u16, length: u16) {
    let start = Timestamp(world.now.0 + i64::from(start) * 50);
    let is = Reservation {
        name: format!("r{user}"),
        start,
        // Longer than the hour that jobs ask for, or shorter.
        end: Timestamp(start.0 + 3_000_000 + i64::from(length) * 50),
        nodes: Vec::new(),
        users: if user == 0 { Vec::new() } else { vec![format!("u{user}")] },
        accounts: Vec::new(),
        maintenance: user == 0,
        ignore_running: true,
        description: String::new(),
    };
    let nodes = NodeChoice::Named(vec![format!("n{}", node % 3)]);
    let objects = Objects { reservations: vec![ReservationWish { is, nodes }], ..Objects::default() };
    // One that lies over another is refused.
    let _ = world.run(Command::Apply(objects));
}

/// What just started runs into no reservation but its own, and that it does not leave.
pub fn check_start(world: &World, id: JobId) {
    let attempt = world.state.attempts.get(&id).unwrap();
    let own = &world.state.element(id).unwrap().0.job.spec.reservation;
    for reservation in world.state.reservations.values() {
        let is_own = own.as_ref() == Some(&reservation.name);
        let meets = attempt.started < reservation.end && reservation.start < attempt.expected_end;
        for part in &attempt.allocation.parts {
            let on_it = reservation.nodes.contains(&part.node);
            assert!(!(meets && on_it) || is_own, "job {id} runs into {reservation:?}");
            assert!(!is_own || on_it, "job {id} runs outside {reservation:?}");
        }
        let within = reservation.start <= attempt.started && attempt.expected_end <= reservation.end;
        assert!(!is_own || within, "job {id} does not keep to the time of {reservation:?}");
    }
}

/// Changes a limit that is not among those that are checked, or moves an account in the tree and back.
pub fn change(world: &mut World, what: u8, most: u8) {
    let limits = UseLimits { running: (most > 0).then_some(u32::from(most)), ..UseLimits::default() };
    let mut objects = Objects::default();
    match what % 3 {
        0 => {
            let default = Account { name: "default".into(), limits, ..Account::default() };
            objects.accounts.push(default);
        }
        1 => objects.users.push(User { uid: Uid(1), name: "u1".into(), limits, ..User::default() }),
        _ => {
            let team = Account { name: "team".into(), parent: Some("lab".into()), limits, ..Account::default() };
            objects.accounts.push(team);
        }
    }
    world.run(Command::Apply(objects)).unwrap();
}

/// The kept counters are those that counting anew gives, and nothing that runs passes a limit.
pub fn check(world: &World) {
    let kept: std::collections::BTreeMap<_, _> =
        world.state.derived.pools.iter().map(|(scope, u)| (*scope, u.clone())).collect();
    assert_eq!(kept, pools::count_anew(&world.state));
    let running: Vec<(&Job, &Allocation)> = world
        .state
        .attempts
        .values()
        .map(|a| (&*world.state.element(a.key.job).unwrap().0.job, &*a.allocation))
        .collect();
    let cpu = |which: &dyn Fn(&Job) -> bool| -> i64 {
        running.iter().filter(|(j, _)| which(j)).map(|(_, a)| a.total().get(ResourceId::CPU)).sum()
    };
    let lab = |job: &Job| matches!(job.spec.account.as_str(), "lab" | "team");
    let high = |job: &Job| job.spec.qos.is_some();
    assert!(cpu(&lab) <= LAB_CPU);
    for uid in 0..3 {
        let own = |job: &Job| job.spec.owner.uid == Uid(uid);
        assert!(running.iter().filter(|(j, _)| lab(j) && own(j)).count() <= LAB_USER_RUNNING);
        assert!(cpu(&|job| high(job) && own(job)) <= HIGH_USER_CPU);
    }
    for account in ["default", "lab", "team"] {
        // Every job of the test asks for an hour.
        assert!(cpu(&|job| high(job) && job.spec.account == account) * 60 <= HIGH_ACCOUNT_MINUTES);
    }
    let solvers: u32 = running.iter().flat_map(|(j, _)| &j.spec.licences).map(|(_, n)| n).sum();
    assert!(solvers <= SOLVERS);
    let live = |entry: &ephor_core::records::JobEntry| entry.elements.iter().filter(|e| !e.state.is_final()).count();
    let submitted: usize = world.state.jobs.values().filter(|e| lab(&e.job)).map(|e| live(e)).sum();
    assert!(submitted <= LAB_SUBMITTED);
    assert!(running.iter().all(|(j, _)| j.spec.time_limit == Some(Span::minutes(60))));
}
