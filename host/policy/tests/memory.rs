//! Faults leave no memory behind. Alone in its process: other tests' floods would be counted too.

mod common;

use common::*;
use ephor_core::FaultKind;
use ephor_core::roles::Priority;
use ephor_model::Role;

const ROUNDS: u64 = 17;

#[test]
fn faults_that_repeat_leave_no_memory_behind() {
    let Some(component) = hostile("priority") else { return };
    let role = Role::Priority;
    let faults = [("memory", FaultKind::Memory), ("flood", FaultKind::Output), ("trap", FaultKind::Trap)];
    let loaded = faults.map(|(fault, kind)| {
        (load_within(roomy(role), role, &component, &format!("{{\"fault\": \"{fault}\"}}")), kind)
    });
    let round = || {
        for (loaded, kind) in &loaded {
            assert_eq!(loaded.priority().unwrap().prioritize(batch(100)).unwrap_err().kind, *kind);
        }
    };
    round();
    let before = resident_mib();
    (0..ROUNDS).for_each(|_| round());
    let after = resident_mib();
    println!("resident: {before} MiB after 3 faults, {after} MiB after {}", 3 + 3 * ROUNDS);
    assert!(after < before + 50, "memory grew from {before} to {after} MiB");
    let stats = loaded[0].0.stats();
    assert_eq!((stats.calls, u64::from(stats.faults_in_a_row), stats.last_faults.len()), (ROUNDS + 1, ROUNDS + 1, 16));
}
