//! The cycle as a policy works on it: each operation is the core's, with the bounds of the call around it.

use super::{CycleCall, CycleHandle, words};
use crate::bindings::scheduling::ephor::scheduling::cycles::{
    self, Afterwards, Cause, HostCycle, Keep, Outcome, Part, Refusal, Scope, StopRule,
};
use crate::bounds;
use crate::call::Call;
use crate::check::printable;
use ephor_core::FaultKind;
use ephor_core::cycle::{Cycle, CycleRefusal, CycleSlot};
use ephor_model::{Span, Timestamp, limits};
use ephor_placement::Placing;
use std::result::Result as Answer;
use wasmtime::Result;
use wasmtime::component::Resource;

type This = Resource<CycleHandle>;

impl cycles::Host for Call<CycleCall> {}

impl Call<CycleCall> {
    /// Takes a list of rows: one that no table could need ends the call, so that answers to it stay small too.
    fn rows_taken(&mut self, rows: &[u32]) -> Result<()> {
        self.base.handed_over(size_of_val(rows))?;
        if rows.len() > bounds::ROWS_AT_ONCE {
            let text = format!("it named {} rows at once; {} are the most", rows.len(), bounds::ROWS_AT_ONCE);
            return Err(self.base.end(FaultKind::Output, text));
        }
        Ok(())
    }

    /// Takes a text for people; too long a one is refused.
    fn words_taken(&mut self, text: String) -> Result<Answer<String, Refusal>> {
        self.base.handed_over(text.len())?;
        if text.len() > limits::TEXT_BYTES {
            let text = format!("the text has {} bytes; at most {} are taken", text.len(), limits::TEXT_BYTES);
            return Ok(Err(Refusal::Other(text)));
        }
        Ok(Ok(printable(text)))
    }

    /// Runs an operation that needs a placing.
    fn placed<T>(&mut self, how: &Resource<Placing>, operation: impl FnOnce(&mut Cycle, &Placing) -> T) -> Result<T> {
        let how = self.base.table.get(how)?;
        Ok(operation(&mut self.role.cycle, how))
    }
}

fn answer<T>(answer: Answer<T, CycleRefusal>) -> Answer<T, Refusal> {
    answer.map_err(words::refusal)
}

impl HostCycle for Call<CycleCall> {
    fn now(&mut self, _: This) -> Result<i64> {
        Ok(self.role.cycle.now().0)
    }

    fn budget(&mut self, _: This) -> Result<u64> {
        Ok(self.role.cycle.budget())
    }

    fn causes(&mut self, _: This) -> Result<Vec<Cause>> {
        let causes = self.role.cycle.causes();
        self.base.work(1 + causes.len() as u64)?;
        Ok(causes.into_iter().map(words::cause).collect())
    }

    fn outcomes(&mut self, _: This) -> Result<Vec<bool>> {
        let outcomes = self.role.cycle.outcomes().to_vec();
        self.base.work(1 + outcomes.len() as u64 / 64)?;
        Ok(outcomes)
    }

    fn rows(&mut self, _: This, table: String) -> Result<Answer<u32, Refusal>> {
        self.base.handed_over(table.len())?;
        Ok(answer(self.role.cycle.rows(&table)))
    }

    fn column(
        &mut self,
        _: This,
        table: String,
        name: String,
        rows: Option<Vec<u32>>,
    ) -> Result<Answer<Vec<i64>, Refusal>> {
        self.base.handed_over(table.len() + name.len())?;
        let count = match &rows {
            Some(rows) => {
                self.base.handed_over(size_of_val(rows.as_slice()))?;
                rows.len() as u64
            }
            None => self.role.cycle.rows(&table).map_or(0, u64::from),
        };
        self.base.hand_in(count * 8)?;
        Ok(answer(self.role.cycle.column(&table, &name, rows.as_deref())))
    }

    fn ragged(
        &mut self,
        _: This,
        table: String,
        name: String,
        rows: Vec<u32>,
    ) -> Result<Answer<(Vec<u32>, Vec<i64>), Refusal>> {
        self.base.handed_over(table.len() + name.len())?;
        self.rows_taken(&rows)?;
        // Row by row: one list may name a wide attempt again and again.
        let (mut ends, mut values) = (Vec::with_capacity(rows.len()), Vec::new());
        for row in &rows {
            match self.role.cycle.ragged(&table, &name, &[*row]) {
                Ok((_, part)) => values.extend(part),
                Err(refusal) => return Ok(Err(words::refusal(refusal))),
            }
            self.base.hand_in((values.len() * 8 + rows.len() * 4) as u64)?;
            ends.push(u32::try_from(values.len()).unwrap_or(u32::MAX));
        }
        Ok(Ok((ends, values)))
    }

    fn next(&mut self, _: This, scope: Scope, after: Option<u32>, n: u32) -> Result<Vec<u32>> {
        Ok(self.role.cycle.next(words::scope(scope), after, n))
    }

    fn try_start(
        &mut self,
        _: This,
        job: u32,
        part: Option<Part>,
        how: Resource<Placing>,
    ) -> Result<Answer<Outcome, Refusal>> {
        let part = part.map(words::part);
        let outcome = self.placed(&how, |cycle, how| cycle.try_start(job, part, how))?;
        Ok(answer(outcome.map(words::outcome)))
    }

    fn start_in_order(
        &mut self,
        _: This,
        jobs: Vec<u32>,
        how: Resource<Placing>,
        stop: StopRule,
    ) -> Result<Vec<Outcome>> {
        self.rows_taken(&jobs)?;
        let outcomes = self.placed(&how, |cycle, how| cycle.start_in_order(&jobs, how, words::stop(stop)))?;
        Ok(outcomes.into_iter().map(words::brief).collect())
    }

    fn earliest_start(
        &mut self,
        _: This,
        job: u32,
        part: Option<Part>,
        how: Resource<Placing>,
        from: i64,
    ) -> Result<Answer<Resource<CycleSlot>, Refusal>> {
        let part = part.map(words::part);
        let slot = self.placed(&how, |cycle, how| cycle.earliest_start(job, part, how, Timestamp(from)))?;
        Ok(match slot {
            Ok(slot) => Ok(self.keep_slot(slot)?),
            Err(refusal) => Err(words::refusal(refusal)),
        })
    }

    fn reserve(&mut self, _: This, slot: Resource<CycleSlot>, keep: Keep) -> Result<Answer<u32, Refusal>> {
        let slot = self.base.table.get(&slot)?.clone();
        Ok(answer(self.role.cycle.reserve(&slot, words::keep(keep))))
    }

    fn start_or_reserve(
        &mut self,
        _: This,
        jobs: Vec<u32>,
        how: Resource<Placing>,
        keep: Keep,
        anew: bool,
    ) -> Result<Vec<Outcome>> {
        self.rows_taken(&jobs)?;
        let keep = words::keep(keep);
        let outcomes = self.placed(&how, |cycle, how| cycle.start_or_reserve(&jobs, how, keep, anew))?;
        Ok(outcomes.into_iter().map(words::brief).collect())
    }

    fn lift(&mut self, _: This, reservation: u32) -> Result<Answer<(), Refusal>> {
        Ok(answer(self.role.cycle.lift(reservation)))
    }

    fn evict(
        &mut self,
        _: This,
        attempt: u32,
        grace: i64,
        then: Afterwards,
        why: String,
    ) -> Result<Answer<(), Refusal>> {
        Ok(match self.words_taken(why)? {
            Ok(why) => answer(self.role.cycle.evict(attempt, Span(grace), words::afterwards(then), &why)),
            Err(refusal) => Err(refusal),
        })
    }

    fn re_place(&mut self, _: This, attempt: u32, how: Resource<Placing>) -> Result<Answer<Outcome, Refusal>> {
        let outcome = self.placed(&how, |cycle, how| cycle.re_place(attempt, how))?;
        Ok(answer(outcome.map(words::outcome)))
    }

    fn report(
        &mut self,
        _: This,
        table: String,
        name: String,
        rows: Vec<u32>,
        values: Vec<i64>,
    ) -> Result<Answer<(), Refusal>> {
        self.base.handed_over(table.len() + name.len() + size_of_val(values.as_slice()))?;
        self.rows_taken(&rows)?;
        Ok(answer(self.role.cycle.report(&table, &name, &rows, &values)))
    }

    fn hold(&mut self, _: This, job: u32, why: String) -> Result<Answer<(), Refusal>> {
        Ok(match self.words_taken(why)? {
            Ok(why) => answer(self.role.cycle.hold(job, &why)),
            Err(refusal) => Err(refusal),
        })
    }

    fn note(&mut self, _: This, job: u32, why: String) -> Result<Answer<(), Refusal>> {
        Ok(match self.words_taken(why)? {
            Ok(why) => answer(self.role.cycle.note(job, &why)),
            Err(refusal) => Err(refusal),
        })
    }

    fn wake_at(&mut self, _: This, at: i64) -> Result<Answer<(), Refusal>> {
        Ok(answer(self.role.cycle.wake_at(Timestamp(at))))
    }

    fn rest_until_room(&mut self, _: This, behind: Option<u32>) -> Result<Answer<(), Refusal>> {
        Ok(answer(self.role.cycle.rest_until_room(behind)))
    }

    fn savepoint(&mut self, _: This) -> Result<u32> {
        Ok(self.role.cycle.savepoint())
    }

    fn rollback(&mut self, _: This, savepoint: u32) -> Result<Answer<(), Refusal>> {
        Ok(answer(self.role.cycle.rollback(savepoint)))
    }

    fn accept(&mut self, _: This, savepoint: u32) -> Result<Answer<(), Refusal>> {
        Ok(answer(self.role.cycle.accept(savepoint)))
    }

    fn drop(&mut self, _: This) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::call;
    use super::*;
    use crate::bindings::scheduling::ephor::scheduling::cycles::HostPlacing;
    use ephor_model::PolicyLimits;

    fn this() -> This {
        Resource::new_borrow(0)
    }

    fn is_other<T>(answer: &Answer<T, Refusal>) -> bool {
        matches!(answer, Err(Refusal::Other(_)))
    }

    #[test]
    fn a_plan_is_made_through_the_contract() {
        let mut call = call(PolicyLimits::default(), 10);
        let how = HostPlacing::new(&mut call).unwrap();
        let borrowed = || Resource::new_borrow(how.rep());
        assert!(matches!(HostCycle::rows(&mut call, this(), "jobs".into()).unwrap(), Ok(10)));
        let jobs = call.next(this(), Scope::All, None, 100).unwrap();
        let cpu = call.column(this(), "jobs".into(), "cpu".into(), Some(jobs.clone())).unwrap();
        assert_eq!(cpu.ok(), Some(vec![1_000; 10]));
        let outcomes = call.start_in_order(this(), jobs.clone(), borrowed(), StopRule::FirstRefusal).unwrap();
        let started = outcomes.iter().filter(|o| matches!(o, Outcome::Started)).count();
        assert_eq!(started, 8);
        let (now, head) = (call.now(this()).unwrap(), jobs[8]);
        let slot = call.earliest_start(this(), head, None, borrowed(), now).unwrap().ok().unwrap();
        assert_eq!(call.role.nodes_in_slots, 1);
        let kept = Resource::new_borrow(slot.rep());
        assert!(call.reserve(this(), kept, Keep::ThisCycle).unwrap().is_ok());
        cycles::HostSlot::drop(&mut call, slot).unwrap();
        assert_eq!(call.role.nodes_in_slots, 0);
        assert!(call.note(this(), jobs[9], "wait".into()).unwrap().is_ok());
        assert_eq!(call.role.cycle.finish().1.groups.len(), 8);
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_what_is_too_much_ends_the_call() {
        let mut call = call(PolicyLimits::default(), 1);
        assert!(is_other(&HostCycle::rows(&mut call, this(), "cooks".into()).unwrap()));
        assert!(is_other(&call.hold(this(), 99, "why".into()).unwrap()));
        let job = call.next(this(), Scope::All, None, 1).unwrap()[0];
        assert!(is_other(&call.note(this(), job, "x".repeat(limits::TEXT_BYTES + 1)).unwrap()));
        assert!(is_other(&call.lift(this(), 5).unwrap()));
        assert!(is_other(&call.evict(this(), 0, 0, Afterwards::Requeue, "why".into()).unwrap()));
        assert_eq!(call.base.verdict(), None);
        let many = vec![job; bounds::ROWS_AT_ONCE + 1];
        assert!(call.ragged(this(), "attempts".into(), "on-nodes".into(), many).is_err());
        assert_eq!(call.base.verdict().unwrap().0, FaultKind::Output);
    }
}
