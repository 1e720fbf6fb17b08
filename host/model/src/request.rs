//! What a job asks for, as typed numbers: nodes, tasks, cores, memory, GPUs, features.

use crate::constraint::Constraint;
use crate::limits;
use crate::resource::{Amounts, ResourceId};
use serde::{Deserialize, Serialize};

/// How memory was asked for. All amounts in MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MemRequest {
    /// Not said: admission fills it in.
    #[default]
    Unset,
    /// On each node of the job.
    PerNode(u64),
    /// For each core of the job.
    PerCpu(u64),
}

/// How GPUs were asked for. Counts are whole GPUs, but for [`GpuRequest::Share`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
    /// On each node of the job a part of one GPU, in thousandths: 1 to 999. Others may hold the rest of it.
    Share(u32),
}

/// What a job needs in order to run. One node and one task of one core where nothing is said.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Request {
    /// Fewest nodes, at least 1.
    pub nodes_min: u32,
    /// Most nodes; `None`: as many as the tasks are spread over, at least `nodes_min`.
    pub nodes_max: Option<u32>,
    /// Tasks in all; `None`: one per node, or `tasks_per_node` times the nodes.
    pub tasks: Option<u32>,
    /// Tasks on each node, exactly where `tasks` is not given and at most where it is.
    pub tasks_per_node: Option<u32>,
    /// Cores for each task, at least 1; where `cpu_milli` is given, that rounded up.
    pub cpus_per_task: u32,
    /// Memory.
    pub mem: MemRequest,
    /// GPUs.
    pub gpus: GpuRequest,
    /// Types of GPU that will do, such as `h100`, ascending, each once; none: any.
    pub gpu_types: Vec<String>,
    /// Node features that each node must have.
    pub features: Vec<String>,
    /// Nodes that must be part of the allocation, by name.
    pub node_list: Vec<String>,
    /// Nodes that must not be part of it, by name.
    pub exclude: Vec<String>,
    /// Whether the nodes may be shared with other jobs.
    pub exclusive: bool,
    /// Cores for each task in thousandths, where they are not whole.
    pub cpu_milli: Option<u32>,
    /// What is demanded of the nodes' features beyond `features`.
    pub constraint: Option<Constraint>,
    /// Whether its nodes are to be close to each other.
    pub topology: Option<Topology>,
}

/// That all nodes of a job are to be below one domain of a level: a node with the feature `rack=r1` is in domain `r1` of
/// level `rack`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
            gpu_types: Vec::new(),
            features: Vec::new(),
            node_list: Vec::new(),
            exclude: Vec::new(),
            exclusive: false,
            cpu_milli: None,
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

    /// Cores in all, at the fewest nodes; parts of a core rounded up.
    pub fn cpu_count(&self) -> u64 {
        (u64::from(self.task_count()) * self.cpu_milli_per_task()).div_ceil(1000)
    }

    /// Cores for each task, in thousandths.
    pub fn cpu_milli_per_task(&self) -> u64 {
        self.cpu_milli.map_or(u64::from(self.cpus_per_task) * 1000, u64::from)
    }

    /// Asks for that many thousandths of a core for each task, at least 1.
    pub fn set_cpu_milli(&mut self, milli: u32) {
        self.cpus_per_task = milli.div_ceil(1000).max(1);
        self.cpu_milli = (u64::from(milli) != u64::from(self.cpus_per_task) * 1000).then_some(milli);
    }

    /// Asks for GPUs of any of these types only; without one: of any type.
    pub fn set_gpu_types(&mut self, mut types: Vec<String>) {
        types.sort_unstable();
        types.dedup();
        self.gpu_types = types;
    }

    /// Whether GPUs of that type will do.
    pub fn takes_gpu_type(&self, kind: &str) -> bool {
        self.gpu_types.is_empty() || self.gpu_types.iter().any(|asked| asked == kind)
    }

    /// What one task takes. Memory per node and GPUs per node are not in it.
    pub fn per_task(&self) -> Amounts {
        // At most 1000 times a u32.
        let mut each = Amounts::new().with(ResourceId::CPU, self.cpu_milli_per_task() as i64);
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
        match self.gpus {
            GpuRequest::PerNode(n) => each.set(ResourceId::GPU, i64::from(n) * 1000),
            GpuRequest::Share(milli) => each.set(ResourceId::GPU, i64::from(milli)),
            GpuRequest::None | GpuRequest::PerTask(_) | GpuRequest::Total(_) => {}
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_cores_and_gpus_are_counted_exactly() {
        let mut r = Request { nodes_min: 2, gpus: GpuRequest::Share(470), ..Request::default() };
        r.set_cpu_milli(3152);
        assert_eq!((r.cpus_per_task, r.cpu_milli, r.cpu_count()), (4, Some(3152), 7));
        assert_eq!(r.total().get(ResourceId::CPU), 6304);
        assert_eq!(r.total().get(ResourceId::GPU), 940);
        assert_eq!(r.per_node().get(ResourceId::GPU), 470);
        r.set_cpu_milli(3000);
        assert_eq!((r.cpus_per_task, r.cpu_milli, r.cpu_count()), (3, None, 6));
        r.set_gpu_types(vec!["b".into(), "a".into(), "b".into()]);
        assert_eq!(r.gpu_types, ["a", "b"]);
        assert!(r.takes_gpu_type("a") && !r.takes_gpu_type("c"));
    }
}
