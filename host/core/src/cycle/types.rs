//! The words of a cycle, as in `wit/scheduling`.

use ephor_model::JobId;
use ephor_placement::Slot;
use std::sync::Arc;

/// What an operation could not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CycleRefusal {
    /// Whatever ends.
    Never(Arc<str>),
    /// Not now.
    NotNow(Arc<str>),
    /// A pool is used up.
    Pool(u32),
    /// The work units are used up.
    Budget,
    /// A row, name or value that makes no sense, or an operation that is not there.
    Other(String),
}

/// What became of a job that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It starts now.
    Started,
    /// It takes over capacity that is being released.
    Claimed,
    /// It does not.
    Refused(CycleRefusal),
    /// It was not looked at.
    Untried,
}

/// When [`super::Cycle::start_in_order`] stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopRule {
    /// At the first job that cannot start now.
    FirstRefusal,
    /// At the end.
    EndOfList,
}

/// Which pending jobs are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All.
    All,
    /// Those of one queue, by row.
    Queue(u32),
    /// All whose class is not parked.
    Awake,
    /// Those that became eligible since the last accepted cycle and whose class is not parked.
    Arrived,
}

/// How long a reservation lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Until the plan is handed over.
    ThisCycle,
    /// Until its job starts.
    Durable,
}

/// Something that changed since the last accepted cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A job became eligible. Inside a cycle's answer the id is the job's row.
    Arrived(JobId),
    /// Capacity came free.
    Released,
    /// Nodes came, went or changed.
    Nodes,
    /// Anything else.
    Settings,
}

/// Part of a job; the default is all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Request group.
    pub group: u32,
    /// Fewest tasks; 0: as requested.
    pub tasks_min: u32,
    /// Most tasks; 0: as requested.
    pub tasks_max: u32,
}

/// Where and when a job could run.
#[derive(Clone, Debug)]
pub struct CycleSlot {
    /// The job.
    pub job: JobId,
    /// The slot.
    pub slot: Slot,
}
