//! A job under decision, for admission policies.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::admission::{Draft, Gpus, Memory};
use crate::{Amount, Duration};

/// What a job asks for. [`Default`] is a job of one task on one core that leaves everything else open.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "so is the contract")]
pub struct JobValues {
    /// Name of the job.
    pub name: String,
    /// Empty when the user named none.
    pub queue: String,
    /// Empty when the user named none.
    pub account: String,
    /// Quality of service.
    pub qos: Option<String>,
    /// Free text of the user.
    pub comment: Option<String>,
    /// Longest run.
    pub time_limit: Option<Duration>,
    /// Fewest nodes.
    pub nodes_min: u32,
    /// Most nodes.
    pub nodes_max: Option<u32>,
    /// Tasks in all.
    pub tasks: u32,
    /// Cores of each task.
    pub cpus_per_task: u32,
    /// Memory.
    pub memory: Memory,
    /// GPUs.
    pub gpus: Gpus,
    /// Type of GPU.
    pub gpu_types: Vec<String>,
    /// Features of its nodes.
    pub features: Vec<String>,
    /// What is demanded of features beyond them.
    pub constraint: Option<String>,
    /// Whether it shares its nodes with no other job.
    pub exclusive: bool,
    /// How far it steps back.
    pub nice: i64,
    /// Whether it waits until it is released.
    pub hold: bool,
    /// Whether it may run again.
    pub requeue: Option<bool>,
    /// Elements of the array.
    pub elements: u32,
    /// Working directory.
    pub work_dir: String,
    /// The script; none: a command.
    pub script: Option<Vec<u8>>,
    /// All it asks for.
    pub total: Vec<Amount>,
    /// Why no node could ever run it.
    pub never_runs: Option<String>,
    /// The environment.
    pub environment: BTreeMap<String, String>,
    /// User id that it runs as.
    pub owner: u32,
}

impl Default for JobValues {
    fn default() -> Self {
        Self {
            name: "job".to_owned(),
            queue: String::new(),
            account: String::new(),
            qos: None,
            comment: None,
            time_limit: None,
            nodes_min: 1,
            nodes_max: None,
            tasks: 1,
            cpus_per_task: 1,
            memory: Memory::Unset,
            gpus: Gpus::None,
            gpu_types: Vec::new(),
            features: Vec::new(),
            constraint: None,
            exclusive: false,
            nice: 0,
            hold: false,
            requeue: None,
            elements: 1,
            work_dir: "/".to_owned(),
            script: None,
            total: Vec::new(),
            never_runs: None,
            environment: BTreeMap::new(),
            owner: 1000,
        }
    }
}

/// A draft: the values of a job, whether they may be changed, and the job as it is where it is being modified.
///
/// Setters check nothing but `read_only`: the host's limits are its own.
#[derive(Clone, Debug, Default)]
pub struct FakeDraft {
    values: RefCell<JobValues>,
    /// The job as it is, when the intent is to modify.
    pub current: Option<JobValues>,
    /// As for a validating policy: every setter answers an error.
    pub read_only: bool,
}

impl FakeDraft {
    /// A draft of a new job.
    pub fn new(values: JobValues) -> Self {
        Self { values: RefCell::new(values), current: None, read_only: false }
    }

    /// The values with the changes made so far.
    pub fn values(&self) -> JobValues {
        self.values.borrow().clone()
    }

    fn set(&self, change: impl FnOnce(&mut JobValues)) -> Result<(), String> {
        if self.read_only {
            return Err("a validating policy changes nothing".to_owned());
        }
        change(&mut self.values.borrow_mut());
        Ok(())
    }
}

impl Draft for FakeDraft {
    fn name(&self) -> String {
        self.values.borrow().name.clone()
    }
    fn queue(&self) -> String {
        self.values.borrow().queue.clone()
    }
    fn set_queue(&self, name: &str) -> Result<(), String> {
        self.set(|job| job.queue = name.to_owned())
    }
    fn account(&self) -> String {
        self.values.borrow().account.clone()
    }
    fn set_account(&self, name: &str) -> Result<(), String> {
        self.set(|job| job.account = name.to_owned())
    }
    fn qos(&self) -> Option<String> {
        self.values.borrow().qos.clone()
    }
    fn comment(&self) -> Option<String> {
        self.values.borrow().comment.clone()
    }
    fn set_comment(&self, text: Option<&str>) -> Result<(), String> {
        self.set(|job| job.comment = text.map(str::to_owned))
    }
    fn time_limit(&self) -> Option<Duration> {
        self.values.borrow().time_limit
    }
    fn set_time_limit(&self, limit: Option<Duration>) -> Result<(), String> {
        self.set(|job| job.time_limit = limit)
    }
    fn nodes_min(&self) -> u32 {
        self.values.borrow().nodes_min
    }
    fn nodes_max(&self) -> Option<u32> {
        self.values.borrow().nodes_max
    }
    fn set_nodes(&self, min: u32, max: Option<u32>) -> Result<(), String> {
        self.set(|job| (job.nodes_min, job.nodes_max) = (min, max))
    }
    fn tasks(&self) -> u32 {
        self.values.borrow().tasks
    }
    fn set_tasks(&self, tasks: u32) -> Result<(), String> {
        self.set(|job| job.tasks = tasks)
    }
    fn cpus_per_task(&self) -> u32 {
        self.values.borrow().cpus_per_task
    }
    fn set_cpus_per_task(&self, cpus: u32) -> Result<(), String> {
        self.set(|job| job.cpus_per_task = cpus)
    }
    fn memory(&self) -> Memory {
        self.values.borrow().memory.clone()
    }
    fn set_memory(&self, memory: &Memory) -> Result<(), String> {
        self.set(|job| job.memory = memory.clone())
    }
    fn gpus(&self) -> Gpus {
        self.values.borrow().gpus.clone()
    }
    fn gpu_types(&self) -> Vec<String> {
        self.values.borrow().gpu_types.clone()
    }
    fn set_gpus(&self, gpus: &Gpus, types: &[String]) -> Result<(), String> {
        self.set(|job| (job.gpus, job.gpu_types) = (gpus.clone(), types.to_vec()))
    }
    fn features(&self) -> Vec<String> {
        self.values.borrow().features.clone()
    }
    fn set_features(&self, features: &[String]) -> Result<(), String> {
        self.set(|job| job.features = features.to_vec())
    }
    fn constraint(&self) -> Option<String> {
        self.values.borrow().constraint.clone()
    }
    fn set_constraint(&self, text: Option<&str>) -> Result<(), String> {
        self.set(|job| job.constraint = text.map(str::to_owned))
    }
    fn exclusive(&self) -> bool {
        self.values.borrow().exclusive
    }
    fn set_exclusive(&self, exclusive: bool) -> Result<(), String> {
        self.set(|job| job.exclusive = exclusive)
    }
    fn nice(&self) -> i64 {
        self.values.borrow().nice
    }
    fn set_nice(&self, nice: i64) -> Result<(), String> {
        self.set(|job| job.nice = nice)
    }
    fn hold(&self) -> bool {
        self.values.borrow().hold
    }
    fn set_hold(&self, hold: bool) -> Result<(), String> {
        self.set(|job| job.hold = hold)
    }
    fn requeue(&self) -> Option<bool> {
        self.values.borrow().requeue
    }
    fn set_requeue(&self, requeue: Option<bool>) -> Result<(), String> {
        self.set(|job| job.requeue = requeue)
    }
    fn elements(&self) -> u32 {
        self.values.borrow().elements
    }
    fn work_dir(&self) -> String {
        self.values.borrow().work_dir.clone()
    }
    fn has_script(&self) -> bool {
        self.values.borrow().script.is_some()
    }
    fn script(&self) -> Option<Vec<u8>> {
        self.values.borrow().script.clone()
    }
    fn environment(&self, name: &str) -> Option<String> {
        self.values.borrow().environment.get(name).cloned()
    }
    fn total(&self) -> Vec<Amount> {
        self.values.borrow().total.clone()
    }
    fn current(&self) -> Option<Self> {
        self.current.clone().map(Self::new)
    }
    fn owner(&self) -> u32 {
        self.values.borrow().owner
    }
    fn never_runs(&self) -> Option<String> {
        self.values.borrow().never_runs.clone()
    }
}
