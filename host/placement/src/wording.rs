//! Numbers of nodes, cores and GPUs in words for people.

use ephor_model::constraint::Constraint;
use ephor_model::request::{GpuRequest, MemRequest, Request};
use ephor_model::resource::ResourceId;

/// `1 node`, `2 nodes`.
pub(crate) fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// An amount with its unit: `8 cores`, `1.5 cores`, `64 MiB of memory`, `2 GPUs`.
pub(crate) fn amount(id: ResourceId, n: i64) -> String {
    match id {
        ResourceId::CPU => format!("{} {}", thousandths(n), if n == 1000 { "core" } else { "cores" }),
        ResourceId::GPU => format!("{} {}", thousandths(n), if n == 1000 { "GPU" } else { "GPUs" }),
        ResourceId::MEM => format!("{n} MiB of memory"),
        ResourceId::GPU_MEM => format!("{n} MiB of GPU memory"),
        other => format!("{n} of resource {}", other.0),
    }
}

fn thousandths(n: i64) -> String {
    match n % 1000 {
        0 => (n / 1000).to_string(),
        _ => format!("{}", n as f64 / 1000.0),
    }
}

/// `GPU`, or `GPU of type h100`.
pub(crate) fn gpu_of(types: &[String]) -> String {
    format!("GPU{}", of_types(types))
}

/// ` of type h100`, ` of type a100 or h100`, or nothing where any will do.
pub(crate) fn of_types(types: &[String]) -> String {
    if types.is_empty() { String::new() } else { format!(" of type {}", types.join(" or ")) }
}

/// A whole request, such as `2 nodes, 8 tasks of 4 cores, 1024 MiB on each node, 1 GPU of type h100 for each task`.
pub(crate) fn request(request: &Request) -> String {
    let mut parts = Vec::new();
    let least = request.nodes_min.max(1);
    parts.push(match request.nodes_max {
        Some(most) if most > least => format!("{least} to {most} nodes"),
        _ => count(least.into(), "node"),
    });
    let cores = match request.cpu_milli {
        Some(milli) => amount(ResourceId::CPU, milli.into()),
        None => count(request.cpus_per_task.into(), "core"),
    };
    parts.push(match (request.tasks, request.tasks_per_node) {
        (Some(tasks), None) => format!("{} of {cores}", count(tasks.into(), "task")),
        (Some(tasks), Some(each)) => format!("{} of {cores}, at most {each} on a node", count(tasks.into(), "task")),
        (None, Some(each)) if each > 1 => format!("{} of {cores} on each", count(each.into(), "task")),
        (None, _) if least > 1 => format!("{cores} on each"),
        (None, _) => cores,
    });
    match request.mem {
        MemRequest::Unset => {}
        MemRequest::PerNode(mib) => parts.push(format!("{mib} MiB on each node")),
        MemRequest::PerCpu(mib) => parts.push(format!("{mib} MiB for each core")),
    }
    let gpus = |n: u32| format!("{}{}", count(n.into(), "GPU"), of_types(&request.gpu_types));
    match request.gpus {
        GpuRequest::None => {}
        GpuRequest::PerNode(n) => parts.push(format!("{} on each node", gpus(n))),
        GpuRequest::PerTask(n) => parts.push(format!("{} for each task", gpus(n))),
        GpuRequest::Total(n) => parts.push(format!("{} in all", gpus(n))),
        GpuRequest::Share(milli) => {
            let each = if least > 1 { " on each node" } else { "" };
            parts.push(format!("{} of a {}{each}", thousandths(milli.into()), gpu_of(&request.gpu_types)));
        }
    }
    match &request.constraint {
        None => {}
        Some(each @ Constraint::Each(_)) => parts.push(format!("on nodes with {each}")),
        Some(same @ Constraint::Same(_)) => parts.push(format!("on nodes that all have the same of {same}")),
        Some(counts @ Constraint::Counts(_)) => parts.push(format!("with {counts} among its nodes")),
    }
    if let Some(topology) = &request.topology {
        parts.push(format!("{} in one {}", if topology.required { "all" } else { "if possible" }, topology.level));
    }
    if request.exclusive {
        parts.push("nodes not shared".to_owned());
    }
    parts.join(", ")
}
