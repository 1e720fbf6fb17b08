//! The scheduling role: what starts where, and who gives way.

use serde::de::DeserializeOwned;

use crate::bindings::scheduling::ephor::scheduling::cycles as wit;
pub use wit::{Afterwards, Cause, Keep, Outcome, Part, Refusal, Scope, StopRule};

use crate::{Duration, ResourceId, Row, Timestamp};

/// A scheduling policy.
pub trait Scheduling {
    /// Its configuration. The default stands where the site gave none.
    type Config: DeserializeOwned + Default + Send + Sync + 'static;

    /// Decides what starts now. Called when something changed that could let a job start; the memory of the policy is
    /// fresh in each call.
    fn schedule<C: Cycle>(cycle: &C, config: &Self::Config);
}

/// Where to place. A new one packs: nodes in use before idle ones, the fullest GPU that fits, in node order.
pub trait Placing {
    /// Fill nodes that already use this resource.
    fn pack(&self, id: ResourceId);
    /// Prefer the nodes with most of it free.
    fn spread(&self, id: ResourceId);
    /// All nodes below one domain of that level of the topology: nodes with the same feature `LEVEL=DOMAIN`.
    ///
    /// # Errors
    /// That cannot be the name of a level.
    fn require_level(&self, level: &str) -> Result<(), Refusal>;
    /// The same as a wish.
    ///
    /// # Errors
    /// That cannot be the name of a level.
    fn prefer_level(&self, level: &str) -> Result<(), Refusal>;
    /// Try these nodes first, in this order.
    ///
    /// # Errors
    /// A row is out of range.
    fn rank_nodes(&self, nodes: &[Row]) -> Result<(), Refusal>;
    /// Use no other nodes.
    ///
    /// # Errors
    /// A row is out of range.
    fn only_nodes(&self, nodes: &[Row]) -> Result<(), Refusal>;
    /// Use exactly these devices: pairs of node and index. (draft: not yet)
    ///
    /// # Errors
    /// A row is out of range, or this host does not have the operation.
    fn only_devices(&self, devices: &[(Row, u32)]) -> Result<(), Refusal>;
    /// Whether `try_start` and `start_in_order` may claim what is being released.
    fn may_claim(&self, yes: bool);
}

/// Where and when a job could run.
pub trait Slot {
    /// When it could start. Never before the cycle's `now`.
    fn start(&self) -> Timestamp;
    /// The nodes it would take.
    fn nodes(&self) -> Vec<Row>;
}

/// One look at the cluster, and a plan in the making; `wit/scheduling` says what each operation does and costs.
///
/// Operations that give a `Result` answer [`Refusal`]: `Budget` where the work of the call is used up.
#[allow(clippy::missing_errors_doc, reason = "the same for each: see the trait")]
pub trait Cycle {
    /// A placement that this cycle understands.
    type Placing: Placing;
    /// A slot that this cycle found.
    type Slot: Slot;

    /// A new placement; it packs.
    fn placing(&self) -> Self::Placing;
    /// The time of this cycle. It does not move.
    fn now(&self) -> Timestamp;
    /// Work units that are left.
    fn budget(&self) -> u64;
    /// What made this cycle run.
    fn causes(&self) -> Vec<Cause>;
    /// What became of the groups of the last plan: true where taken.
    fn outcomes(&self) -> Vec<bool>;
    /// How many rows a table has.
    fn rows(&self, table: &str) -> Result<u32, Refusal>;
    /// A column of a table for the rows asked for, or for all.
    fn column(&self, table: &str, name: &str, rows: Option<&[Row]>) -> Result<Vec<i64>, Refusal>;
    /// A column of lists: the end of each row's part, and the values behind one another.
    fn ragged(&self, table: &str, name: &str, rows: &[Row]) -> Result<(Vec<u32>, Vec<i64>), Refusal>;
    /// The next `n` pending jobs in order, after that one; at most 10,000.
    fn next(&self, scope: Scope, after: Option<Row>, n: u32) -> Vec<Row>;
    /// Start a job now, if it fits beside all that is running or reserved for as long as it may run.
    fn try_start(&self, job: Row, part: Option<Part>, how: &Self::Placing) -> Result<Outcome, Refusal>;
    /// `try_start` for each, in this order. One outcome for each.
    fn start_in_order(&self, jobs: &[Row], how: &Self::Placing, stop: StopRule) -> Vec<Outcome>;
    /// The earliest time from `from` on at which a job could start and run to its limit.
    fn earliest_start(
        &self,
        job: Row,
        part: Option<Part>,
        how: &Self::Placing,
        from: Timestamp,
    ) -> Result<Self::Slot, Refusal>;
    /// Keep that slot free for its job.
    fn reserve(&self, slot: &Self::Slot, keep: Keep) -> Result<u32, Refusal>;
    /// For each of these jobs, in this order: start it now if it fits, else keep its earliest start for it. One outcome
    /// for each. With `anew`, a job that has a promise moves to an earlier start where there is one.
    fn start_or_reserve(&self, jobs: &[Row], how: &Self::Placing, keep: Keep, anew: bool) -> Vec<Outcome>;
    /// Give a reservation up.
    fn lift(&self, reservation: u32) -> Result<(), Refusal>;
    /// Make a running attempt give way after a grace, and tell its user why.
    fn evict(&self, attempt: Row, grace: Duration, then: Afterwards, why: &str) -> Result<(), Refusal>;
    /// Let the job of an attempt that this cycle evicted claim its next start.
    fn re_place(&self, attempt: Row, how: &Self::Placing) -> Result<Outcome, Refusal>;
    /// Leave a job out of this cycle, and tell its user why.
    fn hold(&self, job: Row, why: &str) -> Result<(), Refusal>;
    /// Say more about why a job waits.
    fn note(&self, job: Row, why: &str) -> Result<(), Refusal>;
    /// Say something about the rows of a table in numbers, for people.
    fn report(&self, table: &str, name: &str, rows: &[Row], values: &[i64]) -> Result<(), Refusal>;
    /// Say that no call is needed before somebody who waits has room; nor for those who come behind that job and have none.
    fn rest_until_room(&self, behind: Option<Row>) -> Result<(), Refusal>;
    /// Ask for a call at that time, should none come before.
    fn wake_at(&self, at: Timestamp) -> Result<(), Refusal>;
    /// Open a savepoint. They nest.
    fn savepoint(&self) -> u32;
    /// Undo everything since that savepoint, exactly, and close it and those inside it.
    fn rollback(&self, savepoint: u32) -> Result<(), Refusal>;
    /// Close that savepoint: everything since it becomes one group of the plan.
    fn accept(&self, savepoint: u32) -> Result<(), Refusal>;
}

/// Lifts every promise that outlived its cycle: what a policy does that gives none itself, since those of another policy
/// would be in its way.
///
/// # Errors
/// [`Refusal::Budget`] where the work of the call is used up.
pub fn lift_promises<C: Cycle>(cycle: &C) -> Result<(), Refusal> {
    if cycle.rows("reservations")? == 0 {
        return Ok(());
    }
    let durable = cycle.column("reservations", "durable", None)?;
    for number in (0..).zip(durable).filter(|(_, durable)| *durable == 1).map(|(number, _)| number) {
        cycle.lift(number)?;
    }
    Ok(())
}

impl Placing for wit::Placing {
    fn pack(&self, id: ResourceId) {
        self.pack(id);
    }
    fn spread(&self, id: ResourceId) {
        self.spread(id);
    }
    fn require_level(&self, level: &str) -> Result<(), Refusal> {
        self.require_level(level)
    }
    fn prefer_level(&self, level: &str) -> Result<(), Refusal> {
        self.prefer_level(level)
    }
    fn rank_nodes(&self, nodes: &[Row]) -> Result<(), Refusal> {
        self.rank_nodes(nodes)
    }
    fn only_nodes(&self, nodes: &[Row]) -> Result<(), Refusal> {
        self.only_nodes(nodes)
    }
    fn only_devices(&self, devices: &[(Row, u32)]) -> Result<(), Refusal> {
        self.only_devices(devices)
    }
    fn may_claim(&self, yes: bool) {
        self.may_claim(yes);
    }
}

impl Slot for wit::Slot {
    fn start(&self) -> Timestamp {
        self.start()
    }
    fn nodes(&self) -> Vec<Row> {
        self.nodes()
    }
}

impl Cycle for wit::Cycle {
    type Placing = wit::Placing;
    type Slot = wit::Slot;

    fn placing(&self) -> Self::Placing {
        wit::Placing::new()
    }
    fn now(&self) -> Timestamp {
        self.now()
    }
    fn budget(&self) -> u64 {
        self.budget()
    }
    fn causes(&self) -> Vec<Cause> {
        self.causes()
    }
    fn outcomes(&self) -> Vec<bool> {
        self.outcomes()
    }
    fn rows(&self, table: &str) -> Result<u32, Refusal> {
        self.rows(table)
    }
    fn column(&self, table: &str, name: &str, rows: Option<&[Row]>) -> Result<Vec<i64>, Refusal> {
        self.column(table, name, rows)
    }
    fn ragged(&self, table: &str, name: &str, rows: &[Row]) -> Result<(Vec<u32>, Vec<i64>), Refusal> {
        self.ragged(table, name, rows)
    }
    fn next(&self, scope: Scope, after: Option<Row>, n: u32) -> Vec<Row> {
        self.next(scope, after, n)
    }
    fn try_start(&self, job: Row, part: Option<Part>, how: &Self::Placing) -> Result<Outcome, Refusal> {
        self.try_start(job, part, how)
    }
    fn start_in_order(&self, jobs: &[Row], how: &Self::Placing, stop: StopRule) -> Vec<Outcome> {
        self.start_in_order(jobs, how, stop)
    }
    fn earliest_start(
        &self,
        job: Row,
        part: Option<Part>,
        how: &Self::Placing,
        from: Timestamp,
    ) -> Result<Self::Slot, Refusal> {
        self.earliest_start(job, part, how, from)
    }
    fn reserve(&self, slot: &Self::Slot, keep: Keep) -> Result<u32, Refusal> {
        self.reserve(slot, keep)
    }
    fn start_or_reserve(&self, jobs: &[Row], how: &Self::Placing, keep: Keep, anew: bool) -> Vec<Outcome> {
        self.start_or_reserve(jobs, how, keep, anew)
    }
    fn lift(&self, reservation: u32) -> Result<(), Refusal> {
        self.lift(reservation)
    }
    fn evict(&self, attempt: Row, grace: Duration, then: Afterwards, why: &str) -> Result<(), Refusal> {
        self.evict(attempt, grace, then, why)
    }
    fn re_place(&self, attempt: Row, how: &Self::Placing) -> Result<Outcome, Refusal> {
        self.re_place(attempt, how)
    }
    fn report(&self, table: &str, name: &str, rows: &[Row], values: &[i64]) -> Result<(), Refusal> {
        self.report(table, name, rows, values)
    }
    fn hold(&self, job: Row, why: &str) -> Result<(), Refusal> {
        self.hold(job, why)
    }
    fn note(&self, job: Row, why: &str) -> Result<(), Refusal> {
        self.note(job, why)
    }
    fn rest_until_room(&self, behind: Option<Row>) -> Result<(), Refusal> {
        self.rest_until_room(behind)
    }
    fn wake_at(&self, at: Timestamp) -> Result<(), Refusal> {
        self.wake_at(at)
    }
    fn savepoint(&self) -> u32 {
        self.savepoint()
    }
    fn rollback(&self, savepoint: u32) -> Result<(), Refusal> {
        self.rollback(savepoint)
    }
    fn accept(&self, savepoint: u32) -> Result<(), Refusal> {
        self.accept(savepoint)
    }
}
