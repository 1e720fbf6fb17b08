//! Policies that misbehave, in every role: each fault has its kind, stays within its bounds, and harms nothing else.

mod common;

use common::*;
use ephor_core::roles::{
    Accounting, Admission, Authentication, Credential, Intent, Peer, Permission, Priority, Target, Verdict,
};
use ephor_core::{Fault, FaultKind, State};
use ephor_model::{PolicyLimits, Role, Uid};
use ephor_policy::bounds::site_maxima;
use ephor_policy::{LoadError, Loaded};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PEER: Peer = Peer { uid: Uid(1000), gid: 1000, node: None };

/// Makes the first call of a role, and tells what became of it.
fn call(role: Role, loaded: &Loaded) -> Result<(), Fault> {
    match role {
        Role::Authentication => loaded.authentication()?.authenticate(NOW, &Credential::Local, &PEER).map(drop),
        Role::Admission => loaded.admission()?.admit(NOW, &alice(), &Intent::Submit, draft(), &view()).map(drop),
        Role::Priority => loaded.priority()?.prioritize(batch(100)).map(drop),
        Role::Scheduling => {
            let state = cluster(20);
            let (cycle, answer) = loaded.scheduling()?.schedule(cycle(&state));
            // Whatever happened, the cycle is back and whole: what it planned can be undone, and it can go on.
            drop(cycle.abandon());
            answer
        }
        Role::Accounting => loaded.accounting()?.charge(ended(100)).map(drop),
    }
}

fn config(fault: &str) -> String {
    format!(r#"{{"fault": "{fault}"}}"#)
}

#[test]
fn every_fault_of_every_role_is_contained_and_named() {
    for role in Role::ALL {
        let Some(component) = hostile(role.name()) else { continue };
        for (fault, kind, maxima) in [
            ("loop", FaultKind::Fuel, site_maxima(role)),
            ("memory", FaultKind::Memory, tight(role)),
            ("trap", FaultKind::Trap, site_maxima(role)),
            ("flood", FaultKind::Output, roomy(role)),
            ("deep-recursion", FaultKind::Trap, site_maxima(role)),
        ] {
            let loaded = load_within(maxima, role, &component, &config(fault));
            let began = Instant::now();
            let found = call(role, &loaded).expect_err(fault);
            let took = began.elapsed();
            println!("{role} {fault}: {took:?}: {found}");
            assert_eq!(found.kind, kind, "{role} {fault}: {found}");
            assert_eq!(found.policy, format!("{role} 'hostile-{role}' generation 7"));
            assert!(found.message.len() <= ephor_policy::bounds::FAULT_BYTES, "{role} {fault}");
            // Fuel of 50 million to a billion: about as many instructions. Generous, for a loaded machine.
            assert!(took < Duration::from_secs(20), "{role} {fault}: {took:?}");
            let stats = loaded.stats();
            assert_eq!((stats.calls, stats.faults.as_slice()), (1, &[(kind, 1)][..]));
            assert_eq!(stats.last_faults[0].fault, found);
            assert!(stats.max_fuel <= stats.last_budget);
        }
        let good = load(role, &component, "{}");
        call(role, &good).unwrap_or_else(|e| panic!("{role} behaves: {e}"));
        assert_eq!(good.stats().faults_in_a_row, 0);
    }
}

#[test]
fn a_trap_tells_where_and_what_the_guest_said() {
    let Some(component) = hostile("authentication") else { return };
    let fault = call(Role::Authentication, &load(Role::Authentication, &component, &config("trap"))).unwrap_err();
    assert!(fault.message.contains("this policy panics on purpose"), "{fault}");
    assert!(fault.message.contains("hostile"), "its own frames are named: {fault}");
    assert!(!fault.message.contains("_ZN") && !fault.message.contains("_RN"), "names are readable: {fault}");
}

#[test]
fn a_log_flood_costs_its_lines_and_nothing_else() {
    for role in Role::ALL {
        let Some(component) = hostile(role.name()) else { continue };
        let loaded = load(role, &component, &config("log-flood"));
        call(role, &loaded).unwrap_or_else(|e| panic!("{role}: {e}"));
        let dropped = loaded.stats().log_lines_dropped;
        assert!((100_000 - 64..100_000).contains(&dropped), "{role}: {dropped}");
    }
}

#[test]
fn values_that_make_no_sense_are_bad_values() {
    let Some(component) = hostile("authentication") else { return };
    for fault in ["huge-string", "wrong-values"] {
        let loaded = load(Role::Authentication, &component, &config(fault));
        assert_eq!(call(Role::Authentication, &loaded).unwrap_err().kind, FaultKind::BadValue, "{fault}");
    }
    let loaded = load(Role::Authentication, &component, r#"{"fault": "huge-string", "call": "authorize"}"#);
    let policy = loaded.authentication().unwrap();
    let fault = policy.authorize(NOW, &alice(), Permission::Submit, &Target::default()).unwrap_err();
    assert_eq!(fault.kind, FaultKind::BadValue);

    let Some(component) = hostile("priority") else { return };
    for fault in ["too-few", "too-many"] {
        let loaded = load(Role::Priority, &component, &config(fault));
        assert_eq!(call(Role::Priority, &loaded).unwrap_err().kind, FaultKind::BadValue, "{fault}");
    }
    let loaded = load(Role::Priority, &component, r#"{"fault": "huge-string", "call": "explain"}"#);
    assert_eq!(loaded.priority().unwrap().explain(batch(2), 1).unwrap_err().kind, FaultKind::BadValue);

    let Some(component) = hostile("accounting") else { return };
    for fault in ["too-few", "too-many", "wrong-values"] {
        let loaded = load(Role::Accounting, &component, &config(fault));
        assert_eq!(call(Role::Accounting, &loaded).unwrap_err().kind, FaultKind::BadValue, "{fault}");
    }
    let loaded = load(Role::Accounting, &component, r#"{"fault": "duplicate-ids", "call": "allowances"}"#);
    assert_eq!(loaded.accounting().unwrap().allowances(NOW).unwrap_err().kind, FaultKind::BadValue);
    let loaded = load(Role::Accounting, &component, r#"{"fault": "wrong-values", "call": "decay"}"#);
    assert_eq!(loaded.accounting().unwrap().decay().unwrap_err().kind, FaultKind::BadValue);
    let flood = r#"{"fault": "flood", "call": "allowances"}"#;
    let loaded = load_within(roomy(Role::Accounting), Role::Accounting, &component, flood);
    assert_eq!(loaded.accounting().unwrap().allowances(NOW).unwrap_err().kind, FaultKind::Output);
}

#[test]
fn admission_takes_no_value_out_of_range_and_nothing_of_a_job_that_it_refused() {
    let Some(component) = hostile("admission") else { return };
    let admit = |fault: &str| {
        let loaded = load(Role::Admission, &component, &config(fault));
        loaded.admission().unwrap().admit(NOW, &alice(), &Intent::Submit, draft(), &view())
    };
    let Verdict::Admit(after, _) = admit("wrong-values").unwrap() else { panic!("it admits") };
    let mut expected = draft();
    // The one change in that list that is none out of range: no account.
    expected.spec.account = String::new();
    assert_eq!(*after, expected);
    assert!(matches!(admit("change-then-refuse"), Ok(Verdict::Refuse(text)) if text.contains("refuses it")));
    assert_eq!(admit("change-then-trap").unwrap_err().kind, FaultKind::Trap);
    assert_eq!(admit("huge-string").unwrap_err().kind, FaultKind::BadValue);
}

#[test]
fn scheduling_shrugs_off_wrong_rows_and_plans_nothing_twice() {
    let Some(component) = hostile("scheduling") else { return };
    let state = cluster(20);
    let plan = |fault: &str, state: &State| {
        let maxima = PolicyLimits { output_bytes: 64 << 20, ..roomy(Role::Scheduling) };
        let loaded = load_within(maxima, Role::Scheduling, &component, &config(fault));
        let (cycle, answer) = loaded.scheduling().unwrap().schedule(cycle_with_work(state, 1_000_000));
        answer.unwrap_or_else(|e| panic!("{fault}: {e}"));
        let (_, plan) = cycle.finish();
        let mut jobs: Vec<_> = plan.groups.iter().flat_map(|g| &g.starts).map(|s| s.job).collect();
        let planned = jobs.len();
        jobs.sort();
        jobs.dedup();
        assert_eq!(jobs.len(), planned, "{fault}: a job is started twice");
        planned
    };
    assert_eq!(plan("none", &state), 8, "eight cores, one for each");
    assert_eq!(plan("wrong-rows", &state), 0);
    assert_eq!(plan("double-start", &state), 8);
    assert_eq!(plan("duplicate-ids", &state), 8);
    plan("savepoints", &state);
    plan("huge-string", &state);
    let began = Instant::now();
    plan("burn-work", &state);
    println!("burn-work: {:?}", began.elapsed());
}

#[test]
fn what_does_not_start_is_refused_before_it_decides_anything() {
    for name in ["start-loop", "start-bomb"] {
        let Some(component) = hostile(name) else { continue };
        let began = Instant::now();
        let error = prepare_within(tight(Role::Scheduling), Role::Scheduling, &component, "{}").err().unwrap();
        println!("{name}: {:?}: {error}", began.elapsed());
        let LoadError::Start { why, .. } = &error else { panic!("{error}") };
        let word = if name == "start-loop" { "fuel" } else { "memory" };
        assert!(why.contains(word), "{error}");
    }
}

#[test]
fn other_calls_go_on_while_hostile_ones_run() {
    let (Some(bad), Some(good)) = (hostile("authentication"), plugin("auth-local")) else { return };
    let bad = load(Role::Authentication, &bad, &config("loop"));
    let good = load(Role::Authentication, &good, r#"{"allow_unknown": true}"#);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = call(Role::Authentication, &bad);
                }
            });
        }
        let mut worst = Duration::ZERO;
        for _ in 0..200 {
            let began = Instant::now();
            call(Role::Authentication, &good).unwrap();
            worst = worst.max(began.elapsed());
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        println!("worst call beside two endless loops: {worst:?}");
    });
}
