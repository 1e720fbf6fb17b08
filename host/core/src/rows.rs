//! The state as rows of a store: what one transaction must write beside its events.

use crate::past_use::PastUse;
use crate::promise::Promise;
use crate::records::{Attempt, Element, Job, LedgerEntry, LedgerKey, Meta, Node, OpenToken, PolicySlot, Uncharged};
use ephor_model::{
    Account, AccountId, AttemptKey, Digest, JobId, Licence, NodeId, Qos, QosId, Queue, QueueId, Reservation,
    ReservationNo, ResourceId, Slot, Uid, User,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Key of a row. Its order is the order of a load.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RowKey {
    /// Counters.
    Meta,
    /// A queue.
    Queue(QueueId),
    /// An account.
    Account(AccountId),
    /// A user.
    User(Uid),
    /// A node.
    Node(NodeId),
    /// A job or array, by first id.
    Job(JobId),
    /// An element that is no longer as it was submitted.
    Element(JobId),
    /// The live attempt of a job.
    Attempt(JobId),
    /// A ledger entry.
    Ledger(LedgerKey),
    /// An attempt that is not charged.
    Uncharged(AttemptKey),
    /// A policy slot.
    Policy(Slot),
    /// An open token.
    Token(Digest),
    /// What is promised to a job.
    Promise(JobId),
    /// A quality of service.
    Qos(QosId),
    /// A licence.
    Licence(ResourceId),
    /// A reservation of nodes.
    Reservation(ReservationNo),
    /// What the jobs of a queue held over time.
    PastUse(QueueId),
}

/// Content of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Row {
    /// Counters.
    Meta(Meta),
    /// A queue.
    Queue(Arc<Queue>),
    /// An account.
    Account(Arc<Account>),
    /// A user.
    User(Arc<User>),
    /// A node.
    Node(Arc<Node>),
    /// A job or array.
    Job(Arc<Job>),
    /// An element.
    Element(Element),
    /// An attempt.
    Attempt(Arc<Attempt>),
    /// A ledger entry.
    Ledger(LedgerEntry),
    /// An attempt to be charged.
    Uncharged(Arc<Uncharged>),
    /// A policy slot.
    Policy(Arc<PolicySlot>),
    /// An open token.
    Token(OpenToken),
    /// A promise.
    Promise(Arc<Promise>),
    /// A quality of service.
    Qos(Arc<Qos>),
    /// A licence.
    Licence(Arc<Licence>),
    /// A reservation of nodes.
    Reservation(Arc<Reservation>),
    /// Past use of a queue.
    PastUse(PastUse),
}
