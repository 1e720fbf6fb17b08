//! From options to what a job needs: nodes, tasks, cores, memory and GPUs.

use super::error::SubmitError;
use super::gpu::{self, Asked};
use super::hostlist;
use super::option::{Given, JobOption};
use super::per_gpu::{self, PerGpu};
use super::quantity::{parse_count, parse_mib, parse_milli};
use crate::constraint::Constraint;
use crate::limits;
use crate::request::{MemRequest, Request, Topology};

/// Collects what the options ask for, one at a time, in order.
#[derive(Default)]
pub struct RequestBuilder {
    request: Request,
    nodes_given: bool,
    mem: Option<u64>,
    mem_per_cpu: Option<u64>,
    gpus: Asked,
    per_gpu: PerGpu,
    cpus_given: bool,
}

impl RequestBuilder {
    /// Takes one option; `Ok(false)`: it is not about the request.
    pub fn take(&mut self, given: &Given) -> Result<bool, String> {
        let value = given.value.as_deref().unwrap_or_default();
        let r = &mut self.request;
        match given.option {
            JobOption::Nodes => {
                let (min, max) = nodes(value)?;
                (r.nodes_min, r.nodes_max) = (min, Some(max));
                self.nodes_given = true;
            }
            JobOption::Tasks => r.tasks = Some(parse_count(value, 1)?),
            JobOption::TasksPerNode => r.tasks_per_node = Some(parse_count(value, 1)?),
            JobOption::CpusPerTask => {
                self.cpus_given = true;
                match value.contains('.') {
                    true => match parse_milli(value)? {
                        0 => return Err(format!("'{value}' is no core at all; write at least 0.001")),
                        milli => r.set_cpu_milli(milli),
                    },
                    false => (r.cpus_per_task, r.cpu_milli) = (parse_count(value, 1)?, None),
                }
            }
            JobOption::CpusPerGpu => self.per_gpu.cpus = Some(parse_count(value, 1)?),
            JobOption::MemPerGpu => self.per_gpu.mem = Some(memory(value)?),
            JobOption::TasksPerGpu => self.per_gpu.tasks = Some(parse_count(value, 1)?),
            JobOption::Mem => self.mem = Some(memory(value)?),
            JobOption::MemPerCpu => self.mem_per_cpu = Some(memory(value)?),
            JobOption::Gres => self.gpus.gres = Some(gpu::parse_gres(value)?),
            JobOption::Gpus => self.gpus.total = Some(gpu::parse(value)?),
            JobOption::GpusPerNode => self.gpus.per_node = Some(gpu::parse(value)?),
            JobOption::GpusPerTask => self.gpus.per_task = Some(gpu::parse(value)?),
            JobOption::Constraint => (r.features, r.constraint) = Constraint::parse(value)?,
            JobOption::Topology => r.topology = Some(Topology::read(value, true)?),
            JobOption::TopologyPrefer => r.topology = Some(Topology::read(value, false)?),
            JobOption::NodeList => r.node_list = nodes_by_name(value)?,
            JobOption::Exclude => r.exclude = nodes_by_name(value)?,
            JobOption::Exclusive => r.exclusive = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks what belongs together.
    pub fn finish(mut self) -> Result<Request, SubmitError> {
        let r = &mut self.request;
        r.mem = match (self.mem, self.mem_per_cpu) {
            (None, None) => MemRequest::Unset,
            (Some(n), None) => MemRequest::PerNode(n),
            (None, Some(n)) => MemRequest::PerCpu(n),
            _ => return Err(SubmitError::new("--mem and --mem-per-cpu exclude each other; keep one of them")),
        };
        let listed = u32::try_from(r.node_list.len()).unwrap_or(u32::MAX);
        if r.nodes_max.is_some_and(|max| max < listed) {
            return Err(SubmitError::new(format!(
                "--nodelist names {listed} nodes and --nodes allows at most {}",
                r.nodes_max.unwrap_or(0)
            )));
        }
        r.nodes_min = r.nodes_min.max(listed);
        if !self.nodes_given && r.tasks.is_none() {
            // Counted nodes are asked for by being counted.
            r.nodes_min = r.nodes_min.max(r.constraint.as_ref().map_or(0, Constraint::counted));
        }
        if let Some(both) = r.node_list.iter().find(|n| r.exclude.contains(n)) {
            return Err(SubmitError::new(format!("{both} is both in --nodelist and in --exclude")));
        }
        // As Slurm: a task needs a node, so that fewer tasks than nodes take fewer nodes.
        if let (Some(tasks), true) = (r.tasks, self.nodes_given) {
            r.nodes_min = r.nodes_min.min(tasks).max(listed);
            r.nodes_max = r.nodes_max.map(|max| max.min(tasks).max(r.nodes_min));
        }
        if r.nodes_min > limits::NODES || r.task_count() > limits::TASKS {
            return Err(SubmitError::new(format!(
                "at most {} nodes and {} tasks can be asked for",
                limits::NODES,
                limits::TASKS
            )));
        }
        gpu::settle(self.gpus, r).map_err(SubmitError::new)?;
        per_gpu::settle(&self.per_gpu, r, self.cpus_given).map_err(SubmitError::new)?;
        if r.task_count() > limits::TASKS {
            return Err(SubmitError::new(format!("{} tasks are more than {}", r.task_count(), limits::TASKS)));
        }
        if let Some(why) = r.contradiction() {
            return Err(SubmitError::new(why));
        }
        Ok(self.request)
    }
}

fn nodes(text: &str) -> Result<(u32, u32), String> {
    if text.contains([':', ',']) {
        return Err(format!("'{text}' is a set of node counts, which does not work yet; write 2 or 2-4"));
    }
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    let count = |t: &str| parse_count(t, 1).map_err(|e| format!("{e}; write a number of nodes like 2 or 2-4"));
    match (count(min)?, count(max)?) {
        (min, max) if min <= max => Ok((min, max)),
        _ => Err(format!("'{text}' runs backwards; write the smaller number first")),
    }
}

fn memory(text: &str) -> Result<u64, String> {
    match parse_mib(text)? {
        0 => Err("0 (all memory of a node) does not work yet; name an amount, such as 64G".into()),
        mib => Ok(mib),
    }
}

fn nodes_by_name(text: &str) -> Result<Vec<String>, String> {
    let mut names = hostlist::expand(text)?;
    names.sort_unstable();
    names.dedup();
    Ok(names)
}
