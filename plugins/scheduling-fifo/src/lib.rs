//! Strict order: jobs start in the order of the queue, and nothing overtakes the first one that cannot start yet.
//!
//! A job that can never run is passed over with a note for its user; it would block the queue for ever. One that waits
//! for a limit or a licence is passed over too. There is no configuration.

use ephor_sdk::NoConfig;
use ephor_sdk::scheduling::{Cycle, Outcome, Refusal, Scheduling, Scope, StopRule, lift_promises};

/// Jobs that the first window asks for; most cycles end within it.
const FIRST_WINDOW: u32 = 16;
/// Jobs that a window may grow to.
const LARGEST_WINDOW: u32 = 4_096;

/// The policy.
pub struct Fifo;

impl Scheduling for Fifo {
    type Config = NoConfig;

    fn schedule<C: Cycle>(cycle: &C, _config: &NoConfig) {
        // Promises of another policy that decided before would hold up the first job for ever.
        if lift_promises(cycle).is_err() {
            return;
        }
        let how = cycle.placing();
        let mut size = FIRST_WINDOW;
        let mut after = None;
        loop {
            let window = cycle.next(Scope::All, after, size);
            let Some(&last) = window.last() else { return };
            let outcomes = cycle.start_in_order(&window, &how, StopRule::FirstRefusal);
            for (&job, outcome) in window.iter().zip(&outcomes) {
                match outcome {
                    Outcome::Started | Outcome::Claimed | Outcome::Reserved(_) => {}
                    // A job that waits for a limit of its user, account or QOS stands in nobody's way.
                    Outcome::Refused(Refusal::Pool(_)) => {}
                    Outcome::Refused(Refusal::Never(why)) => {
                        // A note that finds no budget is lost; the host still knows the refusal.
                        let _ = cycle.note(job, why);
                    }
                    Outcome::Refused(Refusal::NotNow(_)) => {
                        // Who comes behind it starts no sooner. Where no budget is left, the next call comes all the same.
                        let _ = cycle.rest_until_room(Some(job));
                        return;
                    }
                    Outcome::Refused(_) | Outcome::Untried => return,
                }
            }
            after = Some(last);
            size = (size * 4).min(LARGEST_WINDOW);
        }
    }
}

ephor_sdk::policy!(Scheduling for Fifo { manifest: include_str!("../manifest.json") });
