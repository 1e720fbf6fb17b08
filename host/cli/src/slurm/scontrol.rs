//! `scontrol`.

use super::rows::{self, Rows};
use super::sinfo::Cluster;
use super::{connect, help, shown, variable, version};
use crate::exit::CliError;
use crate::{clock, output};
use ephor_model::Field;
use ephor_model::submit::{self, Caller};
use ephor_proto::modify::changes_to_wire;
use ephor_proto::v1::{Empty, JobAction, JobActionRequest, JobQuery, ModifyRequest, NodeAction, NodeActionRequest};
use ephor_slurm::Failure;
use ephor_slurm::scontrol::show_job::{self, Against};
use ephor_slurm::scontrol::update::{self, Update};
use ephor_slurm::scontrol::{self, Command, CommandLine, PROGRAM, hosts, invalid_id, show_node, show_partition};
use ephor_slurm::sinfo::PartitionView;
use ephor_slurm::squeue::{JobId, SHOWN_AFTER_END};
use std::process::ExitCode;
use std::rc::Rc;

pub(super) fn run(words: &[String]) -> anyhow::Result<ExitCode> {
    let CommandLine { command, one_line } = CommandLine::read(words)?;
    match command {
        Command::Version => version(),
        Command::Help => help(&scontrol::help()),
        Command::Print(lines) => print(&lines),
        Command::ShowOwnHosts => {
            let list = variable("SLURM_JOB_NODELIST").or_else(|| variable("SLURM_NODELIST")).unwrap_or_default();
            let missing = "host list is empty; name one, or run this in a job";
            match list.is_empty() {
                true => Err(failure(missing)),
                false => print(&hosts(&list)?),
            }
        }
        Command::ShowJobs(ids) => show(&ids, one_line),
        Command::ShowPartitions(name) => show_partitions(name.as_deref(), one_line),
        Command::ShowNodes(names) => show_nodes(&names, one_line),
        Command::ShowConfig => {
            let status = connect()?.call(async |c| c.status(Empty {}).await)?;
            let shown = shown();
            print(&scontrol::config(&status.cluster, &shown.at(shown.now)))
        }
        Command::Ping => match connect().and_then(|mut c| c.call(async |c| c.status(Empty {}).await)) {
            Ok(_) => print(&["Slurmctld(primary) is UP".into()]),
            Err(_) => {
                print(&["Slurmctld(primary) is DOWN".into()])?;
                Ok(ExitCode::FAILURE)
            }
        },
        Command::Update(words) => update(&words),
        Command::Hold(ids) => act(JobAction::Hold, Some("slurm_suspend error"), &ids),
        Command::Release(ids) => act(JobAction::Release, Some("slurm_suspend error"), &ids),
        Command::Requeue(ids) => act(JobAction::Requeue, None, &ids),
    }
}

fn failure(line: &str) -> anyhow::Error {
    Failure { lines: vec![line.to_owned()], code: 1 }.into()
}

fn print(lines: &[String]) -> anyhow::Result<ExitCode> {
    lines.iter().try_for_each(|line| output::line(line))?;
    Ok(ExitCode::SUCCESS)
}

fn show(ids: &[JobId], one_line: bool) -> anyhow::Result<ExitCode> {
    let mut controller = connect()?;
    let shown = shown();
    let query = JobQuery {
        jobs: ids.iter().map(|id| rows::reference(*id)).collect(),
        finished: true,
        since: Some((shown.now + ephor_model::Span(-SHOWN_AFTER_END.0)).0),
        ..JobQuery::default()
    };
    let list = controller.call(async |c| c.list_jobs(query).await)?;
    let mut known = Rows::default();
    let mut rows: Vec<_> = list.jobs.into_iter().map(|job| known.row(job)).collect();
    rows::complete(&mut rows, &mut controller)?;
    let against = Against { now: shown.now, offset: shown.offset };
    let mut text = String::new();
    for row in &rows {
        text.push_str(&show_job::show(row, against, one_line));
        text.push('\n');
    }
    output::raw(text.as_bytes())?;
    let missing = ids.iter().any(|id| !rows.iter().any(|row| ephor_slurm::squeue::names(*id, row)));
    match (missing, rows.is_empty()) {
        (true, _) => Err(invalid_id().into()),
        (false, true) => print(&["No jobs in the system".to_owned()]),
        (false, false) => Ok(ExitCode::SUCCESS),
    }
}

fn show_partitions(name: Option<&str>, one_line: bool) -> anyhow::Result<ExitCode> {
    let Cluster { partitions, nodes } = Cluster::ask(&mut connect()?)?;
    let wanted: Vec<_> = partitions.iter().filter(|p| name.is_none_or(|name| p.name == name)).collect();
    if let (Some(name), true) = (name, wanted.is_empty()) {
        return Err(failure(&format!("Partition {name} not found")));
    }
    for partition in wanted {
        output::raw(format!("{}\n", show_partition::show(partition, &nodes, one_line)).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show_nodes(names: &[String], one_line: bool) -> anyhow::Result<ExitCode> {
    let Cluster { partitions, nodes } = Cluster::ask(&mut connect()?)?;
    let shown = shown();
    let mut missing = false;
    let wanted: Vec<usize> = match names.is_empty() {
        true => (0..nodes.len()).collect(),
        false => names.iter().filter_map(|name| nodes.iter().position(|node| node.name == *name)).collect(),
    };
    for at in wanted {
        let of: Vec<&PartitionView> = partitions.iter().filter(|p| p.nodes.contains(&at)).map(Rc::as_ref).collect();
        output::raw(format!("{}\n", show_node::show(&nodes[at], &of, &shown, one_line)).as_bytes())?;
    }
    for name in names.iter().filter(|name| !nodes.iter().any(|node| node.name == **name)) {
        missing = true;
        output::problem(&format!("Node {name} not found"));
    }
    Ok(if missing { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn update(words: &[String]) -> anyhow::Result<ExitCode> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let now = clock::now();
    let offset = clock::offset(now);
    match update::read(&words, now, offset)? {
        Update::Nodes { names, drain } => {
            let action = if drain.is_some() { NodeAction::Drain } else { NodeAction::Resume };
            let reason = drain.unwrap_or_default();
            let request = NodeActionRequest { action: action.into(), nodes: names, reason, gpu: None };
            connect()?.call(async |c| c.act_on_nodes(request).await)?;
            Ok(ExitCode::SUCCESS)
        }
        Update::Jobs { ids, options, throttle } => {
            let caller = Caller { now, utc_offset: offset, work_dir: "/", environment: &[] };
            let read = submit::changes(&options, &caller);
            let mut changes = read.map_err(|why| Failure::error(PROGRAM, why, 1))?;
            if let Some(throttle) = throttle {
                changes.fields.push(Field::Throttle);
                changes.throttle = throttle;
            }
            let (fields, values) = changes_to_wire(&changes);
            let mut controller = connect()?;
            let mut code = ExitCode::SUCCESS;
            for id in ids {
                let job = Some(rows::reference(id));
                let request = ModifyRequest { job, fields: fields.clone(), values: Some(values.clone()) };
                match controller.call(async |c| c.modify_job(request).await) {
                    Ok(reply) => reply.messages.iter().for_each(|message| output::problem(message)),
                    Err(error) if error.is::<CliError>() => return Err(error),
                    Err(error) => {
                        code = ExitCode::FAILURE;
                        let shown = crate::job::reference::show(&rows::reference(id));
                        output::problem(&format!("{} for job {shown}", known(&error.to_string())));
                    }
                }
            }
            Ok(code)
        }
    }
}

/// The line of Slurm that clients know for a refusal, where there is one.
fn known(why: &str) -> &str {
    if why.contains("there is no") {
        "Invalid job id specified"
    } else if why.contains("pending already") {
        "Job is pending execution"
    } else if why.contains("ended") {
        "Job has already finished"
    } else {
        why
    }
}

fn act(action: JobAction, what: Option<&str>, ids: &[JobId]) -> anyhow::Result<ExitCode> {
    let jobs = ids.iter().map(|id| rows::reference(*id)).collect();
    let request = JobActionRequest { action: action.into(), jobs };
    let reply = connect()?.call(async |c| c.act_on_jobs(request).await)?;
    for problem in &reply.problems {
        let text = known(&problem.error);
        output::problem(&format!("{text} for job {}", problem.job));
        what.into_iter().for_each(|what| output::problem(&format!("{what}: {text}")));
    }
    Ok(if reply.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
