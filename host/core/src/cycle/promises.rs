//! Capacity that is kept for later: for this cycle only, or promised until the job starts.

use super::plan::Change;
use super::{Cycle, CycleRefusal, CycleSlot, Keep, Outcome, Wanted};
use crate::promise::LiftCause;
use crate::records::Job;
use crate::reservations;
use ephor_model::{Allocation, JobId, ReasonCode, Span, Timestamp, limits};
use ephor_placement::{NoFit, Placing, ReservationId, Slot};
use std::sync::Arc;

/// What is kept for a job.
#[derive(Clone)]
pub(super) struct Held {
    pub reservation: ReservationId,
    pub start: Timestamp,
    pub until: Timestamp,
    pub allocation: Arc<Allocation>,
    /// It counts on what is being released.
    pub claim: bool,
}

/// What a number of a reservation stands for.
#[derive(Clone)]
pub(super) enum Numbered {
    /// Kept until the cycle ends.
    ThisCycle(JobId, Held),
    /// The promise of that job, whatever it is by now.
    Promise(JobId),
    /// Given up.
    Lifted,
}

impl Held {
    fn of(reservation: ReservationId, slot: &Slot) -> Self {
        let until = slot.start + Span(slot.duration.0.max(1));
        Self { reservation, start: slot.start, until, allocation: slot.allocation.clone(), claim: false }
    }
}

impl Cycle {
    /// Gives up the promises that nothing will come of.
    pub(super) fn lift_stale(&mut self) {
        for job in self.replica.stale_promises(self.now) {
            self.lift_promise(job, LiftCause::Expired);
        }
    }

    /// The promise of a job as this cycle left it.
    pub(super) fn promise_of(&self, job: JobId) -> Option<Held> {
        if let Some(changed) = self.promised.get(&job) {
            return changed.clone();
        }
        self.replica.promises.get(job).map(|kept| Held {
            reservation: kept.reservation,
            start: kept.promise.start,
            until: kept.promise.until,
            allocation: kept.promise.allocation.clone(),
            claim: kept.promise.claim,
        })
    }

    /// The start that is promised to a job.
    pub fn promised_start(&self, job: JobId) -> Option<Timestamp> {
        self.promise_of(job).map(|held| held.start)
    }

    /// Makes room for a job's own start: what is promised to it must not stand in its way. False: nothing was.
    pub(super) fn lift_own(&mut self, job: JobId) -> bool {
        self.promise_of(job).is_some_and(|held| self.replica.cluster.lift(held.reservation))
    }

    /// The start of a job ended its promise.
    pub(super) fn own_is_over(&mut self, job: JobId) {
        let start = self.promised_start(job);
        self.promised.insert(job, None);
        self.no_longer_kept(start);
    }

    /// What was kept from that time on may be just what a class needs that was refused.
    fn no_longer_kept(&mut self, start: Option<Timestamp>) {
        self.refused.clear();
        if start.is_some_and(|start| start <= self.now) {
            self.replica.unpark_all();
        }
    }

    /// Keeps a slot free for its job.
    ///
    /// # Errors
    /// The job does not wait any more; there are too many promises; for a promise: something was placed there since the
    /// slot was found.
    pub fn reserve(&mut self, slot: &CycleSlot, keep: Keep) -> Result<u32, CycleRefusal> {
        self.spend(1)?;
        self.keeps_now |= slot.slot.start <= self.now;
        match keep {
            Keep::ThisCycle => Ok(self.keep_this_cycle(slot.job, &slot.slot)),
            Keep::Durable => {
                if self.gone.contains(&slot.job) || self.replica.pending(slot.job).is_none() {
                    return Err(CycleRefusal::Other("that job does not wait any more".into()));
                }
                self.room_for_promise()?;
                let mark = self.replica.cluster.savepoint();
                self.lift_own(slot.job);
                if !self.replica.cluster.is_free(&slot.slot) {
                    self.replica.cluster.rollback(mark);
                    return Err(CycleRefusal::NotNow("something was placed there since the slot was found".into()));
                }
                self.keep_for_good(slot.job, &slot.slot);
                Ok(self.number_of(slot.job))
            }
        }
    }

    /// Gives a reservation up.
    ///
    /// # Errors
    /// It is not there.
    pub fn lift(&mut self, reservation: u32) -> Result<(), CycleRefusal> {
        let missing = || CycleRefusal::Other(format!("there is no reservation {reservation}"));
        self.list_promises();
        let entry = self.reservations.get_mut(reservation as usize).ok_or_else(missing)?;
        match entry.clone() {
            Numbered::ThisCycle(_, held) => {
                *entry = Numbered::Lifted;
                self.replica.cluster.lift(held.reservation);
                self.no_longer_kept(Some(held.start));
                Ok(())
            }
            Numbered::Promise(job) if self.promise_of(job).is_some_and(|held| held.claim) => {
                Err(CycleRefusal::Other("a claim stands until its job starts or it expires".into()))
            }
            Numbered::Promise(job) if self.lift_promise(job, LiftCause::Policy) => Ok(()),
            Numbered::Promise(_) | Numbered::Lifted => Err(missing()),
        }
    }

    /// Gives up every promise, of this cycle and before.
    pub fn lift_all(&mut self) {
        self.list_promises();
        for number in 0..self.reservations.len() as u32 {
            // One that was lifted before is what was wanted.
            let _ = self.lift(number);
        }
    }

    fn lift_promise(&mut self, job: JobId, why: LiftCause) -> bool {
        let lifted = self.lift_own(job);
        if lifted {
            self.own_is_over(job);
            self.plan(job, Change::Lift(why));
        }
        lifted
    }

    /// For each job, in this order: starts it, or keeps its earliest start for it.
    pub fn start_or_reserve(&mut self, rows: &[u32], how: &Placing, keep: Keep, anew: bool) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(rows.len());
        for row in rows {
            let outcome = match outcomes.last() {
                Some(Outcome::Refused(CycleRefusal::Budget) | Outcome::Untried) => Outcome::Untried,
                _ => self.start_or_reserve_one(*row, how, keep, anew).unwrap_or_else(Outcome::Refused),
            };
            outcomes.push(outcome);
        }
        outcomes
    }

    fn start_or_reserve_one(
        &mut self,
        row: u32,
        how: &Placing,
        keep: Keep,
        anew: bool,
    ) -> Result<Outcome, CycleRefusal> {
        let job = self.job(row)?;
        let wanted = self.wanted(job)?;
        // Nothing is promised to a job that waits for a limit, a licence or its reservation.
        if wanted.inside.is_some() {
            return self.try_start(row, None, how);
        }
        if let Err(full) = self.pools_with_room(job) {
            self.explain(job, &full);
            return Err(full);
        }
        let own = self.promise_of(job);
        if let Some(own) = own.as_ref().filter(|own| !anew && own.start > self.now) {
            return Ok(Outcome::Reserved(own.start));
        }
        let mark = self.replica.cluster.savepoint();
        let placed = match wanted.throttle {
            Some((array, most)) => self.below_throttle(array, most, self.promised_elements(array, job)),
            None => Ok(()),
        };
        let placed = placed.and_then(|()| match &own {
            None => self.place(&wanted, how, keep),
            Some(own) => self.place_again(&wanted, own, how, keep),
        });
        if let Err(refusal) = &placed {
            self.replica.cluster.rollback(mark);
            self.explain(job, refusal);
        }
        placed
    }

    /// Places a job that has no promise.
    fn place(&mut self, wanted: &Wanted, how: &Placing, keep: Keep) -> Result<Outcome, CycleRefusal> {
        let Wanted { job, class, limit, .. } = *wanted;
        let slot = self.replica.cluster.earliest_start(class, self.now, limit, how, &mut self.work)?;
        if slot.start <= self.now {
            self.replica.cluster.start_in(job, &slot);
            self.draw(job, &slot.allocation)?;
            self.note_start(wanted, slot.allocation);
            return Ok(Outcome::Started);
        }
        match keep {
            Keep::ThisCycle => drop(self.keep_this_cycle(job, &slot)),
            Keep::Durable => {
                self.room_for_promise()?;
                self.keep_for_good(job, &slot);
            }
        }
        Ok(Outcome::Reserved(slot.start))
    }

    /// Places a job that has a promise: it never gets a later start, unless what was kept for it is not there any more.
    fn place_again(&mut self, wanted: &Wanted, own: &Held, how: &Placing, keep: Keep) -> Result<Outcome, CycleRefusal> {
        let Wanted { job, class, limit, .. } = *wanted;
        self.spend(own.allocation.parts.len() as u64)?;
        let mark = self.replica.cluster.savepoint();
        self.replica.cluster.lift(own.reservation);
        let due = own.start <= self.now;
        if due && let Some(allocation) = self.start_as_promised(wanted, own)? {
            self.draw(job, &allocation)?;
            self.own_is_over(job);
            self.note_start(wanted, allocation);
            return Ok(Outcome::Started);
        }
        let slot = self.replica.cluster.earliest_start(class, self.now, limit, how, &mut self.work)?;
        if slot.start <= self.now {
            self.replica.cluster.start_in(job, &slot);
            self.draw(job, &slot.allocation)?;
            self.own_is_over(job);
            self.note_start(wanted, slot.allocation);
            return Ok(Outcome::Started);
        }
        let duration = own.until - own.start;
        let kept = || Slot { start: own.start, allocation: own.allocation.clone(), duration, class };
        // One whose time has come waits for somebody who is late to end; it has nowhere better to go.
        if due || (slot.start >= own.start && self.replica.cluster.is_free(&kept())) {
            self.replica.cluster.rollback(mark);
            return Ok(Outcome::Reserved(own.start));
        }
        match keep {
            Keep::Durable => self.keep_for_good(job, &slot),
            Keep::ThisCycle => {
                self.own_is_over(job);
                self.plan(job, Change::Lift(LiftCause::Policy));
                self.keep_this_cycle(job, &slot);
            }
        }
        Ok(Outcome::Reserved(slot.start))
    }

    /// Starts a job on the nodes that were promised to it. One that is late may run on into what is promised behind it,
    /// by as much as it is late: else it could not start at all.
    pub(super) fn start_as_promised(
        &mut self,
        wanted: &Wanted,
        own: &Held,
    ) -> Result<Option<Arc<Allocation>>, CycleRefusal> {
        let Wanted { job, class, limit, .. } = *wanted;
        let nodes = own.allocation.parts.iter().map(|part| part.node).collect();
        let how = Placing { only: Some(nodes), ..Placing::default() };
        let (now, work) = (self.now, &mut self.work);
        let cluster = &mut self.replica.cluster;
        match cluster.try_start(job, class, now, limit, &how, work) {
            Ok(allocation) => return Ok(Some(allocation)),
            Err(NoFit::Budget) => return Err(CycleRefusal::Budget),
            Err(_) if own.until >= now + limit => return Ok(None),
            Err(_) => {}
        }
        // But not into a reservation of nodes.
        let into = |entry: &Job| reservations::allow(&self.state, entry, &own.allocation, now, now + limit);
        if !self.state.element(job).is_some_and(|(entry, _)| into(&entry.job)) {
            return Ok(None);
        }
        match cluster.try_start(job, class, now, own.until - now, &how, work) {
            Ok(allocation) => {
                cluster.extend(job, now + limit);
                Ok(Some(allocation))
            }
            Err(NoFit::Budget) => Err(CycleRefusal::Budget),
            Err(_) => Ok(None),
        }
    }

    /// Other elements of an array that have a promise.
    pub(super) fn promised_elements(&self, array: JobId, but: JobId) -> u32 {
        let count = self.state.jobs.get(&array).map_or(0, |entry| entry.elements.len() as u64);
        let unchanged = self.replica.promises.jobs_among(array, count).filter(|job| !self.promised.contains_key(job));
        let end = JobId(array.0.saturating_add(count));
        let changed = self.promised.range(array..end).filter(|(_, held)| held.is_some()).map(|(job, _)| *job);
        unchanged.chain(changed).filter(|job| *job != but).count() as u32
    }

    pub(super) fn room_for_promise(&self) -> Result<(), CycleRefusal> {
        if self.replica.promises.len() + self.promised.len() < limits::PROMISES {
            return Ok(());
        }
        Err(CycleRefusal::Other(format!("{} promises are kept already, the most there may be", limits::PROMISES)))
    }

    fn keep_for_good(&mut self, job: JobId, slot: &Slot) {
        let held = Held::of(self.replica.cluster.reserve(slot), slot);
        self.plan(job, Change::Keep(held.start, held.allocation.clone()));
        let before = self.promised_start(job);
        self.promised.insert(job, Some(held));
        if before.is_some() {
            self.no_longer_kept(before);
        }
        self.note_reserved(job, slot.start);
    }

    /// Keeps a slot that counts on what is being released.
    pub(super) fn keep_claim(&mut self, job: JobId, slot: &Slot) {
        let before = self.promised_start(job);
        let held = Held { claim: true, ..Held::of(self.replica.cluster.reserve(slot), slot) };
        self.plan(job, Change::Claim(held.start, held.allocation.clone()));
        self.promised.insert(job, Some(held));
        self.number_of(job);
        if before.is_some() {
            self.no_longer_kept(before);
        }
    }

    fn keep_this_cycle(&mut self, job: JobId, slot: &Slot) -> u32 {
        let held = Held::of(self.replica.cluster.reserve(slot), slot);
        self.reservations.push_back(Numbered::ThisCycle(job, held));
        self.note_reserved(job, slot.start);
        self.reservations.len() as u32 - 1
    }

    fn note_reserved(&mut self, job: JobId, start: Timestamp) {
        match self.notes.get_mut(&job) {
            Some(note) => note.earliest = Some(start),
            None => self.note_for(job, ReasonCode::Resources, "".into(), Some(start)),
        }
    }

    /// The number of a job's promise.
    fn number_of(&mut self, job: JobId) -> u32 {
        *self.numbers.entry(job).or_insert_with(|| {
            self.reservations.push_back(Numbered::Promise(job));
            self.reservations.len() as u32 - 1
        })
    }

    /// Gives every promise a number.
    pub(super) fn list_promises(&mut self) {
        if !std::mem::replace(&mut self.listed, true) {
            let jobs: Vec<JobId> = self.replica.promises.jobs().collect();
            for job in jobs {
                self.number_of(job);
            }
        }
    }

    /// The job, what is kept for it and whether that lasts; `None`: the reservation of that number was lifted.
    fn reservation(&self, row: u32) -> Result<Option<(JobId, Held, bool)>, CycleRefusal> {
        let unknown = || CycleRefusal::Other(format!("table reservations has no row {row}"));
        Ok(match self.reservations.get(row as usize).ok_or_else(unknown)? {
            Numbered::ThisCycle(job, held) => Some((*job, held.clone(), false)),
            Numbered::Promise(job) => self.promise_of(*job).map(|held| (*job, held, true)),
            Numbered::Lifted => None,
        })
    }

    pub(super) fn reservation_cell(&mut self, name: &str, row: u32) -> Result<i64, CycleRefusal> {
        let Some((job, held, durable)) = self.reservation(row)? else { return Ok(-1) };
        Ok(match name {
            "job" => i64::from(self.row_of(job)),
            "start" => held.start.0,
            "end" => held.until.0,
            "nodes" => held.allocation.parts.len() as i64,
            _ if held.claim => 2,
            _ => i64::from(durable),
        })
    }

    /// The nodes that a reservation takes, by row.
    pub(super) fn reservation_nodes(&self, row: u32) -> Result<Vec<i64>, CycleRefusal> {
        let held = self.reservation(row)?.map(|(_, held, _)| held.allocation);
        let parts = held.iter().flat_map(|allocation| allocation.parts.iter());
        Ok(parts.filter_map(|part| self.node_row(part.node)).map(i64::from).collect())
    }
}
