//! Misbehaves in the role scheduling as its configuration says; else starts what fits, in order.

use ephor_sdk::Row;
use ephor_sdk::scheduling::{Afterwards, Cycle, Keep, Placing, Scheduling, Scope, StopRule};
use hostile_faults::{Config, FLOOD_BYTES, Fault, HUGE_STRING_BYTES, text};

/// The policy.
pub struct Hostile;

impl Scheduling for Hostile {
    type Config = Config;

    fn schedule<C: Cycle>(cycle: &C, config: &Config) {
        let how = cycle.placing();
        match config.strike("schedule", true) {
            Fault::Flood => {
                cycle.start_in_order(&vec![0; FLOOD_BYTES / size_of::<Row>()], &how, StopRule::EndOfList);
            }
            Fault::HugeString => huge_strings(cycle),
            Fault::WrongRows => wrong_rows(cycle, &how),
            Fault::DoubleStart => {
                for job in cycle.next(Scope::All, None, 100) {
                    let _ = cycle.try_start(job, None, &how);
                    let _ = cycle.try_start(job, None, &how);
                }
            }
            Fault::DuplicateIds => {
                for job in cycle.next(Scope::All, None, 10) {
                    cycle.start_in_order(&[job; 1_000], &how, StopRule::EndOfList);
                    let _ = how.rank_nodes(&[0; 1_000]);
                }
            }
            Fault::Savepoints => savepoints(cycle, &how),
            Fault::BurnWork => {
                for _ in 0..1_000_000 {
                    let _ = cycle.column("nodes", "free.cpu", None);
                    let _ = cycle.column("jobs", "cpu", None);
                }
            }
            _ => {
                let jobs = cycle.next(Scope::All, None, 10_000);
                cycle.start_in_order(&jobs, &how, StopRule::EndOfList);
            }
        }
    }
}

fn huge_strings<C: Cycle>(cycle: &C) {
    let huge = text(HUGE_STRING_BYTES);
    let _ = cycle.column(&huge, &huge, None);
    for job in cycle.next(Scope::All, None, 1) {
        let _ = cycle.note(job, &huge);
        let _ = cycle.hold(job, &huge);
    }
}

fn wrong_rows<C: Cycle>(cycle: &C, how: &C::Placing) {
    for row in [1_000_000, u32::MAX - 1, u32::MAX] {
        let _ = cycle.try_start(row, None, how);
        let _ = cycle.earliest_start(row, None, how, cycle.now()).map(|slot| cycle.reserve(&slot, Keep::ThisCycle));
        let _ = cycle.hold(row, "no such job");
        let _ = cycle.note(row, "no such job");
        let _ = cycle.evict(row, 0, Afterwards::Requeue, "no such attempt");
        let _ = cycle.re_place(row, how);
        let _ = cycle.report("queues", "fair.gpu", &[row], &[1, 2]);
        let _ = cycle.report("queues", "fair.gpu", &[row], &[1]);
        let _ = cycle.lift(row);
        let _ = cycle.column("jobs", "cpu", Some(&[row]));
        let _ = cycle.ragged("attempts", "on-nodes", &[row]);
        let _ = how.only_nodes(&[row]);
        cycle.next(Scope::Queue(row), Some(row), u32::MAX);
        cycle.start_in_order(&[row, row], how, StopRule::EndOfList);
    }
}

fn savepoints<C: Cycle>(cycle: &C, how: &C::Placing) {
    let _ = cycle.accept(7);
    let _ = cycle.rollback(u32::MAX);
    let outer = cycle.savepoint();
    let inner = cycle.savepoint();
    let _ = cycle.rollback(outer);
    let _ = cycle.accept(inner);
    cycle.savepoint();
    let jobs = cycle.next(Scope::All, None, 100);
    cycle.start_in_order(&jobs, how, StopRule::EndOfList);
}

ephor_sdk::policy!(Scheduling for Hostile { manifest: include_str!("../manifest.json") });
