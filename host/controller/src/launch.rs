//! Turns started attempts into launch messages, with the environment that a job sees.

use ephor_core::{Attempt, Job, State};
use ephor_model::{Amounts, Digest, OpenMode, Payload, ResourceId};
use ephor_proto::convert::environment_entries;
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
    })
}

fn amounts(amounts: &Amounts) -> Vec<v1::Amount> {
    ephor_proto::convert::amounts_to_wire(amounts, resource_name)
}

/// The variables that the controller sets, under Ephor's names and under those that Slurm's users read.
fn variables(
    state: &State,
    attempt: &Attempt,
    job: &Job,
    index: Option<u32>,
    cluster: &str,
) -> Vec<(&'static str, String)> {
    let spec = &job.spec;
    let nodes: Vec<String> = attempt.allocation.parts.iter().map(|p| state.node_name(p.node)).collect();
    let list = nodes.join(",");
    let tasks: u32 = attempt.allocation.parts.iter().map(|p| p.tasks).sum();
    let id = attempt.key.job.to_string();
    let mut all = vec![
        ("EPHOR_JOB_ID", id.clone()),
        ("EPHOR_ATTEMPT", attempt.key.number.to_string()),
        ("EPHOR_JOB_NODES", list.clone()),
        ("EPHOR_CLUSTER", cluster.to_owned()),
        ("SLURM_JOB_ID", id.clone()),
        ("SLURM_JOBID", id),
        ("SLURM_JOB_NAME", spec.name.clone()),
        ("SLURM_JOB_NODELIST", list.clone()),
        ("SLURM_NODELIST", list),
        ("SLURM_JOB_NUM_NODES", nodes.len().to_string()),
        ("SLURM_NNODES", nodes.len().to_string()),
        ("SLURM_NTASKS", tasks.to_string()),
        ("SLURM_NPROCS", tasks.to_string()),
        ("SLURM_CPUS_PER_TASK", spec.request.cpus_per_task.to_string()),
        ("SLURM_JOB_PARTITION", spec.queue.clone()),
        ("SLURM_JOB_ACCOUNT", spec.account.clone()),
        ("SLURM_JOB_USER", spec.owner.name.clone()),
        ("SLURM_JOB_UID", spec.owner.uid.to_string()),
        ("SLURM_SUBMIT_DIR", spec.work_dir.clone()),
        ("SLURM_CLUSTER_NAME", cluster.to_owned()),
        ("SLURM_PROCID", "0".into()),
        ("SLURM_LOCALID", "0".into()),
        ("SLURM_NODEID", "0".into()),
    ];
    if let Some(per_node) = spec.request.tasks_per_node {
        all.push(("SLURM_NTASKS_PER_NODE", per_node.to_string()));
    }
    if attempt.key.number > 1 {
        all.push(("SLURM_RESTART_COUNT", (attempt.key.number - 1).to_string()));
    }
    if let Some(index) = index {
        let count = spec.count().to_string();
        let (first, last) = spec.array.as_ref().map(ephor_model::ArraySpec::bounds).unwrap_or_default();
        all.extend([
            ("EPHOR_ARRAY_ID", job.id.to_string()),
            ("EPHOR_ARRAY_INDEX", index.to_string()),
            ("SLURM_ARRAY_JOB_ID", job.id.to_string()),
            ("SLURM_ARRAY_TASK_ID", index.to_string()),
            ("SLURM_ARRAY_TASK_COUNT", count),
            ("SLURM_ARRAY_TASK_MIN", first.to_string()),
            ("SLURM_ARRAY_TASK_MAX", last.to_string()),
        ]);
    }
    all
}
