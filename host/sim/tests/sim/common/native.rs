//! EASY backfill as plain Rust against the cycle, written apart from the policy: its twin in the tests.

use ephor_core::cycle::{Cycle, CycleRefusal, Keep, Outcome, Scope, StopRule};
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
                Ok(_) | Err(CycleRefusal::Never(_)) => continue,
                Err(CycleRefusal::NotNow(_)) if promised => continue,
                Err(CycleRefusal::NotNow(_)) => {
                    let now = cycle.now();
                    let slot = cycle.earliest_start(row, None, &how, now).unwrap();
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
