//! What may be asked of the state, and how it is refused.

use crate::decide::Change;
use crate::devices::DeviceFaults;
use crate::eviction::Eviction;
use crate::promise::LiftCause;
use crate::records::Fading;
use ephor_model::{
    Account, Allocation, Amounts, AttemptKey, Dependency, Digest, EndCause, Exit, Generation, JobId, JobSpec, JobState,
    Licence, NodeId, NodeSpec, Qos, Queue, Reservation, Slot, Timestamp, Uid, Usage, User,
};
use std::sync::Arc;

/// Something to be done, already authenticated, authorised and admitted.
#[derive(Clone, Debug)]
pub enum Command {
    /// A controller begins its reign; the first command after a load.
    BeginEpoch {
        /// Raise the epoch at least to this (recovery from an older copy).
        at_least: u64,
    },
    /// Take a job.
    Submit {
        /// After admission.
        spec: Arc<JobSpec>,
        /// Digest of the script.
        script: Option<Digest>,
        /// Digest of the environment.
        environment: Digest,
        /// Dependencies on jobs that only the history knows, with their final states.
        known_ends: Vec<(Dependency, JobState)>,
    },
    /// Change a job, or a whole array, by its first id.
    Modify {
        /// Which.
        job: JobId,
        /// How, after admission.
        change: Change,
        /// As for a submission, where the dependencies change.
        known_ends: Vec<(Dependency, JobState)>,
        /// By whom: operators may raise the time limit of what runs.
        by: Actor,
    },
    /// End the waiting jobs whose deadline cannot be met any more.
    Expire,
    /// Act on one element, or on all of an array (its first id with `whole`).
    Act {
        /// What to do.
        action: Action,
        /// Which.
        job: JobId,
        /// All elements of the array.
        whole: bool,
        /// By whom: name for texts, operator for holds that users cannot lift.
        by: Actor,
    },
    /// Commit groups of a plan.
    Plan {
        /// Each is taken whole or not at all.
        groups: Vec<Group>,
    },
    /// What an agent says.
    NodeReport(NodeReport),
    /// Drain or resume nodes.
    DrainNode {
        /// The node.
        node: NodeId,
        /// `Some`: why; `None`: resume.
        reason: Option<String>,
        /// Who.
        by: String,
    },
    /// Take a device out of service, or back into it.
    SetDevice {
        /// The node.
        node: NodeId,
        /// Its index.
        device: u32,
        /// What to do.
        change: DeviceChange,
        /// Who.
        by: String,
    },
    /// Create or change objects: all or none.
    Apply(Objects),
    /// Delete an object.
    Delete {
        /// Kind.
        kind: ObjectKind,
        /// Name.
        name: String,
    },
    /// Fill a slot.
    Activate {
        /// Where.
        slot: Slot,
        /// What; its number and time are given by the state.
        generation: Generation,
    },
    /// Go back to the generation before.
    RollBack {
        /// Where.
        slot: Slot,
    },
    /// Leave a slot empty.
    Disable {
        /// Where.
        slot: Slot,
    },
    /// Charges of ended attempts.
    Charge(Vec<(AttemptKey, i64)>),
    /// How the ledger fades from now on.
    SetFading(Fading),
    /// Fade the ledger if boundaries have passed.
    Fade,
    /// Finished jobs are in the history: forget them. Those that are not finished stay.
    Forget(Vec<JobId>),
    /// Open a join token.
    IssueToken {
        /// Digest of its secret.
        token: Digest,
        /// Node that may use it; empty: any.
        node: String,
    },
    /// Use a join token.
    UseToken {
        /// Digest of its secret.
        token: Digest,
        /// The node that uses it.
        node: String,
    },
}

/// Who acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Login name.
    pub name: String,
    /// Whether an operator: its holds can only be released by operators.
    pub operator: bool,
}

/// What can be done to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// End it.
    Cancel,
    /// Keep it from starting.
    Hold,
    /// Let it start.
    Release,
    /// End it and let it wait again.
    Requeue,
}

/// Changes that stand or fall together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Attempts that give way.
    pub evictions: Vec<(AttemptKey, Arc<Eviction>)>,
    /// Attempts to start. What was promised to their jobs ends with that.
    pub starts: Vec<Start>,
    /// Promises to give, each in place of the one that its job has.
    pub promises: Vec<Kept>,
    /// Promises to give up; a job that has none is passed over.
    pub lifts: Vec<(JobId, LiftCause)>,
}

/// One promise of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The job.
    pub job: JobId,
    /// When it shall start.
    pub start: Timestamp,
    /// Where.
    pub allocation: Arc<Allocation>,
    /// Whether it counts on attempts that were told to end.
    pub claim: bool,
}

/// One start of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The job.
    pub job: JobId,
    /// Where.
    pub allocation: Arc<Allocation>,
}

/// What an operator does to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChange {
    /// No job is given it any more, for this reason; jobs on it go on.
    Take(String),
    /// Jobs are given it again, although its agent says this of it.
    Return(Vec<String>),
}

/// What an agent says of its node.
#[derive(Clone, Debug)]
pub enum NodeReport {
    /// It came, with these attempts still held.
    Register {
        /// What it found.
        spec: NodeSpec,
        /// Attempts whose processes it holds or whose end it has yet to report.
        holds: Vec<AttemptKey>,
        /// What is wrong with its devices.
        faults: DeviceFaults,
    },
    /// How its devices are.
    Devices {
        /// The node.
        node: NodeId,
        /// What is wrong with them.
        faults: DeviceFaults,
    },
    /// It is silent.
    Silent {
        /// The node.
        node: NodeId,
        /// In words.
        reason: String,
    },
    /// An attempt runs.
    Began {
        /// The attempt.
        key: AttemptKey,
    },
    /// An attempt ended.
    Ended {
        /// The attempt.
        key: AttemptKey,
        /// Exit code and signal.
        exit: Exit,
        /// What made it end.
        cause: EndCause,
        /// In words, for launch failures.
        message: String,
        /// What it used.
        usage: Usage,
    },
}

/// Objects of one `ephor apply`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Queues; parents by name.
    pub queues: Vec<(Queue, Option<String>)>,
    /// Accounts.
    pub accounts: Vec<Account>,
    /// Users.
    pub users: Vec<User>,
    /// Additions to nodes: name, features, amounts.
    pub nodes: Vec<(String, Vec<String>, Amounts)>,
    /// Qualities of service.
    pub qos: Vec<Qos>,
    /// Licences.
    pub licences: Vec<Licence>,
    /// Reservations of nodes.
    pub reservations: Vec<ReservationWish>,
}

/// A reservation to be made or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationWish {
    /// All of it but its nodes.
    pub is: Reservation,
    /// Its nodes.
    pub nodes: NodeChoice,
}

/// Which nodes a reservation gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeChoice {
    /// Those of these names.
    Named(Vec<String>),
    /// So many, chosen when it is made.
    Count(u32),
}

impl Objects {
    /// How many there are, of all kinds.
    pub fn count(&self) -> usize {
        self.queues.len()
            + self.accounts.len()
            + self.users.len()
            + self.nodes.len()
            + self.qos.len()
            + self.licences.len()
            + self.reservations.len()
    }
}

/// Kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A queue, by name.
    Queue,
    /// An account, by name.
    Account,
    /// A user, by name.
    User,
    /// A node, by name.
    Node,
    /// A quality of service, by name.
    Qos,
    /// A licence, by name.
    Licence,
    /// A reservation of nodes, by name.
    Reservation,
}

/// What a command answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Done.
    Done,
    /// The id of the job or array.
    Job(JobId),
    /// Which groups of the plan were taken.
    Groups(Vec<bool>),
    /// The node's number, and attempts that its agent holds but must end.
    Node {
        /// Number.
        id: NodeId,
        /// To be ended.
        unknown: Vec<AttemptKey>,
    },
    /// Created, changed, unchanged.
    Applied {
        /// New objects.
        created: u32,
        /// Changed objects.
        changed: u32,
        /// Objects that were so already.
        unchanged: u32,
    },
    /// The generation that decides now.
    Generation(Arc<Generation>),
}

/// What kind of refusal it is, for exit codes and gRPC status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The request makes no sense, whatever the state.
    Invalid,
    /// What it names is not there.
    NotFound,
    /// The state does not allow it now.
    Conflict,
    /// A limit of the system.
    Limit,
}

/// Why a command was refused: what was wrong, where, and what would work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// What kind.
    pub kind: RefusalKind,
    /// For people.
    pub text: String,
}

impl Refusal {
    /// A refusal with its text.
    pub fn new(kind: RefusalKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// The actor of changes that no person asked for.
pub fn system() -> Actor {
    Actor { name: "controller".into(), operator: true }
}

/// The latest end of an attempt that starts at `now`.
pub fn expected_end(now: Timestamp, spec: &JobSpec) -> Timestamp {
    spec.time_limit.map_or(Timestamp::NEVER, |limit| now + limit)
}

/// A user id for texts.
pub fn uid_text(uid: Uid) -> String {
    format!("uid {uid}")
}
