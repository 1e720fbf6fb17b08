//! Who gives way in a cycle, and who takes over what is released.

use super::plan::Change;
use super::promises::Held;
use super::{Cycle, CycleRefusal, Outcome, Wanted};
use crate::eviction::Eviction;
use crate::pools::{Draw, granted};
use crate::records::Attempt;
use crate::replica::Rank;
use ephor_model::{JobId, ReasonCode, Span, Timestamp, limits};
use ephor_placement::Placing;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What becomes of the job of an evicted attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afterwards {
    /// It waits again, if its user lets it run twice; else it is cancelled.
    Requeue,
    /// It is cancelled.
    Cancel,
}

impl Cycle {
    /// Makes a running attempt give way: see `wit/scheduling`.
    ///
    /// # Errors
    /// The row is not there, the attempt was told to end before, the grace is out of range or the reason is empty; too
    /// little work left.
    pub fn evict(&mut self, row: u32, grace: Span, then: Afterwards, why: &str) -> Result<(), CycleRefusal> {
        let other = |text: &str| Err(CycleRefusal::Other(text.into()));
        self.spend(1)?;
        let attempt = self.attempt(row)?.clone();
        let job = attempt.key.job;
        if attempt.told_to_end().is_some() || self.evicted.contains_key(&job) {
            return other("that attempt was told to end already");
        }
        if !(0..=limits::EVICTION_GRACE_MS).contains(&grace.0) {
            return other("a grace is between nothing and a day");
        }
        if why.trim().is_empty() {
            return other("an eviction needs a reason that its user can read");
        }
        let release = (self.now + Span(grace.0.max(1))).min(attempt.expected_end.max(self.now + Span(1)));
        self.owe(&attempt);
        self.replica.cluster.retime(job, release);
        let eviction = Eviction { why: why.into(), grace, requeue: then == Afterwards::Requeue };
        let eviction = Arc::new(eviction);
        self.evicted.insert(job, (release, eviction.clone()));
        self.plan(job, Change::Evict(attempt.key, eviction));
        Ok(())
    }

    /// Lets the job of an attempt that this cycle evicted claim its next start.
    ///
    /// # Errors
    /// This cycle did not evict it, or its job will not wait again; there is no room for it as far as releases are known.
    pub fn re_place(&mut self, row: u32, how: &Placing) -> Result<Outcome, CycleRefusal> {
        self.spend(1)?;
        let job = self.attempt(row)?.key.job;
        let Some((release, eviction)) = self.evicted.get(&job).cloned() else {
            return Err(CycleRefusal::Other("this cycle did not evict that attempt".into()));
        };
        if !self.state.would_run_again(job, &eviction) {
            return Err(CycleRefusal::Other("the job of that attempt does not run again".into()));
        }
        let found = self.state.element(job).map(|(entry, _)| entry.job.clone());
        let class = found.as_ref().and_then(|found| self.replica.class_of(found, &self.state));
        let (Some(found), Some(class)) = (found, class) else {
            return Err(CycleRefusal::Other("the job of that attempt is gone".into()));
        };
        if found.spec.reservation.is_some() {
            return Err(CycleRefusal::Other("a job inside a reservation is not moved".into()));
        }
        let limit = found.spec.time_limit.unwrap_or(Span(i64::MAX));
        let wanted = Wanted { job, class, limit, throttle: None, inside: None };
        self.claim_from(&wanted, release, how)
    }

    /// Claims what is being released for a job that does not fit now.
    ///
    /// # Errors
    /// `refusal`, where that is not allowed or not enough; other ones as they come.
    pub(super) fn claim_or(
        &mut self,
        wanted: &Wanted,
        how: &Placing,
        refusal: CycleRefusal,
    ) -> Result<Outcome, CycleRefusal> {
        let allowed = how.may_claim && wanted.inside.is_none();
        let Some(by) = self.last_release().filter(|_| allowed) else { return Err(refusal) };
        if let Some((array, most)) = wanted.throttle {
            self.below_throttle(array, most, self.promised_elements(array, wanted.job))?;
        }
        // Limits have room again when everything was given back, nodes may have it earlier.
        let from = if matches!(refusal, CycleRefusal::Pool(_)) { by } else { self.now };
        match self.claim_from(wanted, from, how) {
            Err(CycleRefusal::NotNow(_)) => Err(refusal),
            other => other,
        }
    }

    fn claim_from(&mut self, wanted: &Wanted, from: Timestamp, how: &Placing) -> Result<Outcome, CycleRefusal> {
        let Wanted { job, class, limit, .. } = *wanted;
        let Some(by) = self.last_release() else {
            return Err(CycleRefusal::NotNow("nothing is being released".into()));
        };
        self.room_for_promise()?;
        let mark = self.replica.cluster.savepoint();
        self.lift_own(job);
        let found = self.replica.cluster.start_between(class, (from, by), limit, how, &mut self.work);
        let drawn = found.map_err(CycleRefusal::from).and_then(|slot| {
            self.draw_soon(job, &slot.allocation)?;
            Ok(slot)
        });
        let slot = match drawn {
            Ok(slot) => slot,
            Err(refusal) => {
                self.replica.cluster.rollback(mark);
                return Err(refusal);
            }
        };
        self.keep_claim(job, &slot);
        self.gone.insert(job);
        let text = "it takes over what others were told to release".into();
        self.note_for(job, ReasonCode::Resources, text, Some(slot.start));
        Ok(Outcome::Claimed)
    }

    /// When the last of what is being released comes free, as far as it is counted on.
    pub(super) fn last_release(&self) -> Option<Timestamp> {
        let before = self.replica.releasing().values().copied().filter(|release| *release < Timestamp::NEVER);
        let here = self.evicted.values().map(|(release, _)| *release);
        before.chain(here).map(|release| release.max(self.now + Span(1))).max()
    }

    /// Starts the jobs whose claims have room by now, before a policy is asked; the others keep out of its sight.
    pub(super) fn honour_claims(&mut self) {
        let claims: Vec<JobId> = self.replica.promises.claims().iter().copied().collect();
        if claims.is_empty() {
            return;
        }
        let releasing: Vec<JobId> = self.replica.releasing().keys().copied().collect();
        for job in releasing {
            if let Some(attempt) = self.state.attempts.get(&job).cloned() {
                self.owe(&attempt);
            }
        }
        let mut waiting = Vec::new();
        for job in claims {
            // What came to nothing was lifted before.
            let Some(held) = self.promise_of(job) else { continue };
            if !self.honour(job, &held) {
                waiting.push((job, held));
            }
        }
        for (job, held) in waiting {
            self.gone.insert(job);
            // Whoever comes later finds the limits as the claims will leave them.
            let _ = self.draw_soon(job, &held.allocation);
        }
    }

    /// Whether a claim has room now: then its job starts.
    fn honour(&mut self, job: JobId, held: &Held) -> bool {
        if self.replica.pending(job).is_none() {
            return false;
        }
        let mark = self.replica.cluster.savepoint();
        self.replica.cluster.lift(held.reservation);
        let placed = match self.replica.cluster.holds_now(&held.allocation) {
            true => self.start_claimed(job, held),
            false => Ok(false),
        };
        if placed != Ok(true) {
            self.replica.cluster.rollback(mark);
        }
        placed == Ok(true)
    }

    /// Starts a job on what it claimed, which is not held for it any more.
    fn start_claimed(&mut self, job: JobId, held: &Held) -> Result<bool, CycleRefusal> {
        let wanted = self.wanted(job)?;
        if let Some((array, most)) = wanted.throttle {
            self.below_throttle(array, most, 0)?;
        }
        self.pools_with_room(job)?;
        let Some(allocation) = self.start_as_promised(&wanted, held)? else { return Ok(false) };
        self.draw(job, &allocation)?;
        self.own_is_over(job);
        self.note_start(&wanted, allocation);
        Ok(true)
    }

    /// The first `most` of those that have room already behind that rank, and how many were looked at.
    pub(super) fn placed_after(&self, after: Option<Rank>, most: usize) -> (Vec<JobId>, u64) {
        let placed = self.gone.iter().filter(|job| self.has_room(**job));
        let ranks = placed.filter_map(|job| Some(self.replica.pending(*job)?.rank));
        let found: BTreeSet<Rank> = ranks.filter(|rank| after.is_none_or(|after| *rank > after)).collect();
        (found.into_iter().take(most).map(|rank| rank.3).collect(), self.gone.len() as u64)
    }

    /// Whether this cycle started a job, or it has a claim.
    fn has_room(&self, job: JobId) -> bool {
        self.planned_start(job).is_some() || self.promise_of(job).is_some_and(|held| held.claim)
    }

    /// What an attempt holds of limits and licences will be given back.
    fn owe(&mut self, attempt: &Attempt) {
        let Some((entry, _)) = self.state.element(attempt.key.job) else { return };
        let job = entry.job.clone();
        let rows = self.book.rows_of_job(&self.state, &job);
        self.book.owe(&rows, &Draw::held(&job, &attempt.allocation, granted(attempt)));
    }
}
