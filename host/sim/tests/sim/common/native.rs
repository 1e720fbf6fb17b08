//! Backfill as plain Rust against the cycle, written apart from the policy: its twins in the tests.

use ephor_core::cycle::{Cause, Cycle, CycleRefusal, Keep, Outcome, Scope, StopRule};
use ephor_core::roles::{Fault, Scheduling};
use ephor_placement::Placing;

/// See the module. One job at a time, so that nothing is clever.
pub struct Easy;

impl Scheduling for Easy {
    fn schedule(&mut self, mut cycle: Box<Cycle>) -> (Box<Cycle>, Result<(), Fault>) {
        let how = Placing::default();
        let mut promised = false;
        let mut after = None;
        while let Some(row) = cycle.next(Scope::All, after, 1).first().copied() {
            after = Some(row);
            match cycle.try_start(row, None, &how) {
                Ok(_) | Err(CycleRefusal::Never(_) | CycleRefusal::Pool(_)) => continue,
                Err(CycleRefusal::NotNow(_)) if promised => continue,
                Err(CycleRefusal::NotNow(_)) => {
                    let now = cycle.now();
                    // Without a start in sight for the first one nobody may overtake it.
                    let Ok(slot) = cycle.earliest_start(row, None, &how, now) else { break };
                    cycle.reserve(&slot, Keep::ThisCycle).unwrap();
                    promised = true;
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        (cycle, Ok(()))
    }

    fn label(&self) -> String {
        "native EASY".into()
    }
}

/// Starts nothing.
pub struct Idle;

impl Scheduling for Idle {
    fn schedule(&mut self, cycle: Box<Cycle>) -> (Box<Cycle>, Result<(), Fault>) {
        (cycle, Ok(()))
    }

    fn label(&self) -> String {
        "idle".into()
    }
}

/// Like [`Easy`], but asks for whole windows at a time, as the policy does.
pub struct EasyByWindow;

impl Scheduling for EasyByWindow {
    fn schedule(&mut self, mut cycle: Box<Cycle>) -> (Box<Cycle>, Result<(), Fault>) {
        let how = Placing::default();
        let mut promised = false;
        let (mut after, mut size) = (None, 64);
        loop {
            let window = cycle.next(Scope::All, after, size);
            let Some(last) = window.last() else { break };
            after = Some(*last);
            size = 4096;
            let mut from = 0;
            while !promised && from < window.len() {
                let outcomes = cycle.start_in_order(&window[from..], &how, StopRule::FirstRefusal);
                let waits = |o: &Outcome| matches!(o, Outcome::Refused(CycleRefusal::NotNow(_)));
                match outcomes.iter().position(waits) {
                    None => from = window.len(),
                    Some(at) => {
                        let now = cycle.now();
                        let slot = cycle.earliest_start(window[from + at], None, &how, now).unwrap();
                        cycle.reserve(&slot, Keep::ThisCycle).unwrap();
                        promised = true;
                        from += at + 1;
                    }
                }
            }
            cycle.start_in_order(&window[from..], &how, StopRule::EndOfList);
        }
        (cycle, Ok(()))
    }

    fn label(&self) -> String {
        "native EASY by windows".into()
    }
}

/// Conservative backfill by the plainest operations: every promise is lifted, looked for and given again one by one.
pub struct Conservative;

impl Scheduling for Conservative {
    fn schedule(&mut self, mut cycle: Box<Cycle>) -> (Box<Cycle>, Result<(), Fault>) {
        let early = cycle.causes().contains(&Cause::ReleasedEarly);
        let (how, now) = (Placing::default(), cycle.now());
        let mut number_of = std::collections::BTreeMap::new();
        for (number, row) in (0..).zip(cycle.column("reservations", "job", None).unwrap()) {
            number_of.insert(row as u32, number);
        }
        for row in cycle.next(Scope::All, None, 10_000) {
            let promised = cycle.column("jobs", "promised", Some(&[row])).unwrap()[0];
            if promised > now.0 && !early {
                continue;
            }
            if let Some(number) = number_of.get(&row) {
                cycle.lift(*number).unwrap();
            }
            match cycle.earliest_start(row, None, &how, now) {
                Ok(slot) if slot.slot.start == now => {
                    assert_eq!(cycle.try_start(row, None, &how), Ok(Outcome::Started));
                }
                Ok(slot) => {
                    assert!(promised < 0 || slot.slot.start.0 <= promised, "a promise moved to a later time");
                    cycle.reserve(&slot, Keep::Durable).unwrap();
                }
                Err(CycleRefusal::Never(_)) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        (cycle, Ok(()))
    }

    fn label(&self) -> String {
        "native conservative".into()
    }
}
