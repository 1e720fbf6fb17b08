//! Instances that were made ahead: they decide what any other decides, at the same cost, and never use up the pool.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may its helpers")]

mod common;

use common::*;
use ephor_core::roles::{Admission, Authentication, Intent, Verdict};
use ephor_core::roles::{Permission, Priority, Target};
use ephor_model::{Role, Uid};
use ephor_policy::{Loaded, Surface};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Calls until so many found an instance that was made ahead.
fn call_until_ahead(loaded: &Loaded, calls: u64, call: impl Fn()) {
    let until = Instant::now() + Duration::from_secs(60);
    while loaded.stats().ahead < calls {
        assert!(Instant::now() < until, "no instance was made ahead: {:?}", loaded.stats());
        call();
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn they_decide_the_same_for_the_same_fuel() {
    let Some(component) = plugin("priority-multifactor") else { return };
    let loaded = load(Role::Priority, &component, "{}");
    let policy = loaded.priority().unwrap();
    let first = policy.prioritize(batch(100)).unwrap();
    let fuel = loaded.stats().max_fuel;
    assert_eq!(loaded.stats().ahead, 0);
    call_until_ahead(&loaded, 20, || assert_eq!(policy.prioritize(batch(100)).unwrap(), first));
    let stats = loaded.stats();
    assert_eq!((stats.max_fuel, stats.mean_fuel), (fuel, fuel));
}

#[test]
fn nothing_of_one_call_is_left_to_the_next() {
    let Some(component) = plugin("admission-defaults") else { return };
    let loaded = load(Role::Admission, &component, "{}");
    let policy = loaded.admission().unwrap();
    let admit = |name: &str| {
        let mut draft = draft();
        draft.spec.name = name.to_owned();
        match policy.admit(NOW, &alice(), &Intent::Submit, draft, &view()).unwrap() {
            Verdict::Admit(draft, _) => assert_eq!(draft.spec.name, name),
            Verdict::Refuse(why) => panic!("{why}"),
        }
    };
    let names = ["a", "b", "c", "d", "e"];
    call_until_ahead(&loaded, 20, || names.iter().for_each(|name| admit(name)));
}

#[test]
fn what_runs_code_at_its_start_is_told_from_what_does_not() {
    let starts = |component: Option<Vec<u8>>| component.map(|c| Surface::read(&c).unwrap().runs_at_start);
    assert_ne!(starts(hostile("start-loop")), Some(false));
    for name in ["auth-local", "admission-defaults", "priority-multifactor", "scheduling-backfill", "accounting-tres"] {
        assert_ne!(starts(plugin(name)), Some(true), "{name}");
    }
}

#[test]
fn many_generations_called_at_once_find_room_in_the_pool() {
    let Some(component) = plugin("auth-local") else { return };
    let all: Vec<Arc<Loaded>> = (0..24).map(|_| load(Role::Authentication, &component, "{}")).collect();
    let target = Target { owner: Some(Uid(1000)), name: "1".into() };
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                for loaded in all.iter().cycle().take(240) {
                    let policy = loaded.authentication().unwrap();
                    policy.authorize(NOW, &alice(), Permission::JobWrite, &target).unwrap().unwrap();
                }
            });
        }
    });
    assert!(all.iter().map(|loaded| loaded.stats().ahead).sum::<u64>() > 0);
}
