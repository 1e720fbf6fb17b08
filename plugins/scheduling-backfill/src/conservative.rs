//! Conservative backfill: every job is promised a start when it comes, and nothing that comes later delays it.
//!
//! Promises outlive the cycle. When capacity comes free earlier than expected, each waiting job, in the order of the
//! queue, is lifted out and placed again at the earliest start, never later than before.

use ephor_sdk::Row;
use ephor_sdk::scheduling::{Cause, Cycle, Keep, Outcome, Refusal, Scope};

use crate::config::Config;
use crate::quota::Quota;

/// Jobs that the first window asks for.
const FIRST_WINDOW: u32 = 64;

/// One pass. None: it was over before its end.
pub fn pass<C: Cycle>(cycle: &C, config: &Config) -> Option<()> {
    let causes = cycle.causes();
    let only_arrivals = causes.iter().all(|cause| matches!(cause, Cause::Arrived(_)));
    // What ends when it was expected to was counted on: only something else can open an earlier start.
    let anew = causes.iter().any(|cause| !matches!(cause, Cause::Arrived(_) | Cause::Released));
    let mut quota = Quota::new(config.max_jobs_per_user, config.max_jobs_per_queue);
    let bound = quota.is_bound();
    let mut pass = Pass { cycle, how: cycle.placing(), largest_window: config.window };
    if only_arrivals || bound {
        // A promise is kept whoever else was looked at before.
        pass.walk(Scope::Due, false, &mut Quota::new(0, 0))?;
    }
    if only_arrivals && !bound {
        return pass.walk(Scope::Arrived, false, &mut quota);
    }
    pass.walk(Scope::All, anew, &mut quota)
}

struct Pass<'a, C: Cycle> {
    cycle: &'a C,
    how: C::Placing,
    largest_window: u32,
}

impl<C: Cycle> Pass<'_, C> {
    /// Starts or promises every job of that scope within the quota, in order.
    fn walk(&mut self, scope: Scope, anew: bool, quota: &mut Quota) -> Option<()> {
        let mut size = FIRST_WINDOW.min(self.largest_window);
        let mut after = None;
        loop {
            let window = self.cycle.next(scope, after, size);
            let Some(&last) = window.last() else { return Some(()) };
            let full = window.len() as u32 >= size;
            self.place(&quota.admit(self.cycle, window).ok()?, anew)?;
            if !full {
                return Some(());
            }
            after = Some(last);
            size = size.saturating_mul(4).min(self.largest_window);
        }
    }

    fn place(&self, jobs: &[Row], anew: bool) -> Option<()> {
        if jobs.is_empty() {
            return Some(());
        }
        let outcomes = self.cycle.start_or_reserve(jobs, &self.how, Keep::Durable, anew);
        for (&job, outcome) in jobs.iter().zip(&outcomes) {
            match outcome {
                // A note that finds no budget is lost; the host still knows the refusal.
                Outcome::Refused(Refusal::Never(why)) => drop(self.cycle.note(job, why)),
                // Nothing may overtake a job that could not be protected.
                Outcome::Refused(Refusal::Budget | Refusal::Other(_)) | Outcome::Untried => return None,
                _ => {}
            }
        }
        Some(())
    }
}
