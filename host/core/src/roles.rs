//! What the core asks of policies, role by role: the Wasm host fills these, and tests may with plain Rust.

use crate::cycle::Cycle;
use crate::records::{Fading, Uncharged};
use crate::state::State;
use ephor_model::{AccountId, Draft, Identity, JobId, JobSpec, QueueId, ResourceId, Timestamp, Uid};
use std::sync::Arc;

/// How a policy failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// It trapped.
    Trap,
    /// Its fuel ended.
    Fuel,
    /// It asked for more memory than it may have.
    Memory,
    /// It handed over more than it may.
    Output,
    /// What it returned makes no sense.
    BadValue,
    /// It could not be loaded or started.
    Start,
    /// Nothing fills the role.
    Missing,
}

impl FaultKind {
    /// Name in metrics and lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::Fuel => "fuel",
            Self::Memory => "memory",
            Self::Output => "output",
            Self::BadValue => "bad-value",
            Self::Start => "start",
            Self::Missing => "missing",
        }
    }
}

/// A policy's failure, with everything that a person needs to find it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {policy} policy failed ({}): {message}", kind.name())]
pub struct Fault {
    /// How.
    pub kind: FaultKind,
    /// Role, name and generation, such as `scheduling 'backfill' generation 3`.
    pub policy: String,
    /// In words, with a short backtrace where there is one.
    pub message: String,
}

/// What a caller brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// The connection itself.
    Local,
    /// A bearer token.
    Bearer(String),
}

/// What the operating system attested of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// User id.
    pub uid: Uid,
    /// Group id.
    pub gid: u32,
    /// The node whose agent attested it; `None`: the controller's own socket.
    pub node: Option<String>,
}

/// An attested identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Who.
    pub identity: Identity,
    /// Ask again after this.
    pub valid_until: Option<Timestamp>,
}

/// What is about to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Submit a job.
    Submit,
    /// See a job.
    JobRead,
    /// Change a job.
    JobWrite,
    /// See the cluster.
    ClusterRead,
    /// Change the cluster's objects.
    ClusterWrite,
    /// Change policies.
    PolicyWrite,
    /// Issue join tokens.
    NodeToken,
    /// Copy the whole state.
    Backup,
}

/// What it is done to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Owner, where it is a job.
    pub owner: Option<Uid>,
    /// Name or number.
    pub name: String,
}

/// The authentication role.
pub trait Authentication: Send + Sync {
    /// Who is calling? The inner error is for the caller.
    ///
    /// # Errors
    /// The policy failed: refuse.
    fn authenticate(
        &self,
        now: Timestamp,
        credential: &Credential,
        peer: &Peer,
    ) -> Result<Result<Session, String>, Fault>;
    /// May this identity do that? The inner error is for the caller.
    ///
    /// # Errors
    /// The policy failed: refuse.
    fn authorize(
        &self,
        now: Timestamp,
        who: &Identity,
        what: Permission,
        target: &Target,
    ) -> Result<Result<(), String>, Fault>;
}

/// Verdict of the admission chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Taken, as changed, with lines for the user.
    Admit(Box<Draft>, Vec<String>),
    /// Refused, with a text for the user.
    Refuse(String),
}

/// What a draft is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// To be a new job.
    Submit,
    /// To take the place of a job, which is this now.
    Modify(Arc<JobSpec>),
}

/// One admission policy.
pub trait Admission: Send + Sync {
    /// Take it, change it, or refuse it.
    ///
    /// # Errors
    /// The policy failed: refuse.
    fn admit(
        &self,
        now: Timestamp,
        who: &Identity,
        intent: &Intent,
        draft: Draft,
        cluster: &Arc<ClusterView>,
    ) -> Result<Verdict, Fault>;
    /// Whether it may change the draft; those that may run first.
    fn mutating(&self) -> bool;
}

/// What admission may see of the cluster: the state, and what could ever run.
pub struct ClusterView {
    /// The state.
    pub state: State,
    /// Answers whether a draft could ever run: `Some(why not)`.
    pub never_runs: NeverRuns,
}

/// Says why a draft could never run; `None` where it could.
pub type NeverRuns = Box<dyn Fn(&State, &Draft) -> Option<String> + Send + Sync>;

/// One row of a priority batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorityRow {
    /// Job.
    pub job: JobId,
    /// Times.
    pub submitted: Timestamp,
    /// When it could first have run.
    pub eligible: Timestamp,
    /// Ids.
    pub queue: QueueId,
    /// Account.
    pub account: AccountId,
    /// User.
    pub user: Uid,
    /// Nice.
    pub nice: i64,
    /// Totals at its fewest nodes: millicores, MiB, milli-GPU, nodes.
    pub cpus: i64,
    /// MiB.
    pub mem: i64,
    /// Milli-GPU.
    pub gpus: i64,
    /// Nodes.
    pub nodes: i64,
    /// Milliseconds; the largest i64 for none.
    pub time_limit: i64,
    /// Requeues so far.
    pub requeues: i64,
    /// Priority of its queue.
    pub queue_priority: i64,
    /// Decayed charge of its account and user.
    pub usage: i64,
}

/// The jobs of one priority call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriorityBatch {
    /// Now.
    pub now: Timestamp,
    /// The rows.
    pub rows: Vec<PriorityRow>,
    /// Totals by name: `cpus`, `mem`, `gpus`, `nodes`, `max-queue-priority`, `usage`.
    pub totals: Vec<(&'static str, i64)>,
}

/// One part of a priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Name.
    pub name: String,
    /// What it adds.
    pub value: i64,
    /// How it came about.
    pub how: String,
}

/// The priority role.
pub trait Priority: Send + Sync {
    /// One value a row.
    ///
    /// # Errors
    /// The policy failed: the last good generation orders, else submission order.
    fn prioritize(&self, batch: Arc<PriorityBatch>) -> Result<Vec<i64>, Fault>;
    /// The parts of one row's priority.
    ///
    /// # Errors
    /// The policy failed.
    fn explain(&self, batch: Arc<PriorityBatch>, row: u32) -> Result<Vec<Factor>, Fault>;
}

/// The scheduling role.
pub trait Scheduling: Send {
    /// Make a plan. The cycle always comes back; after a fault the caller drops what was planned.
    fn schedule(&mut self, cycle: Box<Cycle>) -> (Box<Cycle>, Result<(), Fault>);
    /// Role, name and generation, for explanations.
    fn label(&self) -> String;
}

/// What a scope may still start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Account; `None`: any.
    pub account: Option<AccountId>,
    /// User; `None`: any.
    pub user: Option<Uid>,
    /// Resource.
    pub resource: ResourceId,
    /// How much more may run.
    pub remaining: i64,
}

/// The accounting role.
pub trait Accounting: Send + Sync {
    /// The price of each row.
    ///
    /// # Errors
    /// The policy failed: the rows stay uncharged.
    fn charge(&self, ended: Arc<Vec<Uncharged>>) -> Result<Vec<i64>, Fault>;
    /// What may still start.
    ///
    /// # Errors
    /// The policy failed: nothing is bounded by it.
    fn allowances(&self, now: Timestamp) -> Result<Vec<Allowance>, Fault>;
    /// How the ledger fades.
    ///
    /// # Errors
    /// The policy failed.
    fn decay(&self) -> Result<Fading, Fault>;
}
