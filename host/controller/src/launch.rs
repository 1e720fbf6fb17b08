//! Turns started attempts into launch messages, with the environment that a job sees.

use ephor_core::{Attempt, Job, State};
use ephor_model::submit::hostlist;
use ephor_model::{Amounts, Digest, MemRequest, OpenMode, Payload, ResourceId};
use ephor_proto::convert::{environment_entries, signal_to_wire};
use ephor_proto::v1;

/// What a launch needs beside the state.
pub(crate) struct Parts {
    pub(crate) script: Option<Vec<u8>>,
    pub(crate) environment: Vec<u8>,
    pub(crate) cluster: String,
    pub(crate) grace_ms: i64,
}

/// The blobs that the launch of a job needs.
pub(crate) fn blobs_of(job: &Job) -> (Option<Digest>, Digest) {
    (job.script, job.environment)
}

/// Name of a resource on the wire.
pub(crate) fn resource_name(id: ResourceId) -> String {
    id.well_known_name().map_or_else(|| format!("resource-{}", id.0), str::to_owned)
}

/// The launch message of an attempt for its first node; `None` where its records are gone.
pub(crate) fn message(state: &State, attempt: &Attempt, parts: Parts) -> Option<v1::Launch> {
    let (entry, ordinal) = state.find(attempt.key.job)?;
    let job = &entry.job;
    let spec = &job.spec;
    let first = attempt.allocation.parts.first()?;
    let index = spec.array.as_ref().and_then(|a| a.index(ordinal as u32));
    let mut environment = environment_entries(&parts.environment);
    let own = variables(state, attempt, job, index, &parts.cluster);
    environment.retain(|entry| !own.iter().any(|(name, _)| entry.split('=').next() == Some(name)));
    environment.extend(own.into_iter().map(|(name, value)| format!("{name}={value}")));
    if !environment.iter().any(|entry| entry.starts_with("SLURM_SUBMIT_DIR=")) {
        environment.push(format!("SLURM_SUBMIT_DIR={}", spec.work_dir));
    }
    let argv = match &spec.payload {
        Payload::Script { args } | Payload::Argv(args) => args.clone(),
    };
    Some(v1::Launch {
        node: state.node_name(first.node),
        attempt: Some(v1::AttemptRef { job: attempt.key.job.0, attempt: attempt.key.number }),
        name: spec.name.clone(),
        user: spec.owner.name.clone(),
        uid: spec.owner.uid.0,
        gid: spec.owner.gid,
        script: parts.script,
        argv,
        environment,
        work_dir: spec.work_dir.clone(),
        stdin: spec.stdin.clone(),
        stdout: spec.output_pattern().to_owned(),
        stderr: spec.stderr.clone(),
        append: spec.open_mode == OpenMode::Append,
        time_limit: spec.time_limit.map(|t| t.0),
        grace: parts.grace_ms,
        array_id: job.id.0,
        array_index: index,
        amounts: amounts(&first.amounts),
        devices: first.devices.to_vec(),
        cluster: parts.cluster,
        simulated_ms: None,
        signal: spec.signal.map(signal_to_wire),
    })
}

fn amounts(amounts: &Amounts) -> Vec<v1::Amount> {
    ephor_proto::convert::amounts_to_wire(amounts, resource_name)
}

/// The variables that the controller sets, under Ephor's names and under those that Slurm's users read: what was granted.
/// What was asked for (`SLURM_CPUS_PER_TASK` of `-c 1`, `SLURM_GPUS_PER_NODE`) comes with the job's own environment.
fn variables(
    state: &State,
    attempt: &Attempt,
    job: &Job,
    index: Option<u32>,
    cluster: &str,
) -> Vec<(&'static str, String)> {
    let spec = &job.spec;
    let parts = &attempt.allocation.parts;
    let nodes: Vec<String> = parts.iter().map(|p| state.node_name(p.node)).collect();
    let first = nodes.first().cloned().unwrap_or_default();
    let list = hostlist::fold(&nodes);
    let cores: Vec<u64> = parts.iter().map(|p| whole_cores(p.amounts.get(ResourceId::CPU))).collect();
    let tasks: Vec<u64> = parts.iter().map(|p| p.tasks.into()).collect();
    let id = attempt.key.job.to_string();
    let mut all = vec![
        ("EPHOR_JOB_ID", id.clone()),
        ("EPHOR_ATTEMPT", attempt.key.number.to_string()),
        ("EPHOR_JOB_NODES", nodes.join(",")),
        ("EPHOR_CLUSTER", cluster.to_owned()),
        ("SLURM_JOB_ID", id.clone()),
        ("SLURM_JOBID", id),
        ("SLURM_JOB_NAME", spec.name.clone()),
        ("SLURM_JOB_NODELIST", list.clone()),
        ("SLURM_NODELIST", list),
        ("SLURM_JOB_NUM_NODES", nodes.len().to_string()),
        ("SLURM_NNODES", nodes.len().to_string()),
        ("SLURM_TASKS_PER_NODE", by_node(&tasks)),
        ("SLURM_CPUS_ON_NODE", cores.first().copied().unwrap_or_default().to_string()),
        ("SLURM_JOB_CPUS_PER_NODE", by_node(&cores)),
        ("SLURM_JOB_PARTITION", spec.queue.clone()),
        ("SLURM_JOB_USER", spec.owner.name.clone()),
        ("SLURM_JOB_UID", spec.owner.uid.to_string()),
        ("SLURM_JOB_GID", spec.owner.gid.to_string()),
        ("SLURM_CLUSTER_NAME", cluster.to_owned()),
        ("SLURM_PROCID", "0".into()),
        ("SLURM_LOCALID", "0".into()),
        ("SLURM_NODEID", "0".into()),
        ("SLURM_GTIDS", "0".into()),
        ("SLURM_PRIO_PROCESS", "0".into()),
        ("SLURM_NODE_ALIASES", "(null)".into()),
        ("SLURM_TOPOLOGY_ADDR", first),
        ("SLURM_TOPOLOGY_ADDR_PATTERN", "node".into()),
    ];
    let mut put = |name, value: String| all.push((name, value));
    let request = &spec.request;
    // As in Slurm, only where tasks were spoken of: a script that finds them starts so many.
    if request.tasks.is_some() || request.tasks_per_node.is_some() {
        let count = tasks.iter().sum::<u64>().to_string();
        put("SLURM_NTASKS", count.clone());
        put("SLURM_NPROCS", count);
    }
    if let Some(per_node) = request.tasks_per_node {
        put("SLURM_NTASKS_PER_NODE", per_node.to_string());
    }
    if request.cpus_per_task > 1 {
        put("SLURM_CPUS_PER_TASK", request.cpus_per_task.to_string());
    }
    match request.mem {
        MemRequest::PerNode(mib) => put("SLURM_MEM_PER_NODE", mib.to_string()),
        MemRequest::PerCpu(mib) => put("SLURM_MEM_PER_CPU", mib.to_string()),
        MemRequest::Unset => {}
    }
    if let Some(devices) = parts.first().map(|p| p.devices.to_vec()).filter(|devices| !devices.is_empty()) {
        let indices: Vec<String> = devices.iter().map(u32::to_string).collect();
        put("SLURM_GPUS_ON_NODE", devices.len().to_string());
        put("SLURM_JOB_GPUS", indices.join(","));
    }
    for (name, value) in [
        ("SLURM_JOB_ACCOUNT", Some(&spec.account)),
        ("SLURM_JOB_QOS", spec.qos.as_ref()),
        ("SLURM_JOB_RESERVATION", spec.reservation.as_ref()),
    ] {
        value.filter(|value| !value.is_empty()).into_iter().for_each(|value| put(name, value.clone()));
    }
    if attempt.key.number > 1 {
        put("SLURM_RESTART_COUNT", (attempt.key.number - 1).to_string());
    }
    if let (Some(index), Some(array)) = (index, &spec.array) {
        let (first, last) = array.bounds();
        let step = array.ranges.iter().map(|range| range.step).max().unwrap_or(1);
        put("EPHOR_ARRAY_ID", job.id.to_string());
        put("EPHOR_ARRAY_INDEX", index.to_string());
        put("SLURM_ARRAY_JOB_ID", job.id.to_string());
        put("SLURM_ARRAY_TASK_ID", index.to_string());
        put("SLURM_ARRAY_TASK_COUNT", spec.count().to_string());
        put("SLURM_ARRAY_TASK_MIN", first.to_string());
        put("SLURM_ARRAY_TASK_MAX", last.to_string());
        put("SLURM_ARRAY_TASK_STEP", step.to_string());
    }
    all
}

/// Cores of which a part is held count whole.
pub(crate) fn whole_cores(milli: i64) -> u64 {
    u64::try_from(milli).unwrap_or(0).div_ceil(1000)
}

/// A number for each node, equal neighbours together: `4(x2),3`.
fn by_node(numbers: &[u64]) -> String {
    let runs = numbers.chunk_by(|a, b| a == b).map(|run| match run {
        [only] => only.to_string(),
        run => format!("{}(x{})", run[0], run.len()),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_by_node() {
        assert_eq!(by_node(&[4, 4, 3, 4]), "4(x2),3,4");
        assert_eq!([whole_cores(1500), whole_cores(2000), whole_cores(-1)], [2, 2, 0]);
    }
}
