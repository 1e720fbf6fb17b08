//! EASY backfill: a promise for the first job that must wait, and what fits around it starts.
//!
//! Jobs start in the order of the queue until one must wait. That one gets the earliest start that there is, and the
//! capacity for it is kept free; then every job behind it, in order, starts if it delays no promise. With
//! `reservations` a site gives more jobs such a promise, worked out anew in each cycle; with `"all"` every job is
//! promised a start that lasts (conservative backfill). A job that can never run is passed over with a note for its
//! user, and one that waits for a limit or a licence without a promise. Where the site wants it, jobs of higher queues or
//! QOS make lower ones give way.

mod config;
mod conservative;
mod preempt;
mod quota;

use ephor_sdk::Row;
use ephor_sdk::scheduling::{Cause, Cycle, Keep, Outcome, Refusal, Scheduling, Scope, StopRule, lift_promises};

use quota::Quota;

pub use config::{Config, Preempt, PreemptMode, Reservations};

/// Jobs that the first window asks for. Most cycles of a short queue end within it.
const FIRST_WINDOW: u32 = 64;

/// Jobs that each window behind the promises asks for: the host leaves out of the next one what this one taught it, so that
/// of many alike few are handed over.
const WINDOW_BEHIND: u32 = 256;

/// The policy.
pub struct Backfill;

impl Scheduling for Backfill {
    type Config = Config;

    fn schedule<C: Cycle>(cycle: &C, config: &Config) {
        // Before anything is promised: who makes others give way has a start, and needs no promise.
        if preempt::pass(cycle, config).is_none() {
            return;
        }
        let Reservations::PerCycle(promises) = config.reservations else {
            conservative::pass(cycle, config);
            return;
        };
        // Those that lasted from another policy or configuration would be in everybody's way.
        if lift_promises(cycle).is_err() {
            return;
        }
        let mut plan = Plan {
            cycle,
            how: cycle.placing(),
            promises_left: promises,
            tries_left: if config.max_tested == 0 { u64::MAX } else { u64::from(config.max_tested) },
            quota: Quota::new(config.max_jobs_per_user, config.max_jobs_per_queue),
        };
        plan.run(config.window);
    }
}

/// A cycle under way.
struct Plan<'a, C: Cycle> {
    cycle: &'a C,
    how: C::Placing,
    promises_left: u32,
    tries_left: u64,
    quota: Quota,
}

impl<C: Cycle> Plan<'_, C> {
    /// Works through the queue, window by window. None: this cycle was over before its end.
    fn run(&mut self, largest_window: u32) -> Option<()> {
        // Where jobs came and nothing came free, those that waited before still do: behind the promises only the new
        // ones need a try, so that a long queue costs nothing when somebody submits.
        let only_arrivals = self.cycle.causes().iter().all(|cause| matches!(cause, Cause::Arrived(_)));
        let mut size = FIRST_WINDOW.min(largest_window);
        let mut scope = Scope::All;
        let mut after = None;
        loop {
            let window = self.cycle.next(scope, after, size);
            after = Some(*window.last()?);
            if scope == Scope::All {
                size = size.saturating_mul(4).min(largest_window);
            }
            let window = self.quota.admit(self.cycle, window).ok()?;
            let (promised, rest) = self.promise_in_order(&window)?;
            // Where users or queues count, everybody is counted, and once.
            if self.promises_left == 0 && scope == Scope::All && !self.quota.is_bound() {
                scope = if only_arrivals { Scope::Arrived } else { Scope::Awake };
                after = promised.or(after);
                size = WINDOW_BEHIND.min(largest_window);
                continue;
            }
            self.backfill(rest)?;
        }
    }

    /// Starts jobs in order and promises a start to those that must wait, as long as there are promises to give; the
    /// last job that got one, and the jobs that are left for backfilling.
    fn promise_in_order<'w>(&mut self, mut jobs: &'w [Row]) -> Option<(Option<Row>, &'w [Row])> {
        let mut promised = None;
        while self.promises_left > 0 && !jobs.is_empty() {
            let Some(at) = self.start_until_one_waits(jobs)? else { return Some((promised, &[])) };
            self.promise(jobs[at])?;
            promised = Some(jobs[at]);
            jobs = &jobs[at + 1..];
        }
        Some((promised, jobs))
    }

    /// Starts jobs in order; the position of the first that must wait.
    fn start_until_one_waits(&self, jobs: &[Row]) -> Option<Option<usize>> {
        let outcomes = self.cycle.start_in_order(jobs, &self.how, StopRule::FirstRefusal);
        for (at, outcome) in outcomes.iter().enumerate() {
            match outcome {
                Outcome::Started | Outcome::Claimed | Outcome::Reserved(_) => {}
                // No promise for a job that waits for a limit or a licence: when that lets it start, no node can tell.
                Outcome::Refused(Refusal::Pool(_)) => {}
                Outcome::Refused(Refusal::Never(why)) => self.note(jobs[at], why),
                Outcome::Refused(Refusal::NotNow(_)) => return Some(Some(at)),
                // Nothing may overtake a job that cannot be protected.
                Outcome::Refused(Refusal::Budget | Refusal::Other(_)) | Outcome::Untried => return None,
            }
        }
        Some(None)
    }

    /// Keeps the earliest start of a job free for it.
    fn promise(&mut self, job: Row) -> Option<()> {
        let slot = match self.cycle.earliest_start(job, None, &self.how, self.cycle.now()) {
            Ok(slot) => slot,
            Err(Refusal::Never(why)) => {
                self.note(job, &why);
                return Some(());
            }
            // Without a promise this job could be overtaken for ever: then strict order is what remains.
            Err(_) => return None,
        };
        self.cycle.reserve(&slot, Keep::ThisCycle).ok()?;
        self.promises_left -= 1;
        Some(())
    }

    /// Starts whatever delays no promise.
    fn backfill(&mut self, jobs: &[Row]) -> Option<()> {
        let bound = usize::try_from(self.tries_left).unwrap_or(usize::MAX).min(jobs.len());
        if bound == 0 {
            return (self.tries_left > 0).then_some(());
        }
        let outcomes = self.cycle.start_in_order(&jobs[..bound], &self.how, StopRule::EndOfList);
        self.tries_left -= bound as u64;
        for (&job, outcome) in jobs.iter().zip(&outcomes) {
            match outcome {
                Outcome::Refused(Refusal::Never(why)) => self.note(job, why),
                Outcome::Refused(Refusal::Budget) => return None,
                _ => {}
            }
        }
        Some(())
    }

    /// Tells the user of a job why it waits. A note that finds no budget is lost; the host still knows the refusal.
    fn note(&self, job: Row, why: &str) {
        let _ = self.cycle.note(job, why);
    }
}

ephor_sdk::policy!(Scheduling for Backfill { manifest: include_str!("../manifest.json") });
