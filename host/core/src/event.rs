//! Facts that changed the state. The state is the fold of its events (law 3).

use crate::eviction::Eviction;
use crate::promise::{LiftCause, Promise};
use crate::records::{Fading, Job};
use ephor_model::{
    Account, AccountId, Allocation, Amounts, AttemptKey, Dependency, Digest, EndCause, Epoch, Exit, Generation, Hold,
    JobId, JobSpec, JobState, Licence, NodeId, NodeSpec, Qos, QosId, Queue, QueueId, ReasonCode, Reservation,
    ReservationNo, ResourceId, Slot, Timestamp, Uid, Usage, User,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An event with its time. Times never decrease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamped {
    /// When.
    pub at: Timestamp,
    /// What.
    pub event: Event,
}

/// What happened. Version 1 of the log: variants and fields are only added at the end, a new version begins a new era.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A controller began its reign.
    EpochBegan {
        /// The new epoch.
        epoch: Epoch,
    },
    /// A job or array was acknowledged.
    Submitted {
        /// The record; its id and those of its elements follow from `next_job`.
        job: Arc<Job>,
    },
    /// Who holds it back changed.
    HoldSet {
        /// The element.
        job: JobId,
        /// By whom.
        hold: Hold,
    },
    /// A dependency of a job or array was decided.
    DependencyDecided {
        /// The waiting job's first id.
        job: JobId,
        /// Place among `waiting`.
        index: u32,
        /// Whether it is satisfied; else it never will be.
        satisfied: bool,
    },
    /// An attempt holds its allocation and is being launched.
    Started {
        /// Job and number.
        key: AttemptKey,
        /// What it holds.
        allocation: Arc<Allocation>,
        /// Latest end.
        expected_end: Timestamp,
    },
    /// Its node says that it runs.
    Began {
        /// The attempt.
        key: AttemptKey,
    },
    /// Its end was ordered.
    EndOrdered {
        /// The attempt.
        key: AttemptKey,
        /// What the end will be reported as.
        cause: EndCause,
    },
    /// It ended and gave back what it held.
    Ended {
        /// The attempt.
        key: AttemptKey,
        /// Final state, or `Pending` where the job runs again.
        state: JobState,
        /// Exit code and signal.
        exit: Exit,
        /// Why.
        reason: ReasonCode,
        /// In words.
        detail: Option<Arc<str>>,
        /// What it used.
        usage: Usage,
        /// Whether somebody holds the requeued job.
        hold: Hold,
    },
    /// A pending job was cancelled.
    CancelledPending {
        /// The element.
        job: JobId,
        /// By whom.
        by: Arc<str>,
    },
    /// A finished job waits again.
    Requeued {
        /// The element.
        job: JobId,
    },
    /// One of an attempt's nodes went silent, or all answer again.
    LostSet {
        /// The attempt.
        key: AttemptKey,
        /// Whether it is lost.
        lost: bool,
    },
    /// A finished job or array went to the history.
    Forgotten {
        /// First id.
        job: JobId,
    },
    /// An agent came with this node.
    NodeRegistered {
        /// Number, new or known.
        node: NodeId,
        /// What it found.
        spec: Arc<NodeSpec>,
    },
    /// A node is silent.
    NodeDown {
        /// The node.
        node: NodeId,
        /// In words.
        reason: String,
    },
    /// A node takes no new jobs.
    NodeDrained {
        /// The node.
        node: NodeId,
        /// In words.
        reason: String,
        /// By whom.
        by: String,
    },
    /// A node takes jobs again.
    NodeResumed {
        /// The node.
        node: NodeId,
    },
    /// What an administrator adds to a node.
    NodeSet {
        /// The node; a name that never registered gets a number and is down.
        node: NodeId,
        /// Its name.
        name: String,
        /// Features.
        features: Vec<String>,
        /// Amounts.
        extra: Amounts,
    },
    /// A node left for good.
    NodeDeleted {
        /// The node.
        node: NodeId,
    },
    /// A queue is new or changed.
    QueueSet {
        /// Number.
        queue: QueueId,
        /// What it is now.
        is: Queue,
    },
    /// A queue is gone.
    QueueDeleted {
        /// Number.
        queue: QueueId,
    },
    /// An account is new or changed.
    AccountSet {
        /// Number.
        account: AccountId,
        /// What it is now.
        is: Account,
    },
    /// An account is gone.
    AccountDeleted {
        /// Number.
        account: AccountId,
    },
    /// A user is new or changed.
    UserSet {
        /// What it is now.
        is: User,
    },
    /// A user is gone.
    UserDeleted {
        /// Key.
        uid: Uid,
    },
    /// An ended attempt was charged.
    Charged {
        /// The attempt.
        key: AttemptKey,
        /// Accounting units.
        amount: i64,
    },
    /// The ledger faded at a period boundary, once or several times.
    Faded {
        /// The boundary.
        at: Timestamp,
        /// What remains, in parts of 2^32.
        factor: u64,
    },
    /// How the ledger fades from now on.
    FadingSet {
        /// Period and factor.
        fading: Fading,
    },
    /// A generation decides from now on.
    PolicyActivated {
        /// Where.
        slot: Slot,
        /// Which.
        generation: Arc<Generation>,
    },
    /// The generation before decides again.
    PolicyRolledBack {
        /// Where.
        slot: Slot,
    },
    /// Nothing fills the slot.
    PolicyDisabled {
        /// Where.
        slot: Slot,
    },
    /// A join token is open.
    TokenIssued {
        /// Digest of its secret.
        token: Digest,
        /// The only node that may use it; empty: any.
        node: String,
        /// Not after.
        expires: Timestamp,
    },
    /// A join token was used or ran out.
    TokenClosed {
        /// Digest of its secret.
        token: Digest,
    },
    /// A start is promised to a waiting job, in place of what was promised to it before.
    Promised {
        /// The element.
        job: JobId,
        /// When and where.
        promise: Arc<Promise>,
    },
    /// A promise was given up while its job goes on waiting.
    PromiseLifted {
        /// The element.
        job: JobId,
        /// Why.
        why: LiftCause,
    },
    /// A quality of service is new or changed.
    QosSet {
        /// Number.
        qos: QosId,
        /// What it is now.
        is: Qos,
    },
    /// A quality of service is gone.
    QosDeleted {
        /// Number.
        qos: QosId,
    },
    /// A licence is new or changed.
    LicenceSet {
        /// Number of its resource.
        licence: ResourceId,
        /// What it is now.
        is: Licence,
    },
    /// A licence is gone.
    LicenceDeleted {
        /// Number of its resource.
        licence: ResourceId,
    },
    /// A reservation of nodes is new or changed.
    ReservationSet {
        /// Number.
        reservation: ReservationNo,
        /// What it is now.
        is: Arc<Reservation>,
    },
    /// A reservation of nodes is gone.
    ReservationDeleted {
        /// Number.
        reservation: ReservationNo,
    },
    /// A job or array is specified anew. What runs of it has the new time limit from its start on.
    Modified {
        /// First id.
        job: JobId,
        /// What it is now.
        spec: Arc<JobSpec>,
        /// Queue.
        queue: QueueId,
        /// Account.
        account: AccountId,
        /// Quality of service.
        qos: Option<QosId>,
        /// Dependencies that are not decided.
        waiting: Vec<Dependency>,
        /// Whether one can never be satisfied.
        never: bool,
    },
    /// A waiting element could no longer end before its deadline, and ended.
    DeadlinePassed {
        /// The element.
        job: JobId,
    },
    /// The counterpart of an element in an array that it waits for ended.
    ElementDecided {
        /// The element.
        job: JobId,
        /// First id of the other array.
        awaited: JobId,
        /// Whether the dependency is satisfied; else the element never runs.
        satisfied: bool,
    },
    /// An attempt was told to give way.
    Evicted {
        /// The attempt.
        key: AttemptKey,
        /// Why, and how much time it has.
        eviction: Arc<Eviction>,
    },
    /// No job is given a device any more.
    DeviceTaken {
        /// Its node.
        node: NodeId,
        /// Its uuid.
        device: String,
        /// Why, in words.
        reason: String,
        /// By whom; empty: its agent's word did it.
        by: String,
    },
    /// A device is given to jobs again.
    DeviceReturned {
        /// Its node.
        node: NodeId,
        /// Its uuid.
        device: String,
        /// What is said of it and is no ground any more to take it out.
        forgiven: Vec<String>,
        /// By whom.
        by: String,
    },
}
