//! From the controller's launch of a step to what its shim on this node is told.

use super::groups::Users;
use super::launcher::Launching;
use super::order::{mark_at, name_of};
use crate::confine::Confinement;
use crate::gpu;
use crate::spool::{StepOrder, Stream, TaskOrder};
use ephor_model::limits::{STEP_ADDRESSES, STEP_TASKS_PER_NODE};
use ephor_model::pattern::{Names, TaskNames, expand};
use ephor_proto::v1;
use std::path::Path;

/// Works out what the step's shim does.
///
/// # Errors
/// What makes it impossible on this node, for whoever starts the step to read.
pub fn step_order(
    launch: &v1::StepLaunch,
    folder: &Path,
    attempt_group: Confinement,
    launching: &Launching,
    users: &mut Users,
) -> Result<StepOrder, String> {
    let (Some(program), Some(part)) = (&launch.program, &launch.part) else {
        return Err("the step has no program or no part".into());
    };
    if program.argv.first().is_none_or(String::is_empty) {
        return Err("there is nothing to run".into());
    }
    if part.tasks.is_empty() || part.tasks.len() > STEP_TASKS_PER_NODE as usize {
        return Err(format!("a node has 1 to {STEP_TASKS_PER_NODE} tasks of a step, not {}", part.tasks.len()));
    }
    if launch.addresses.is_empty() || launch.addresses.len() > STEP_ADDRESSES {
        return Err(format!("a step's streams are served at 1 to {STEP_ADDRESSES} addresses"));
    }
    let tasks = (0..).zip(&part.tasks).map(|(local, rank)| task(launch, program, part, launching, (local, *rank)));
    Ok(StepOrder {
        user: users.find(launch.uid, launch.gid)?,
        argv: program.argv.clone(),
        environment: environment(program, part, folder, launching),
        work_dir: program.work_dir.clone(),
        umask: program.umask & 0o777,
        append: program.append,
        unbuffered: program.unbuffered,
        open_files: launching.open_files,
        confinement: attempt_group.of_step(launch.step),
        attempt_group,
        tasks: tasks.collect::<Result<_, _>>()?,
        node: part.node.clone(),
        addresses: launch.addresses.clone(),
        certificate: launch.certificate.clone(),
        key: launch.key.clone(),
        cpu_milli: launch.cpu_milli,
        devices: if launch.own_devices { part.devices.clone() } else { Vec::new() },
    })
}

/// What all tasks on this node have in common.
fn environment(program: &v1::StepProgram, part: &v1::StepPart, folder: &Path, launching: &Launching) -> Vec<String> {
    let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let mut own = vec![
        mark_at(folder),
        format!("EPHOR_NODE={}", part.node),
        format!("EPHOR_SOCKET={}", launching.socket.display()),
        format!("SLURMD_NODENAME={}", part.node),
        format!("SLURM_NODEID={}", part.place),
        format!("SLURM_CPUS_ON_NODE={}", part.cpus),
        format!("SLURM_GTIDS={}", list(&part.tasks)),
        format!("SLURM_TOPOLOGY_ADDR={}", part.node),
    ];
    if !part.devices.is_empty() {
        own.push(format!("SLURM_STEP_GPUS={}", list(&part.devices)));
        own.push(format!("SLURM_GPUS_ON_NODE={}", part.devices.len()));
    }
    // Each task has its own of these, or none.
    let never =
        ["SLURM_TASK_PID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE", gpu::VISIBLE];
    let is_own = |e: &&String| never.contains(&name_of(e)) || own.iter().any(|entry| name_of(entry) == name_of(e));
    let mut environment: Vec<_> = program.environment.iter().filter(|e| !is_own(e)).cloned().collect();
    if !environment.iter().any(|entry| entry.starts_with("TMPDIR=")) {
        environment.push("TMPDIR=/tmp".into());
    }
    environment.append(&mut own);
    environment
}

fn task(
    launch: &v1::StepLaunch,
    program: &v1::StepProgram,
    part: &v1::StepPart,
    launching: &Launching,
    (local, rank): (u32, u32),
) -> Result<TaskOrder, String> {
    let job = launch.attempt.map_or(0, |a| a.job);
    let names = Names {
        job,
        array: if launch.array_index.is_some() { launch.array_id } else { job },
        index: launch.array_index,
        name: &launch.job_name,
        user: &launch.user,
        node: &part.node,
        task: Some(TaskNames { step: launch.step, rank, place: part.place }),
    };
    let stream = |pattern: &Option<String>| match pattern.as_deref() {
        None => Stream::Served,
        Some("") => Stream::Nothing,
        Some(pattern) => Stream::File(expand(pattern, &names)),
    };
    let stdin = match program.stdin_task {
        Some(only) if only != rank => Stream::Nothing,
        _ => stream(&program.stdin),
    };
    let visible = match program.gpus_per_task {
        None => &part.devices[..],
        Some(each) => {
            let (from, to) = (local as usize * each as usize, (local as usize + 1) * each as usize);
            part.devices.get(from..to).ok_or_else(|| format!("task {rank} was given no GPUs"))?
        }
    };
    let mut environment = vec![format!("SLURM_PROCID={rank}"), format!("SLURM_LOCALID={local}")];
    environment.extend(launching.gpus.entries(visible)?);
    Ok(TaskOrder { rank, environment, stdin, stdout: stream(&program.stdout), stderr: stream(&program.stderr) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::Visibility;

    fn launching() -> Launching {
        Launching {
            shim: "/shim".into(),
            socket: "/run/agent.sock".into(),
            confinement: Confinement::Walk,
            gpus: Visibility::default(),
            open_files: 1024,
        }
    }

    fn launch() -> v1::StepLaunch {
        let part = v1::StepPart { node: "n2".into(), place: 1, tasks: vec![2, 3], cpus: 4, ..v1::StepPart::default() };
        let program = v1::StepProgram {
            argv: vec!["prog".into()],
            environment: vec!["A=1".into(), "SLURM_PROCID=0".into(), "EPHOR_SOCKET=/elsewhere".into()],
            work_dir: "/".into(),
            stdout: Some("%j.%s-%t-%n-%N".into()),
            stderr: Some(String::new()),
            stdin_task: Some(3),
            ..v1::StepProgram::default()
        };
        v1::StepLaunch {
            node: "n2".into(),
            attempt: Some(v1::AttemptRef { job: 5, attempt: 1 }),
            step: 9,
            program: Some(program),
            addresses: vec!["127.0.0.1:1".into()],
            part: Some(part),
            uid: nix::unistd::geteuid().as_raw(),
            gid: nix::unistd::getegid().as_raw(),
            ..v1::StepLaunch::default()
        }
    }

    #[test]
    fn each_task_has_its_own_files_and_variables() {
        let order = |launch: &v1::StepLaunch| {
            step_order(launch, Path::new("/spool/5.1.9"), Confinement::Walk, &launching(), &mut Users::default())
        };
        let done = order(&launch()).unwrap();
        let first = &done.tasks[0];
        assert_eq!(first.stdout, Stream::File("5.9-2-1-n2".into()));
        assert_eq!((&first.stdin, &first.stderr), (&Stream::Nothing, &Stream::Nothing));
        assert_eq!(first.environment, ["SLURM_PROCID=2", "SLURM_LOCALID=0"]);
        assert_eq!(done.tasks[1].stdin, Stream::Served);
        for entry in ["A=1", "SLURM_NODEID=1", "SLURM_GTIDS=2,3", "EPHOR_SOCKET=/run/agent.sock", "SLURMD_NODENAME=n2"]
        {
            assert!(done.environment.iter().any(|e| e == entry), "{entry} is not in {:?}", done.environment);
        }
        assert!(!done.environment.iter().any(|e| e.starts_with("SLURM_PROCID")));
        let mut bad = launch();
        bad.addresses.clear();
        assert!(order(&bad).unwrap_err().contains("addresses"));
        bad = launch();
        bad.part.as_mut().unwrap().tasks.clear();
        assert!(order(&bad).unwrap_err().contains("tasks of a step"));
        bad = launch();
        bad.program.as_mut().unwrap().argv.clear();
        assert!(order(&bad).unwrap_err().contains("nothing to run"));
        bad = launch();
        bad.program.as_mut().unwrap().gpus_per_task = Some(1);
        assert!(order(&bad).unwrap_err().contains("given no GPUs"));
    }
}
