//! The records that the state is made of.

use crate::devices::DeviceOut;
use crate::eviction::Eviction;
use crate::past_use::PastTime;
use ephor_model::{
    AccountId, Allocation, Amounts, AttemptKey, Dependency, DependencyKind, Digest, EndCause, Epoch, Exit, Generation,
    Hold, JobId, JobSpec, JobState, NodeId, NodeSpec, QosId, QueueId, ReasonCode, ResourceId, Span, Timestamp, Uid,
    Usage,
};
use imbl::Vector;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was submitted at once: a single job or a whole array. Its elements differ only in their [`Element`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Id of the first element: the array's id.
    pub id: JobId,
    /// The specification after admission.
    pub spec: Arc<JobSpec>,
    /// Queue.
    pub queue: QueueId,
    /// Account.
    pub account: AccountId,
    /// When it was acknowledged.
    pub submitted: Timestamp,
    /// Digest of the script, where there is one.
    pub script: Option<Digest>,
    /// Digest of the environment.
    pub environment: Digest,
    /// Dependencies that are not yet decided.
    pub waiting: Vec<Dependency>,
    /// A dependency can no longer be satisfied.
    pub never: bool,
    /// Quality of service.
    pub qos: Option<QosId>,
    /// Licences with their counts, for each element.
    pub licences: Vec<(ResourceId, u32)>,
}

/// What changes over the life of one schedulable job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Element {
    /// Where it is in its life.
    pub state: JobState,
    /// Who holds it back.
    pub hold: Hold,
    /// Attempts so far.
    pub attempts: u32,
    /// When it could first have run (its begin time counts): ages count from here. `None` while it waits for others
    /// or is held.
    pub eligible: Option<Timestamp>,
    /// Start of the last attempt.
    pub started: Option<Timestamp>,
    /// End of the last attempt, or of the wait.
    pub ended: Option<Timestamp>,
    /// How the last attempt ended.
    pub exit: Exit,
    /// Why it ended so, or what went wrong in the last attempt.
    pub reason: ReasonCode,
    /// Text to the reason.
    pub detail: Option<Arc<str>>,
    /// Allocation of the last ended attempt, for lists and the history.
    pub last: Option<Arc<Allocation>>,
    /// Use of all ended attempts.
    pub usage: Option<Arc<Usage>>,
    /// Charge of all ended attempts, in accounting units.
    pub charge: Option<i64>,
    /// Element-wise dependencies that are satisfied for this element: one bit each, see [`Job::corresponding_place`].
    pub met: u32,
    /// One of them never will be.
    pub never: bool,
}

impl Job {
    /// Place of an array among those that this one waits for element by element.
    pub fn corresponding_place(&self, awaited: JobId) -> u32 {
        let corresponding = self.spec.dependencies.iter().filter(|d| d.kind == DependencyKind::AfterCorr);
        corresponding.take_while(|d| d.job != awaited).count() as u32
    }

    /// Whether an element has to wait for other jobs, or has waited in vain.
    pub fn keeps_waiting(&self, element: &Element) -> bool {
        let open =
            |d: &Dependency| d.kind != DependencyKind::AfterCorr || !element.has_met(self.corresponding_place(d.job));
        self.never || element.never || self.waiting.iter().any(open)
    }
}

impl Element {
    /// An element as it is right after submission.
    pub fn fresh(job: &Job) -> Self {
        let hold = if job.spec.hold { Hold::User } else { Hold::None };
        let waits = !job.waiting.is_empty() || job.never || hold != Hold::None;
        let from = job.spec.begin.map_or(job.submitted, |b| b.max(job.submitted));
        Self {
            state: JobState::Pending,
            hold,
            attempts: 0,
            eligible: (!waits).then_some(from),
            started: None,
            ended: None,
            exit: Exit::default(),
            reason: ReasonCode::None,
            detail: None,
            last: None,
            usage: None,
            charge: None,
            met: 0,
            never: false,
        }
    }

    /// Whether the element-wise dependency at that place is satisfied.
    pub fn has_met(&self, place: u32) -> bool {
        self.met.checked_shr(place).is_some_and(|bits| bits & 1 == 1)
    }
}

/// The elements of a job. Those of an array that are as they were submitted share one allocation, so that an array
/// of 5,000 takes 40 KB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Of a single job.
    One(Element),
    /// Of an array, by ordinal.
    Many(Box<Vector<Arc<Element>>>),
}

impl Elements {
    /// All elements as they are right after submission.
    pub fn fresh(job: &Job) -> Self {
        let element = Element::fresh(job);
        match job.spec.array {
            None => Self::One(element),
            Some(_) => {
                let all = std::iter::repeat_n(Arc::new(element), job.spec.count() as usize);
                Self::Many(Box::new(all.collect()))
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(all) => all.len(),
        }
    }

    /// Whether there is none: never.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element with that ordinal.
    pub fn get(&self, ordinal: usize) -> Option<&Element> {
        match self {
            Self::One(element) => (ordinal == 0).then_some(element),
            Self::Many(all) => all.get(ordinal).map(Arc::as_ref),
        }
    }

    /// The element with that ordinal, to be changed.
    pub fn get_mut(&mut self, ordinal: usize) -> Option<&mut Element> {
        match self {
            Self::One(element) => (ordinal == 0).then_some(element),
            Self::Many(all) => all.get_mut(ordinal).map(Arc::make_mut),
        }
    }

    /// All of them, by ordinal.
    pub fn iter(&self) -> Box<dyn Iterator<Item = &Element> + '_> {
        match self {
            Self::One(element) => Box::new(std::iter::once(element)),
            Self::Many(all) => Box::new(all.iter().map(Arc::as_ref)),
        }
    }
}

/// A job with its elements, in the order of their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEntry {
    /// What was submitted.
    pub job: Arc<Job>,
    /// One for each id from `job.id` on.
    pub elements: Elements,
    /// How many of them are not finished.
    pub unfinished: u32,
    /// How many of them have an attempt.
    pub running: u32,
    /// How many of them are pending.
    pub pending: u32,
}

/// Where an attempt is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptPhase {
    /// Its launch is under way.
    Launching,
    /// Its node said that it runs.
    Running,
    /// Its end was ordered.
    Ending {
        /// Why: what the end will be reported as.
        cause: EndCause,
        /// When it was ordered.
        since: Timestamp,
        /// The eviction that it was ordered by.
        eviction: Option<Arc<Eviction>>,
    },
}

/// One run of a job that holds resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Job and number.
    pub key: AttemptKey,
    /// The epoch that it was first launched in.
    pub epoch: Epoch,
    /// What it holds.
    pub allocation: Arc<Allocation>,
    /// When the start was decided.
    pub started: Timestamp,
    /// When it ends at the latest, by its time limit.
    pub expected_end: Timestamp,
    /// Where it is.
    pub phase: AttemptPhase,
    /// One of its nodes is silent: lost, not ended (law 8).
    pub lost: bool,
}

/// Whether a node answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeHealth {
    /// Its agent has a session.
    Up,
    /// Its agent is silent, or never came.
    Down,
}

/// Why a node takes no new jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// Text of the person or mechanism.
    pub reason: String,
    /// Who.
    pub by: String,
    /// Since when.
    pub since: Timestamp,
}

/// A node as the controller knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Number.
    pub id: NodeId,
    /// What its agent found.
    pub spec: NodeSpec,
    /// Features that an administrator added.
    pub extra_features: Vec<String>,
    /// Amounts that an administrator added.
    pub extra_amounts: Amounts,
    /// Whether it answers.
    pub health: NodeHealth,
    /// Since when it has this health.
    pub since: Timestamp,
    /// Why it is down, in words.
    pub health_reason: String,
    /// Whether and why it takes no new jobs.
    pub drain: Option<Drain>,
    /// Devices that no job is given, by uuid.
    pub devices_out: BTreeMap<String, DeviceOut>,
    /// What is said of devices, by uuid, and is no ground any more to take them out: somebody knew it and took them back.
    pub devices_forgiven: BTreeMap<String, Vec<String>>,
}

impl Node {
    /// All its features, sorted and without repeats.
    pub fn features(&self) -> Vec<String> {
        let mut all: Vec<String> = self.spec.features.iter().chain(&self.extra_features).cloned().collect();
        all.sort();
        all.dedup();
        all
    }

    /// All it offers.
    pub fn capacity(&self) -> Amounts {
        let mut all = self.spec.capacity.clone();
        all.add(&self.extra_amounts);
        all
    }

    /// Whether new attempts may start on it.
    pub fn takes_jobs(&self) -> bool {
        self.health == NodeHealth::Up && self.drain.is_none()
    }
}

/// What fills a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicySlot {
    /// The generation that decides; `None` while disabled.
    pub live: Option<Arc<Generation>>,
    /// Earlier generations, newest last, for rollback; at most [`ephor_model::limits::GENERATIONS_KEPT`].
    pub earlier: Vec<Arc<Generation>>,
}

/// Use and charge of an account's user, in accounting units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// Everything ever charged.
    pub total: i64,
    /// The same, faded.
    pub decayed: i64,
}

/// Whose ledger.
pub type LedgerKey = (AccountId, Uid);

/// What one ended attempt used, until it is charged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncharged {
    /// Which attempt.
    pub key: AttemptKey,
    /// Queue, account and user.
    pub queue: QueueId,
    /// Account.
    pub account: AccountId,
    /// User.
    pub user: Uid,
    /// Start and end.
    pub started: Timestamp,
    /// End.
    pub ended: Timestamp,
    /// What it held.
    pub held: Amounts,
    /// Measured use.
    pub usage: Usage,
    /// How it ended.
    pub state: JobState,
}

/// How the ledger fades: see the accounting role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fading {
    /// Length of a period; 0: never.
    pub period: Span,
    /// What remains after one, in parts of 2^32.
    pub factor: u64,
}

impl Fading {
    /// Whether it fades at all.
    pub(crate) fn fades(self) -> bool {
        self.period.0 > 0 && self.factor <= 1 << 32
    }
}

/// A join token that was issued and not used, by the digest of its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenToken {
    /// The only node that may use it; empty: any.
    pub node: String,
    /// Not after.
    pub expires: Timestamp,
}

/// Counters and single values of the state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Epoch of the controller.
    pub epoch: Epoch,
    /// Time of the last event: time never goes back.
    pub now: Timestamp,
    /// Number of events so far.
    pub events: u64,
    /// Next id to give.
    pub next_job: u64,
    /// Next id to give.
    pub next_node: u32,
    /// Next id to give.
    pub next_queue: u32,
    /// Next id to give.
    pub next_account: u32,
    /// Next number to give.
    pub next_generation: u64,
    /// The ledger's fading.
    pub fading: Fading,
    /// Last period boundary at which the ledger faded.
    pub faded_at: Timestamp,
    /// Next id to give.
    pub next_qos: u32,
    /// How many licences were ever made: the next one's number, from [`ResourceId::FIRST_SITE`] on.
    pub licences_made: u16,
    /// Next number to give.
    pub next_reservation: u32,
    /// The time that past use of queues is about.
    pub past_time: PastTime,
}

/// Whether a dependency of that kind is satisfied (`Some(true)`), impossible (`Some(false)`) or open by an element
/// in that state.
pub fn dependency_outcome(kind: DependencyKind, element: &Element) -> Option<bool> {
    let state = element.state;
    match kind {
        DependencyKind::After => (state != JobState::Pending).then_some(true),
        _ if !state.is_final() => None,
        DependencyKind::AfterAny | DependencyKind::Singleton => Some(true),
        DependencyKind::AfterOk | DependencyKind::AfterCorr => Some(state == JobState::Completed),
        DependencyKind::AfterNotOk => Some(state != JobState::Completed),
    }
}
