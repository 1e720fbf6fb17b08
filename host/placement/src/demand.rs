//! A request in plain numbers: how many nodes, how many tasks on each, how many GPUs.

use ephor_model::request::{GpuRequest, Request};

/// How tasks come to nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// That many on each node.
    Each(u32),
    /// That many in all, at least one on each node.
    Sum(u32),
}

/// The numbers of a request.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    /// Fewest nodes, at least 1.
    pub fewest: usize,
    /// Most nodes.
    pub most: usize,
    /// Tasks.
    pub goal: Goal,
    /// Least tasks that a node must have room for to be of any use.
    pub least: u32,
    /// Most tasks that a node takes.
    pub cap: u32,
    /// Whole GPUs for each task.
    pub gpus_per_task: u32,
    /// Whole GPUs on each node.
    pub gpus_per_node: u32,
    /// Whole GPUs over all nodes.
    pub gpus_in_all: u32,
    /// Thousandths of one GPU on each node; 0: no part of one is asked for.
    pub share: u32,
    /// How many nodes are named as part of the allocation.
    pub required: usize,
    /// Whether nodes are taken whole.
    pub exclusive: bool,
}

impl Demand {
    /// Reads a request of which `required` different nodes are named.
    ///
    /// # Errors
    /// The numbers contradict each other; the text says which.
    pub fn of(request: &Request, required: usize) -> Result<Self, String> {
        if let Some(why) = request.contradiction() {
            return Err(format!("does not work: {why}"));
        }
        let nodes_min = (request.nodes_min.max(1) as usize).max(required);
        let nodes_max = request.nodes_max.map_or(usize::MAX, |n| n as usize);
        let per_node = request.tasks_per_node.map(|n| n.max(1));
        if nodes_min > nodes_max {
            let why = if required == nodes_min { "names" } else { "asks for at least" };
            return Err(format!("{why} {nodes_min} nodes but takes at most {nodes_max}"));
        }
        let (goal, fewest, most, cap) = match request.tasks.map(|n| n.max(1)) {
            None => {
                let each = per_node.unwrap_or(1);
                (Goal::Each(each), nodes_min, nodes_min, each)
            }
            Some(tasks) => {
                let cap = per_node.unwrap_or(tasks).min(tasks);
                let fewest = nodes_min.max(tasks.div_ceil(cap) as usize);
                if nodes_min > tasks as usize {
                    return Err(format!(
                        "has {tasks} tasks for at least {nodes_min} nodes; each node takes one or more"
                    ));
                }
                if fewest > nodes_max {
                    return Err(format!("has {tasks} tasks, at most {cap} on a node, for at most {nodes_max} nodes"));
                }
                (Goal::Sum(tasks), fewest, nodes_max.min(tasks as usize), cap)
            }
        };
        let least = match goal {
            Goal::Sum(tasks) if most == 1 => tasks,
            Goal::Sum(_) => 1,
            Goal::Each(each) => each,
        };
        let mut demand = Self {
            fewest,
            most,
            goal,
            least,
            cap,
            gpus_per_task: 0,
            gpus_per_node: 0,
            gpus_in_all: 0,
            share: 0,
            required,
            exclusive: request.exclusive,
        };
        match request.gpus {
            GpuRequest::None => {}
            GpuRequest::PerNode(n) => demand.gpus_per_node = n,
            GpuRequest::PerTask(n) => demand.gpus_per_task = n,
            GpuRequest::Total(n) => demand.gpus_in_all = n,
            GpuRequest::Share(milli) => demand.share = milli,
        }
        Ok(demand)
    }

    /// Whether any GPU is asked for.
    pub fn asks_gpus(&self) -> bool {
        self.gpus_per_task > 0 || self.gpus_per_node > 0 || self.gpus_in_all > 0 || self.share > 0
    }
}
