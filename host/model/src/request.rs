//! What a job asks for, as typed numbers: nodes, tasks, cores, memory, GPUs, features.

use crate::constraint::Constraint;
use crate::limits;
use crate::resource::{Amounts, ResourceId};
use serde::{Deserialize, Serialize};

/// How memory was asked for. All amounts in MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MemRequest {
    /// Not said: admission fills it in.
    #[default]
    Unset,
    /// On each node of the job.
    PerNode(u64),
    /// For each core of the job.
    PerCpu(u64),
}

/// How GPUs were asked for. Counts are whole GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GpuRequest {
    /// None.
    #[default]
    None,
    /// On each node of the job.
    PerNode(u32),
    /// For each task of the job.
    PerTask(u32),
    /// Over all nodes of the job together.
    Total(u32),
}

/// What a job needs in order to run. One node and one task of one core where nothing is said.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Request {
    /// Fewest nodes, at least 1.
    pub nodes_min: u32,
    /// Most nodes; `None`: as many as the tasks are spread over, at least `nodes_min`.
    pub nodes_max: Option<u32>,
    /// Tasks in all; `None`: one per node, or `tasks_per_node` times the nodes.
    pub tasks: Option<u32>,
    /// Tasks on each node, exactly where `tasks` is not given and at most where it is.
    pub tasks_per_node: Option<u32>,
    /// Cores for each task, at least 1.
    pub cpus_per_task: u32,
    /// Memory.
    pub mem: MemRequest,
    /// GPUs.
    pub gpus: GpuRequest,
    /// Type of the GPUs, such as `h100`; `None`: any.
    pub gpu_type: Option<String>,
    /// Node features that each node must have.
    pub features: Vec<String>,
    /// Nodes that must be part of the allocation, by name.
    pub node_list: Vec<String>,
    /// Nodes that must not be part of it, by name.
    pub exclude: Vec<String>,
    /// Whether the nodes may be shared with other jobs.
    pub exclusive: bool,
    /// What is demanded of the nodes' features beyond `features`.
    pub constraint: Option<Constraint>,
    /// Whether its nodes are to be close to each other.
    pub topology: Option<Topology>,
}

/// That all nodes of a job are to be below one domain of a level: a node with the feature `rack=r1` is in domain `r1` of
/// level `rack`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Topology {
    /// The level, such as `rack`.
    pub level: String,
    /// Whether the job waits until that can be; else it is a wish.
    pub required: bool,
}

impl Topology {
    /// Reads the name of a level.
    ///
    /// # Errors
    /// What cannot be the name of one.
    pub fn read(level: &str, required: bool) -> Result<Self, String> {
        let bad = |c: char| "=&|[]()*,!{}\"'".contains(c) || c.is_whitespace();
        match level.is_empty() || level.len() > limits::NAME_BYTES || level.contains(bad) {
            true => Err(format!("'{level}' is not a level of the topology; write one like rack")),
            false => Ok(Self { level: level.to_owned(), required }),
        }
    }
}

impl Default for Request {
    fn default() -> Self {
        Self {
            nodes_min: 1,
            nodes_max: None,
            tasks: None,
            tasks_per_node: None,
            cpus_per_task: 1,
            mem: MemRequest::Unset,
            gpus: GpuRequest::None,
            gpu_type: None,
            features: Vec::new(),
            node_list: Vec::new(),
            exclude: Vec::new(),
            exclusive: false,
            constraint: None,
            topology: None,
        }
    }
}

impl Request {
    /// Tasks in all, at the fewest nodes.
    pub fn task_count(&self) -> u32 {
        self.tasks.unwrap_or_else(|| self.tasks_per_node.unwrap_or(1).saturating_mul(self.nodes_min))
    }

    /// How the parts of the request contradict each other; `None`: they do not.
    pub fn contradiction(&self) -> Option<String> {
        let counted = self.constraint.as_ref().map_or(0, Constraint::counted);
        if counted == 0 {
            return None;
        }
        if counted > self.nodes_min {
            return Some(format!(
                "the constraint names {counted} nodes, and the job asks for {} with -N",
                self.nodes_min
            ));
        }
        // What a node contributes would decide which of them to count, and that depends on all the others.
        let sums = self.tasks.is_some() || matches!(self.gpus, GpuRequest::Total(_));
        sums.then(|| {
            "a constraint that counts nodes needs tasks and GPUs for each node: --ntasks-per-node and --gpus-per-node in \
             place of --ntasks and --gpus"
                .into()
        })
    }

    /// Cores in all, at the fewest nodes.
    pub fn cpu_count(&self) -> u64 {
        u64::from(self.task_count()) * u64::from(self.cpus_per_task)
    }

    /// What one task takes. Memory per node and GPUs per node are not in it.
    pub fn per_task(&self) -> Amounts {
        let mut each = Amounts::new().with(ResourceId::CPU, i64::from(self.cpus_per_task) * 1000);
        if let MemRequest::PerCpu(mib) = self.mem {
            each.set(ResourceId::MEM, (mib as i64).saturating_mul(i64::from(self.cpus_per_task)));
        }
        if let GpuRequest::PerTask(n) = self.gpus {
            each.set(ResourceId::GPU, i64::from(n) * 1000);
        }
        each
    }

    /// What each node gives besides its tasks' part: memory and GPUs asked for per node.
    pub fn per_node(&self) -> Amounts {
        let mut each = Amounts::new();
        if let MemRequest::PerNode(mib) = self.mem {
            each.set(ResourceId::MEM, mib as i64);
        }
        if let GpuRequest::PerNode(n) = self.gpus {
            each.set(ResourceId::GPU, i64::from(n) * 1000);
        }
        each
    }

    /// What the job takes in all, at its fewest nodes: for limits, charges and priority.
    pub fn total(&self) -> Amounts {
        let mut all = self.per_task().scaled(i64::from(self.task_count()));
        all.add_scaled(&self.per_node(), i64::from(self.nodes_min));
        if let GpuRequest::Total(n) = self.gpus {
            all.set(ResourceId::GPU, i64::from(n) * 1000);
        }
        all.set(ResourceId::NODE, i64::from(self.nodes_min));
        all
    }
}
