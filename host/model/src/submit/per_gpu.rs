//! Cores, memory and tasks asked for by GPU, put into terms of tasks and nodes.

use crate::request::{GpuRequest, MemRequest, Request};

/// What was asked for each GPU.
#[derive(Clone, Debug, Default)]
pub struct PerGpu {
    /// `--cpus-per-gpu`.
    pub cpus: Option<u32>,
    /// `--mem-per-gpu`, in MiB.
    pub mem: Option<u64>,
    /// `--ntasks-per-gpu`.
    pub tasks: Option<u32>,
}

/// Puts it into the request, whose nodes, tasks and GPUs are known. `cpus_given`: cores for each task were named.
pub fn settle(asked: &PerGpu, r: &mut Request, cpus_given: bool) -> Result<(), String> {
    if let Some(each) = asked.tasks {
        tasks(each, r)?;
    }
    if let Some(each) = asked.cpus {
        if cpus_given {
            return Err("--cpus-per-gpu and --cpus-per-task both say how many cores there are; keep one of them".into());
        }
        let Share { gpus, tasks, .. } = share(r, "--cpus-per-gpu")?;
        let cpus = each.checked_mul(gpus).ok_or("--cpus-per-gpu asks for more cores than can be counted")?;
        if !cpus.is_multiple_of(tasks) {
            return Err(format!(
                "{cpus} cores for the GPUs of each node cannot be shared out evenly among its {tasks} tasks"
            ));
        }
        (r.cpus_per_task, r.cpu_milli) = (cpus / tasks, None);
    }
    if let Some(each) = asked.mem {
        if r.mem != MemRequest::Unset {
            return Err("--mem-per-gpu excludes --mem and --mem-per-cpu; keep one of them".into());
        }
        let Share { gpus, of_task, .. } = share(r, "--mem-per-gpu")?;
        let mem = each.checked_mul(u64::from(gpus)).ok_or("--mem-per-gpu asks for more memory than can be counted")?;
        r.mem = match of_task {
            // Memory goes with a task by way of its cores; a part of a MiB more does no harm.
            true => MemRequest::PerCpu(mem.saturating_mul(1000).div_ceil(r.cpu_milli_per_task().max(1))),
            false => MemRequest::PerNode(mem),
        };
    }
    Ok(())
}

fn tasks(each: u32, r: &mut Request) -> Result<(), String> {
    let many = || "--ntasks-per-gpu asks for more tasks than can be counted".to_owned();
    match (r.gpus, r.tasks, r.tasks_per_node) {
        (_, _, Some(_)) => Err("--ntasks-per-gpu and --ntasks-per-node exclude each other; keep one of them".into()),
        (GpuRequest::Share(_), _, _) => Err(parts("--ntasks-per-gpu")),
        (GpuRequest::PerTask(_), _, _) => Err("--ntasks-per-gpu and --gpus-per-task exclude each other".into()),
        (GpuRequest::PerNode(gpus), None, None) => {
            r.tasks_per_node = Some(each.checked_mul(gpus).ok_or_else(many)?);
            Ok(())
        }
        (GpuRequest::Total(gpus), None, None) => {
            r.tasks = Some(each.checked_mul(gpus).ok_or_else(many)?);
            Ok(())
        }
        // The GPUs follow from the tasks.
        (GpuRequest::None, Some(tasks), None) if tasks.is_multiple_of(each) => {
            r.gpus = GpuRequest::Total(tasks / each);
            Ok(())
        }
        (GpuRequest::None, Some(tasks), None) => Err(format!("{tasks} tasks are no multiple of {each} for each GPU")),
        (GpuRequest::PerNode(_) | GpuRequest::Total(_), Some(_), None) => {
            Err("--ntasks, --ntasks-per-gpu and a number of GPUs say one thing too many; leave one out".into())
        }
        (GpuRequest::None, None, None) => Err("--ntasks-per-gpu needs a number of GPUs or of tasks".into()),
    }
}

fn parts(option: &str) -> String {
    format!("{option} is about whole GPUs, and the job asks for a part of one")
}

/// GPUs, and the tasks that go with them: those of one task, or those of a node.
struct Share {
    gpus: u32,
    tasks: u32,
    /// Wherever the task is; else all tasks of a node.
    of_task: bool,
}

fn share(r: &Request, option: &str) -> Result<Share, String> {
    let one_node = r.nodes_min == 1 && (r.nodes_max == Some(1) || r.tasks.is_none());
    let of_node = |gpus, tasks| Ok(Share { gpus, tasks, of_task: false });
    match r.gpus {
        GpuRequest::PerTask(gpus) => Ok(Share { gpus, tasks: 1, of_task: true }),
        GpuRequest::PerNode(gpus) => match (r.tasks, r.tasks_per_node) {
            (None, each) => of_node(gpus, each.unwrap_or(1)),
            (Some(tasks), _) if one_node => of_node(gpus, tasks),
            (Some(tasks), _) if r.nodes_max == Some(r.nodes_min) && tasks.is_multiple_of(r.nodes_min) => {
                of_node(gpus, tasks / r.nodes_min)
            }
            _ => Err(format!("{option} needs a fixed number of tasks on each node; add --ntasks-per-node")),
        },
        GpuRequest::Total(gpus) if one_node => of_node(gpus, r.task_count()),
        GpuRequest::Total(gpus) if r.tasks.is_some_and(|tasks| tasks > 0 && gpus.is_multiple_of(tasks)) => {
            Ok(Share { gpus: gpus / r.task_count(), tasks: 1, of_task: true })
        }
        GpuRequest::Total(_) => {
            Err(format!("{option} with --gpus needs one node, or tasks that share the GPUs evenly"))
        }
        GpuRequest::Share(_) => Err(parts(option)),
        GpuRequest::None => Err(format!("{option} needs a number of GPUs, such as --gpus-per-node=2")),
    }
}
