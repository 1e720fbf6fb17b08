//! From the controller's launch to what the shim is told: patterns filled in, GPUs made visible, user looked up.

use super::groups::Users;
use super::launcher::Launching;
use super::said;
use crate::confine::Confinement;
use crate::gpu;
use crate::limits::GRACE_MS;
use crate::spool::{Entry, Order, Program};
use ephor_model::limits::ARGUMENT_BYTES;
use ephor_model::pattern::{Names, expand};
use ephor_proto::convert::signal_from_wire;
use ephor_proto::v1;
use std::path::Path;

/// Begins the environment entry by which the processes of an attempt are found when its shim was killed.
const MARK: &str = "EPHOR_SPOOL";

/// The environment entry that every process of the attempt is born with.
pub fn mark(entry: &Entry) -> String {
    mark_at(entry.folder())
}

/// The same for the entry in that folder.
pub fn mark_at(folder: &Path) -> String {
    format!("{MARK}={}", folder.display())
}

/// Works out what the shim does.
///
/// # Errors
/// What makes it impossible on this node, for the job's owner to read.
pub fn order(
    launch: &v1::Launch,
    entry: &Entry,
    confinement: Confinement,
    launching: &Launching,
    users: &mut Users,
) -> Result<Order, String> {
    let names = Names {
        job: launch.attempt.map_or(0, |a| a.job),
        array: if launch.array_index.is_some() { launch.array_id } else { launch.attempt.map_or(0, |a| a.job) },
        index: launch.array_index,
        name: &launch.name,
        user: &launch.user,
        node: &launch.node,
        task: None,
    };
    let path = |pattern: &str| expand(pattern, &names);
    let program = match &launch.script {
        Some(_) => Program::Script(launch.argv.clone()),
        None if launch.argv.first().is_none_or(String::is_empty) => return Err("there is nothing to run".into()),
        None => Program::Argv(launch.argv.clone()),
    };
    if launch.argv.iter().map(|a| a.len() + 1).sum::<usize>() > ARGUMENT_BYTES {
        return Err(format!("the arguments have more than {ARGUMENT_BYTES} bytes"));
    }
    if launch.stdout.is_empty() {
        return Err("no output file is named".into());
    }
    let node = &launch.node;
    let mut own = vec![
        mark(entry),
        format!("SLURMD_NODENAME={node}"),
        format!("EPHOR_NODE={node}"),
        // The way to the controller from here, which is another one where the job was submitted.
        format!("EPHOR_SOCKET={}", launching.socket.display()),
    ];
    own.extend(launching.gpus.entries(&launch.devices)?);
    // These are never passed on, also where nothing takes their place here.
    let never = ["SLURM_TASK_PID", gpu::VISIBLE];
    let is_own = |e: &&String| never.contains(&name_of(e)) || own.iter().any(|entry| name_of(entry) == name_of(e));
    let mut environment: Vec<_> = launch.environment.iter().filter(|e| !is_own(e)).cloned().collect();
    if !environment.iter().any(|entry| entry.starts_with("TMPDIR=")) {
        environment.push("TMPDIR=/tmp".into());
    }
    environment.append(&mut own);
    let first = launch.attempt.is_none_or(|a| a.attempt <= 1);
    Ok(Order {
        user: users.find(launch.uid, launch.gid)?,
        program,
        environment,
        work_dir: launch.work_dir.clone(),
        stdin: launch.stdin.as_deref().map(path),
        stdout: path(&launch.stdout),
        stderr: launch.stderr.as_deref().map(path),
        append: launch.append || !first,
        time_limit_ms: launch.time_limit.and_then(|ms| u64::try_from(ms).ok()),
        grace_ms: said(launch.grace).unwrap_or(GRACE_MS),
        signal: launch.signal.map(signal_from_wire).transpose().map_err(|e| e.0)?,
        open_files: launching.open_files,
        confinement,
    })
}

/// The name of the variable that an entry of an environment sets.
pub fn name_of(entry: &str) -> &str {
    entry.split_once('=').map_or(entry, |(name, _)| name)
}
