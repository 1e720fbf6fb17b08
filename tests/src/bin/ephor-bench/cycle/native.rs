//! The backfill policy compiled for the host, against the core's cycle: what its call costs without WebAssembly.

use ephor_core::cycle::{self as core, CycleRefusal, CycleSlot};
use ephor_core::roles::{Fault, Scheduling};
use ephor_model::{ResourceId, Span, Timestamp as At};
use ephor_sdk::scheduling::{Afterwards, Cause, Cycle, Keep, Outcome, Part, Placing, Refusal, Scope, Slot, StopRule};
use ephor_sdk::{Duration, Row, Timestamp};
use scheduling_backfill::{Backfill, Config};
use std::cell::RefCell;

/// The policy with its configuration.
pub struct Native(pub Config);

impl Scheduling for Native {
    fn schedule(&mut self, cycle: Box<core::Cycle>) -> (Box<core::Cycle>, Result<(), Fault>) {
        let bridge = Bridge(RefCell::new(cycle));
        <Backfill as ephor_sdk::scheduling::Scheduling>::schedule(&bridge, &self.0);
        (bridge.0.into_inner(), Ok(()))
    }

    fn label(&self) -> String {
        "native backfill".into()
    }
}

struct Bridge(RefCell<Box<core::Cycle>>);

#[derive(Default)]
struct Where(RefCell<ephor_placement::Placing>);

struct When {
    slot: CycleSlot,
    rows: Vec<Row>,
}

impl Placing for Where {
    fn pack(&self, id: u16) {
        self.0.borrow_mut().pack.push(ResourceId(id));
    }
    fn spread(&self, id: u16) {
        self.0.borrow_mut().spread.push(ResourceId(id));
    }
    fn require_level(&self, _: &str) -> Result<(), Refusal> {
        not_here()
    }
    fn prefer_level(&self, _: &str) -> Result<(), Refusal> {
        not_here()
    }
    fn rank_nodes(&self, _: &[Row]) -> Result<(), Refusal> {
        not_here()
    }
    fn only_nodes(&self, _: &[Row]) -> Result<(), Refusal> {
        not_here()
    }
    fn only_devices(&self, _: &[(Row, u32)]) -> Result<(), Refusal> {
        not_here()
    }
    fn may_claim(&self, yes: bool) {
        self.0.borrow_mut().may_claim = yes;
    }
}

impl Slot for When {
    fn start(&self) -> Timestamp {
        self.slot.slot.start.0
    }
    fn nodes(&self) -> Vec<Row> {
        self.rows.clone()
    }
}

fn not_here<T>() -> Result<T, Refusal> {
    Err(Refusal::Other("the policy under test does not use this".into()))
}

fn refusal(refusal: CycleRefusal) -> Refusal {
    match refusal {
        CycleRefusal::Never(text) => Refusal::Never(text.to_string()),
        CycleRefusal::NotNow(text) => Refusal::NotNow(text.to_string()),
        CycleRefusal::Pool(row) => Refusal::Pool(row),
        CycleRefusal::Budget => Refusal::Budget,
        CycleRefusal::Other(text) => Refusal::Other(text),
    }
}

fn outcome(outcome: core::Outcome) -> Outcome {
    match outcome {
        core::Outcome::Started => Outcome::Started,
        core::Outcome::Claimed => Outcome::Claimed,
        core::Outcome::Reserved(start) => Outcome::Reserved(start.0),
        core::Outcome::Refused(why) => Outcome::Refused(refusal(why)),
        core::Outcome::Untried => Outcome::Untried,
    }
}

fn kept(keep: Keep) -> core::Keep {
    match keep {
        Keep::ThisCycle => core::Keep::ThisCycle,
        Keep::Durable => core::Keep::Durable,
    }
}

impl Cycle for Bridge {
    type Placing = Where;
    type Slot = When;

    fn placing(&self) -> Where {
        Where::default()
    }
    fn now(&self) -> Timestamp {
        self.0.borrow().now().0
    }
    fn budget(&self) -> u64 {
        self.0.borrow().budget()
    }
    fn causes(&self) -> Vec<Cause> {
        let causes = self.0.borrow_mut().causes();
        let word = |cause| match cause {
            core::Cause::Arrived(row) => Cause::Arrived(u32::try_from(row.0).unwrap_or(u32::MAX)),
            core::Cause::Released => Cause::Released,
            core::Cause::ReleasedEarly => Cause::ReleasedEarly,
            core::Cause::Nodes => Cause::Nodes,
            core::Cause::Settings => Cause::Settings,
            core::Cause::Asked => Cause::Other("wake-at".into()),
        };
        causes.into_iter().map(word).collect()
    }
    fn outcomes(&self) -> Vec<bool> {
        self.0.borrow().outcomes().to_vec()
    }
    fn rows(&self, table: &str) -> Result<u32, Refusal> {
        self.0.borrow_mut().rows(table).map_err(refusal)
    }
    fn column(&self, table: &str, name: &str, rows: Option<&[Row]>) -> Result<Vec<i64>, Refusal> {
        self.0.borrow_mut().column(table, name, rows).map_err(refusal)
    }
    fn ragged(&self, table: &str, name: &str, rows: &[Row]) -> Result<(Vec<u32>, Vec<i64>), Refusal> {
        self.0.borrow_mut().ragged(table, name, rows).map_err(refusal)
    }
    fn next(&self, scope: Scope, after: Option<Row>, n: u32) -> Vec<Row> {
        let scope = match scope {
            Scope::All => core::Scope::All,
            Scope::Queue(row) => core::Scope::Queue(row),
            Scope::Awake => core::Scope::Awake,
            Scope::Due => core::Scope::Due,
            Scope::Placed => core::Scope::Placed,
            Scope::Arrived => core::Scope::Arrived,
        };
        self.0.borrow_mut().next(scope, after, n)
    }
    fn try_start(&self, job: Row, _: Option<Part>, how: &Where) -> Result<Outcome, Refusal> {
        self.0.borrow_mut().try_start(job, None, &how.0.borrow()).map(outcome).map_err(refusal)
    }
    fn start_in_order(&self, jobs: &[Row], how: &Where, stop: StopRule) -> Vec<Outcome> {
        let stop = match stop {
            StopRule::FirstRefusal => core::StopRule::FirstRefusal,
            StopRule::EndOfList => core::StopRule::EndOfList,
        };
        self.0.borrow_mut().start_in_order(jobs, &how.0.borrow(), stop).into_iter().map(outcome).collect()
    }
    fn earliest_start(&self, job: Row, _: Option<Part>, how: &Where, from: Timestamp) -> Result<When, Refusal> {
        let mut cycle = self.0.borrow_mut();
        let slot = cycle.earliest_start(job, None, &how.0.borrow(), At(from)).map_err(refusal)?;
        let rows = slot.slot.allocation.parts.iter().filter_map(|part| cycle.node_row(part.node)).collect();
        Ok(When { slot, rows })
    }
    fn reserve(&self, slot: &When, keep: Keep) -> Result<u32, Refusal> {
        self.0.borrow_mut().reserve(&slot.slot, kept(keep)).map_err(refusal)
    }
    fn start_or_reserve(&self, jobs: &[Row], how: &Where, keep: Keep, anew: bool) -> Vec<Outcome> {
        let outcomes = self.0.borrow_mut().start_or_reserve(jobs, &how.0.borrow(), kept(keep), anew);
        outcomes.into_iter().map(outcome).collect()
    }
    fn lift(&self, reservation: u32) -> Result<(), Refusal> {
        self.0.borrow_mut().lift(reservation).map_err(refusal)
    }
    fn evict(&self, attempt: Row, grace: Duration, then: Afterwards, why: &str) -> Result<(), Refusal> {
        let then = match then {
            Afterwards::Requeue => core::Afterwards::Requeue,
            Afterwards::Cancel => core::Afterwards::Cancel,
        };
        self.0.borrow_mut().evict(attempt, Span(grace), then, why).map_err(refusal)
    }
    fn re_place(&self, attempt: Row, how: &Where) -> Result<Outcome, Refusal> {
        self.0.borrow_mut().re_place(attempt, &how.0.borrow()).map(outcome).map_err(refusal)
    }
    fn report(&self, table: &str, name: &str, rows: &[Row], values: &[i64]) -> Result<(), Refusal> {
        self.0.borrow_mut().report(table, name, rows, values).map_err(refusal)
    }
    fn hold(&self, job: Row, why: &str) -> Result<(), Refusal> {
        self.0.borrow_mut().hold(job, why).map_err(refusal)
    }
    fn note(&self, job: Row, why: &str) -> Result<(), Refusal> {
        self.0.borrow_mut().note(job, why).map_err(refusal)
    }
    fn wake_at(&self, at: i64) -> Result<(), Refusal> {
        self.0.borrow_mut().wake_at(At(at)).map_err(refusal)
    }

    fn rest_until_room(&self, behind: Option<Row>) -> Result<(), Refusal> {
        self.0.borrow_mut().rest_until_room(behind).map_err(refusal)
    }
    fn savepoint(&self) -> u32 {
        self.0.borrow_mut().savepoint()
    }
    fn rollback(&self, savepoint: u32) -> Result<(), Refusal> {
        self.0.borrow_mut().rollback(savepoint).map_err(refusal)
    }
    fn accept(&self, savepoint: u32) -> Result<(), Refusal> {
        self.0.borrow_mut().accept(savepoint).map_err(refusal)
    }
}
