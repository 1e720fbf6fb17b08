//! `scontrol`.

use super::rows::{self, Rows};
use super::{connect, help, shown, variable, version};
use crate::output;
use ephor_proto::v1::{JobAction, JobActionRequest, JobQuery};
use ephor_slurm::Failure;
use ephor_slurm::scontrol::show_job::{self, Against};
use ephor_slurm::scontrol::{self, Command, CommandLine, hosts, invalid_id};
use ephor_slurm::squeue::{JobId, SHOWN_AFTER_END};
use std::process::ExitCode;

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
                true => Err(Failure { lines: vec![missing.into()], code: 1 }.into()),
                false => print(&hosts(&list)?),
            }
        }
        Command::ShowJobs(ids) => show(&ids, one_line),
        Command::Hold(ids) => act(JobAction::Hold, "slurm_suspend error", &ids),
        Command::Release(ids) => act(JobAction::Release, "slurm_suspend error", &ids),
        Command::Requeue(ids) => act(JobAction::Requeue, "slurm_requeue error", &ids),
    }
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

fn act(action: JobAction, what: &str, ids: &[JobId]) -> anyhow::Result<ExitCode> {
    let jobs = ids.iter().map(|id| rows::reference(*id)).collect();
    let request = JobActionRequest { action: action.into(), jobs };
    let reply = connect()?.call(async |c| c.act_on_jobs(request).await)?;
    for problem in &reply.problems {
        let unknown = problem.error.contains("there is no");
        let text = if unknown { "Invalid job id specified" } else { &problem.error };
        output::problem(&format!("{text} for job {}", problem.job));
        output::problem(&format!("{what}: {text}"));
    }
    Ok(if reply.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
