//! The words of a cycle, as in `wit/scheduling`.

use ephor_model::{JobId, Timestamp};
use ephor_placement::{NoFit, Slot};
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

impl From<NoFit> for CycleRefusal {
    fn from(no_fit: NoFit) -> Self {
        match no_fit {
            NoFit::NotNow(why) => Self::NotNow(why),
            NoFit::Never(why) => Self::Never(why),
            NoFit::Budget => Self::Budget,
        }
    }
}

/// What became of a job that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It starts now.
    Started,
    /// It takes over capacity that is being released.
    Claimed,
    /// It waits, and its start at that time is kept for it.
    Reserved(Timestamp),
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
    /// Those whose promised time has come.
    Due,
    /// Those that have room already: this cycle started them, or they have a claim.
    Placed,
}

/// How long a reservation lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Until the plan is handed over.
    ThisCycle,
    /// Until its job starts, is cancelled or held, or it is lifted.
    Durable,
}

/// Something that changed since the last accepted cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A job became eligible. Inside a cycle's answer the id is the job's row.
    Arrived(JobId),
    /// Capacity came free when it was expected to.
    Released,
    /// Capacity came free that was counted on to be held for longer.
    ReleasedEarly,
    /// Nodes came, went or changed.
    Nodes,
    /// Anything else.
    Settings,
    /// The policy asked for a call at this time.
    Asked,
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
