//! Objects that an administrator makes: queues, accounts, users, QOS, licences; and identities that policies attest.

use crate::id::{QueueId, Uid};
use crate::resource::Amounts;
use crate::time::Span;
use crate::use_limits::{Association, UseLimits};
use serde::{Deserialize, Serialize};

/// What a queue does with jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueState {
    /// Takes and starts jobs.
    #[default]
    Open,
    /// Takes jobs, starts none.
    Stopped,
    /// Takes none, starts those it has.
    Draining,
    /// Neither takes nor starts any.
    Closed,
}

impl QueueState {
    /// Whether new jobs may be submitted.
    pub fn takes(self) -> bool {
        matches!(self, Self::Open | Self::Stopped)
    }
    /// Whether jobs may start.
    pub fn starts(self) -> bool {
        matches!(self, Self::Open | Self::Draining)
    }
}

/// A node of the tree of queues; jobs sit in leaves. A Slurm partition and a KAI queue are both views of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Name.
    pub name: String,
    /// The queue above, where there is one.
    pub parent: Option<QueueId>,
    /// Whether it takes and starts jobs.
    pub state: QueueState,
    /// Jobs that name no queue go here. At most one queue is it.
    pub default: bool,
    /// Higher goes first among queues.
    pub priority: i64,
    /// Time limit of a job that names none; `None`: the longest.
    pub default_time: Option<Span>,
    /// Longest time limit; `None`: no bound.
    pub max_time: Option<Span>,
    /// Most nodes of one job; `None`: no bound.
    pub max_nodes: Option<u32>,
    /// Memory in MiB per core of a job that names none; `None`: one node's memory shared out by cores.
    pub default_mem_per_cpu: Option<u64>,
    /// Features that a node must have to run its jobs.
    pub node_features: Vec<String>,
    /// What its jobs may count on (KAI's quota).
    pub quota: Amounts,
    /// What its jobs may not pass together; a resource that is not named has no bound. Binds like `limits.in_use`.
    pub limit: Amounts,
    /// Share of what is left over, relative to its siblings, at least 0.
    pub weight: i64,
    /// What its jobs, and those of the queues below, may use together.
    pub limits: UseLimits,
    /// What each user's jobs in it and below may use.
    pub per_user: UseLimits,
    /// QOS by name of jobs that name none and whose account says nothing.
    pub default_qos: Option<String>,
}

/// Who pays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Name.
    pub name: String,
    /// Name of the account above, where there is one.
    pub parent: Option<String>,
    /// Free text.
    pub description: String,
    /// Share relative to its siblings, at least 0.
    pub shares: i64,
    /// What its jobs, and those of the accounts below, may use together.
    pub limits: UseLimits,
    /// What each user's jobs in it and below may use, where the user has no limits of its own there.
    pub per_user: UseLimits,
    /// QOS by name of jobs that name none; `None`: that of the account above, else the queue's.
    pub default_qos: Option<String>,
}

/// A person or service that submits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// User id: its key.
    pub uid: Uid,
    /// Login name.
    pub name: String,
    /// Account of jobs that name none.
    pub default_account: Option<String>,
    /// Accounts that may be named; empty: any.
    pub accounts: Vec<String>,
    /// What the user's jobs may use in all accounts together.
    pub limits: UseLimits,
    /// What the user's jobs may use in single accounts.
    pub associations: Vec<Association>,
}

/// A quality of service: a class of jobs with a priority and limits of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qos {
    /// Name.
    pub name: String,
    /// Free text.
    pub description: String,
    /// Higher goes first, as far as the priority policy looks at it.
    pub priority: i64,
    /// Accounts by name whose jobs may have it; empty: any.
    pub accounts: Vec<String>,
    /// Users by name whose jobs may have it; empty: any.
    pub users: Vec<String>,
    /// What its jobs may use together.
    pub limits: UseLimits,
    /// What each user's jobs in it may use.
    pub per_user: UseLimits,
    /// What each account's jobs in it may use; the accounts below count on their own.
    pub per_account: UseLimits,
}

/// A counted thing that no node has: a cluster-wide pool that jobs take from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Licence {
    /// Name.
    pub name: String,
    /// How many there are. Where more are in use, because the count was lowered, none is given out.
    pub count: u32,
}

/// Who a caller is, as an authentication policy attested it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// User id.
    pub uid: Uid,
    /// Primary group id.
    pub gid: u32,
    /// Login name.
    pub name: String,
    /// Roles, such as `operator`.
    pub roles: Vec<String>,
}
