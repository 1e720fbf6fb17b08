//! The admission role: whether a job is taken, and with what changes.

use serde::de::DeserializeOwned;

use crate::bindings::admission::ephor::admission::drafts as wit;
pub use crate::bindings::admission::exports::ephor::admission::admission::{Intent, Verdict};
pub use wit::{Gpus, Memory, QueueInfo};

use crate::{Amount, Duration, Identity, Timestamp};

/// An admission policy.
pub trait Admission {
    /// Its configuration. The default stands where the site gave none.
    type Config: DeserializeOwned + Default + Send + Sync + 'static;

    /// Takes the job, with the changes made to `job`, or refuses it with a text that says what would work.
    fn admit<D: Draft, S: Site>(
        now: Timestamp,
        who: &Identity,
        intent: Intent,
        job: &D,
        site: &S,
        config: &Self::Config,
    ) -> Verdict;
}

/// The parsed request. Getters answer what the job would be now, with the changes made so far.
///
/// Setters answer an error, and change nothing, where the policy is not a mutating one or the value is out of range.
#[allow(clippy::missing_errors_doc, reason = "the same for each: see the trait")]
pub trait Draft: Sized {
    /// Name of the job.
    fn name(&self) -> String;
    /// Empty when the user named none.
    fn queue(&self) -> String;
    /// Sets [`Draft::queue`].
    fn set_queue(&self, name: &str) -> Result<(), String>;
    /// Empty when the user named none.
    fn account(&self) -> String;
    /// Sets [`Draft::account`].
    fn set_account(&self, name: &str) -> Result<(), String>;
    /// Quality of service that was asked for.
    fn qos(&self) -> Option<String>;
    /// Free text of the user.
    fn comment(&self) -> Option<String>;
    /// Sets [`Draft::comment`].
    fn set_comment(&self, text: Option<&str>) -> Result<(), String>;
    /// Longest run that was asked for.
    fn time_limit(&self) -> Option<Duration>;
    /// Sets [`Draft::time_limit`].
    fn set_time_limit(&self, limit: Option<Duration>) -> Result<(), String>;
    /// Fewest nodes.
    fn nodes_min(&self) -> u32;
    /// Most nodes; none: as many as `nodes_min`.
    fn nodes_max(&self) -> Option<u32>;
    /// Sets [`Draft::nodes_min`].
    fn set_nodes(&self, min: u32, max: Option<u32>) -> Result<(), String>;
    /// Tasks in all, also when they follow from nodes and tasks per node.
    fn tasks(&self) -> u32;
    /// Sets [`Draft::tasks`].
    fn set_tasks(&self, tasks: u32) -> Result<(), String>;
    /// Cores of each task.
    fn cpus_per_task(&self) -> u32;
    /// Sets [`Draft::cpus_per_task`].
    fn set_cpus_per_task(&self, cpus: u32) -> Result<(), String>;
    /// Memory.
    fn memory(&self) -> Memory;
    /// Sets [`Draft::memory`].
    fn set_memory(&self, memory: &Memory) -> Result<(), String>;
    /// GPUs.
    fn gpus(&self) -> Gpus;
    /// Types of GPU that will do; none: any.
    fn gpu_types(&self) -> Vec<String>;
    /// Sets [`Draft::gpus`].
    fn set_gpus(&self, gpus: &Gpus, types: &[String]) -> Result<(), String>;
    /// Features that its nodes must have.
    fn features(&self) -> Vec<String>;
    /// Sets [`Draft::features`].
    fn set_features(&self, features: &[String]) -> Result<(), String>;
    /// What is demanded of the features of its nodes beyond those that all must have.
    fn constraint(&self) -> Option<String>;
    /// Sets [`Draft::constraint`].
    fn set_constraint(&self, text: Option<&str>) -> Result<(), String>;
    /// Whether it shares its nodes with no other job.
    fn exclusive(&self) -> bool;
    /// Sets [`Draft::exclusive`].
    fn set_exclusive(&self, exclusive: bool) -> Result<(), String>;
    /// How far it steps back; more is later.
    fn nice(&self) -> i64;
    /// Sets [`Draft::nice`].
    fn set_nice(&self, nice: i64) -> Result<(), String>;
    /// Whether it waits until it is released.
    fn hold(&self) -> bool;
    /// Sets [`Draft::hold`].
    fn set_hold(&self, hold: bool) -> Result<(), String>;
    /// Whether it may run again after a failure of its node; none: the user did not say.
    fn requeue(&self) -> Option<bool>;
    /// Sets [`Draft::requeue`].
    fn set_requeue(&self, requeue: Option<bool>) -> Result<(), String>;
    /// Elements of the array; 1 for a job that is none.
    fn elements(&self) -> u32;
    /// Its working directory.
    fn work_dir(&self) -> String;
    /// Whether a script was given (else a command).
    fn has_script(&self) -> bool;
    /// The script, at most 4 MiB. 1 host work unit a KiB.
    fn script(&self) -> Option<Vec<u8>>;
    /// One variable of the job's environment.
    fn environment(&self, name: &str) -> Option<String>;
    /// All the job asks for at its fewest nodes, as amounts.
    fn total(&self) -> Vec<Amount>;
    /// The job as it is, when the intent is to modify.
    fn current(&self) -> Option<Self>;
    /// User id that it runs as: that of who asks, except where somebody changes another's job.
    fn owner(&self) -> u32;
    /// Why no node or set of nodes could ever run it, naming the limit and the numbers; none where some could.
    /// Down and drained nodes count as if they were up. 1 host work unit for each kind of node.
    fn never_runs(&self) -> Option<String>;
}

/// The cluster around the job.
pub trait Site {
    /// The queue of that name.
    fn queue(&self, name: &str) -> Option<QueueInfo>;
    /// The queue of jobs that name none.
    fn default_queue(&self) -> Option<QueueInfo>;
    /// Names of all queues.
    fn queues(&self) -> Vec<String>;
    /// Whether the account is there, and whether this user may use it.
    fn may_use_account(&self, user: u32, account: &str) -> bool;
    /// The account of jobs of this user that name none.
    fn default_account(&self, user: u32) -> Option<String>;
    /// Jobs of this user that are not finished.
    fn live_jobs(&self, user: u32) -> u32;
}

/// The cluster as the host knows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostSite;

impl Site for HostSite {
    fn queue(&self, name: &str) -> Option<QueueInfo> {
        wit::queue(name)
    }
    fn default_queue(&self) -> Option<QueueInfo> {
        wit::default_queue()
    }
    fn queues(&self) -> Vec<String> {
        wit::queues()
    }
    fn may_use_account(&self, user: u32, account: &str) -> bool {
        wit::may_use_account(user, account)
    }
    fn default_account(&self, user: u32) -> Option<String> {
        wit::default_account(user)
    }
    fn live_jobs(&self, user: u32) -> u32 {
        wit::live_jobs(user)
    }
}

impl Draft for wit::Draft {
    fn name(&self) -> String {
        self.name()
    }
    fn queue(&self) -> String {
        self.queue()
    }
    fn set_queue(&self, name: &str) -> Result<(), String> {
        self.set_queue(name)
    }
    fn account(&self) -> String {
        self.account()
    }
    fn set_account(&self, name: &str) -> Result<(), String> {
        self.set_account(name)
    }
    fn qos(&self) -> Option<String> {
        self.qos()
    }
    fn comment(&self) -> Option<String> {
        self.comment()
    }
    fn set_comment(&self, text: Option<&str>) -> Result<(), String> {
        self.set_comment(text)
    }
    fn time_limit(&self) -> Option<Duration> {
        self.time_limit()
    }
    fn set_time_limit(&self, limit: Option<Duration>) -> Result<(), String> {
        self.set_time_limit(limit)
    }
    fn nodes_min(&self) -> u32 {
        self.nodes_min()
    }
    fn nodes_max(&self) -> Option<u32> {
        self.nodes_max()
    }
    fn set_nodes(&self, min: u32, max: Option<u32>) -> Result<(), String> {
        self.set_nodes(min, max)
    }
    fn tasks(&self) -> u32 {
        self.tasks()
    }
    fn set_tasks(&self, tasks: u32) -> Result<(), String> {
        self.set_tasks(tasks)
    }
    fn cpus_per_task(&self) -> u32 {
        self.cpus_per_task()
    }
    fn set_cpus_per_task(&self, cpus: u32) -> Result<(), String> {
        self.set_cpus_per_task(cpus)
    }
    fn memory(&self) -> Memory {
        self.memory()
    }
    fn set_memory(&self, memory: &Memory) -> Result<(), String> {
        self.set_memory(memory)
    }
    fn gpus(&self) -> Gpus {
        self.gpus()
    }
    fn gpu_types(&self) -> Vec<String> {
        self.gpu_types()
    }
    fn set_gpus(&self, gpus: &Gpus, types: &[String]) -> Result<(), String> {
        self.set_gpus(gpus, types)
    }
    fn features(&self) -> Vec<String> {
        self.features()
    }
    fn set_features(&self, features: &[String]) -> Result<(), String> {
        self.set_features(features)
    }
    fn constraint(&self) -> Option<String> {
        self.constraint()
    }
    fn set_constraint(&self, text: Option<&str>) -> Result<(), String> {
        self.set_constraint(text)
    }
    fn exclusive(&self) -> bool {
        self.exclusive()
    }
    fn set_exclusive(&self, exclusive: bool) -> Result<(), String> {
        self.set_exclusive(exclusive)
    }
    fn nice(&self) -> i64 {
        self.nice()
    }
    fn set_nice(&self, nice: i64) -> Result<(), String> {
        self.set_nice(nice)
    }
    fn hold(&self) -> bool {
        self.hold()
    }
    fn set_hold(&self, hold: bool) -> Result<(), String> {
        self.set_hold(hold)
    }
    fn requeue(&self) -> Option<bool> {
        self.requeue()
    }
    fn set_requeue(&self, requeue: Option<bool>) -> Result<(), String> {
        self.set_requeue(requeue)
    }
    fn elements(&self) -> u32 {
        self.elements()
    }
    fn work_dir(&self) -> String {
        self.work_dir()
    }
    fn has_script(&self) -> bool {
        self.has_script()
    }
    fn script(&self) -> Option<Vec<u8>> {
        self.script()
    }
    fn environment(&self, name: &str) -> Option<String> {
        self.environment(name)
    }
    fn total(&self) -> Vec<Amount> {
        self.total()
    }
    fn current(&self) -> Option<Self> {
        self.current()
    }
    fn owner(&self) -> u32 {
        self.owner()
    }
    fn never_runs(&self) -> Option<String> {
        self.never_runs()
    }
}
