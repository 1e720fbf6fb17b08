//! What the parts of a job may be, whoever set them.

use crate::bounds;
use crate::check::name_complaint;
use ephor_model::{Constraint, GpuRequest, JobSpec, MemRequest, Span, limits};

/// What stands behind the thing that it is about: `the queue` + `is empty`.
type Complaint = Result<(), String>;

/// A name, or the empty text for none.
pub fn name_or_none(what: &str, text: &str) -> Complaint {
    if text.is_empty() { Ok(()) } else { name(what, text) }
}

/// A name.
pub fn name(what: &str, text: &str) -> Complaint {
    name_complaint(text).map_or(Ok(()), |complaint| Err(format!("{what} {complaint}")))
}

pub fn comment(text: Option<&str>) -> Complaint {
    match text {
        Some(text) if text.len() > limits::TEXT_BYTES => {
            Err(format!("the comment has {} bytes; at most {} are taken", text.len(), limits::TEXT_BYTES))
        }
        Some(text) if text.contains('\0') => Err("the comment has a NUL byte in it".into()),
        _ => Ok(()),
    }
}

pub fn time_limit(limit: Option<Span>) -> Complaint {
    match limit {
        Some(Span(ms)) if !(1..=limits::TIME_LIMIT_MS).contains(&ms) => {
            Err(format!("the time limit {ms} ms is not 1 to {} (100 years)", limits::TIME_LIMIT_MS))
        }
        _ => Ok(()),
    }
}

pub fn nodes(min: u32, max: Option<u32>) -> Complaint {
    if !(1..=limits::NODES).contains(&min) {
        return Err(format!("the number of nodes {min} is not 1 to {}", limits::NODES));
    }
    match max {
        Some(max) if max < min => Err(format!("at most {max} nodes are fewer than the {min} that it needs")),
        _ => Ok(()),
    }
}

pub fn tasks(tasks: u32) -> Complaint {
    if (1..=limits::TASKS).contains(&tasks) {
        return Ok(());
    }
    Err(format!("the number of tasks {tasks} is not 1 to {}", limits::TASKS))
}

pub fn cpus_per_task(cpus: u32) -> Complaint {
    // As many as there could be of anything else; the sum over all tasks is bounded as an amount.
    if (1..=limits::TASKS).contains(&cpus) {
        return Ok(());
    }
    Err(format!("the number of cores for each task {cpus} is not 1 to {}", limits::TASKS))
}

pub fn memory(mem: MemRequest) -> Complaint {
    match mem {
        MemRequest::PerNode(mib) | MemRequest::PerCpu(mib) if !(1..=limits::AMOUNT.unsigned_abs()).contains(&mib) => {
            Err(format!("the memory {mib} MiB is not 1 to {}", limits::AMOUNT))
        }
        _ => Ok(()),
    }
}

pub fn gpus(gpus: GpuRequest, types: &[String]) -> Complaint {
    if types.len() > bounds::FEATURES {
        return Err(format!("{} types of GPU are more than {}", types.len(), bounds::FEATURES));
    }
    types.iter().try_for_each(|kind| name("the type of GPU", kind))?;
    let most = match gpus {
        GpuRequest::None => return Ok(()),
        GpuRequest::PerNode(n) | GpuRequest::PerTask(n) => (n, limits::DEVICES_PER_NODE),
        GpuRequest::Total(n) => (n, limits::DEVICES_PER_NODE.saturating_mul(limits::NODES)),
        GpuRequest::Share(n) if (1..1000).contains(&n) => return Ok(()),
        GpuRequest::Share(n) => return Err(format!("the part of a GPU {n} is not 1 to 999 thousandths")),
    };
    match most {
        (n, most) if (1..=most).contains(&n) => Ok(()),
        (n, most) => Err(format!("the number of GPUs {n} is not 1 to {most}")),
    }
}

pub fn features(features: &[String]) -> Complaint {
    if features.len() > bounds::FEATURES {
        return Err(format!("{} features are more than {}", features.len(), bounds::FEATURES));
    }
    features.iter().try_for_each(|f| name("a feature", f))
}

/// A constraint beyond features that all nodes must have.
pub fn constraint(text: Option<&str>) -> Result<Option<Constraint>, String> {
    let Some(text) = text else { return Ok(None) };
    if text.len() > limits::TEXT_BYTES {
        return Err(format!("the constraint has {} bytes; at most {} are taken", text.len(), limits::TEXT_BYTES));
    }
    match Constraint::parse(text)? {
        (features, constraint) if features.is_empty() => Ok(constraint),
        (features, _) => Err(format!("{} is set as a feature that all nodes must have", features.join("&"))),
    }
}

pub fn nice(nice: i64) -> Complaint {
    if (-limits::NICE..=limits::NICE).contains(&nice) {
        return Ok(());
    }
    Err(format!("the nice value {nice} is not within ±{}", limits::NICE))
}

/// Everything that a policy can change, and what follows from it together.
pub fn whole(spec: &JobSpec) -> Complaint {
    let request = &spec.request;
    let having = |complaint: String| format!("does not do: {complaint}");
    name_or_none("the queue", &spec.queue).map_err(having)?;
    name_or_none("the account", &spec.account).map_err(having)?;
    comment(spec.comment.as_deref()).map_err(having)?;
    time_limit(spec.time_limit).map_err(having)?;
    nodes(request.nodes_min, request.nodes_max).map_err(having)?;
    tasks(request.task_count()).map_err(having)?;
    cpus_per_task(request.cpus_per_task).map_err(having)?;
    memory(request.mem).map_err(having)?;
    gpus(request.gpus, &request.gpu_types).map_err(having)?;
    features(&request.features).map_err(having)?;
    nice(spec.nice).map_err(having)?;
    if request.nodes_min < u32::try_from(request.node_list.len()).unwrap_or(u32::MAX) {
        let (min, named) = (request.nodes_min, request.node_list.len());
        return Err(format!("needs {min} nodes, and its user named {named} of them"));
    }
    if let Some(why) = request.contradiction() {
        return Err(having(why));
    }
    match request.total().iter().find(|(_, n)| *n > limits::AMOUNT) {
        Some((id, n)) => {
            let what = id.well_known_name().unwrap_or("a resource");
            Err(format!("asks for {n} of {what} in all; {} are the most", limits::AMOUNT))
        }
        None => Ok(()),
    }
}
