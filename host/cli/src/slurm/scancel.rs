//! `scancel`.

use super::rows::{self, Rows};
use super::{connect, help, me, variable, version};
use crate::connect::Controller;
use crate::output;
use ephor_model::JobState;
use ephor_proto::v1::{JobAction, JobActionRequest, JobQuery, JobRef, SignalRequest, SignalTo};
use ephor_slurm::scancel::{self, PROGRAM, Query};
use ephor_slurm::squeue::names;
use std::process::ExitCode;

pub(super) fn run(words: &[String]) -> anyhow::Result<ExitCode> {
    let query = Query::read(words, variable)?;
    if query.version {
        return version();
    }
    if query.help {
        return help(&scancel::help());
    }
    let mut controller = connect()?;
    let jobs = match query.is_filtered() {
        true => filtered(&query, &mut controller)?,
        false => query.jobs.iter().map(|id| rows::reference(*id)).collect(),
    };
    if jobs.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if query.verbose {
        let what = query.signal.map_or_else(|| "Terminating".to_owned(), |number| format!("Signal {number} to"));
        jobs.iter()
            .for_each(|job| output::problem(&format!("{PROGRAM}: {what} job {}", crate::job::reference::show(job))));
    }
    let reply = match query.signal {
        None => {
            let request = JobActionRequest { action: JobAction::Cancel.into(), jobs };
            controller.call(async |c| c.act_on_jobs(request).await)?
        }
        Some(number) => {
            let to = match (query.full, query.batch) {
                (true, _) => SignalTo::All,
                (_, true) => SignalTo::Script,
                _ => SignalTo::Others,
            };
            let request = SignalRequest { jobs, number, to: to.into() };
            controller.call(async |c| c.signal_jobs(request).await)?
        }
    };
    let mut code = ExitCode::SUCCESS;
    for problem in &reply.problems {
        // A job that is gone is what was asked for.
        let gone = problem.error.contains("there is no") || problem.error.contains("ended");
        let text = if gone { "Invalid job id specified" } else { &problem.error };
        if !gone {
            code = ExitCode::FAILURE;
        }
        if (!gone && !query.quiet) || query.verbose {
            output::problem(&format!("{PROGRAM}: error: Kill job error on job id {}: {text}", problem.job));
        }
    }
    Ok(code)
}

/// The jobs that all filters let through.
fn filtered(query: &Query, controller: &mut Controller) -> anyhow::Result<Vec<JobRef>> {
    let question = JobQuery {
        jobs: query.jobs.iter().map(|id| rows::reference(*id)).collect(),
        user: if query.me { Some(me()) } else { query.user.clone() },
        account: query.account.clone(),
        queue: query.partition.clone(),
        name: query.name.clone(),
        states: query.state.iter().map(|state| state.name().to_owned()).collect(),
        ..JobQuery::default()
    };
    let list = controller.call(async |c| c.list_jobs(question).await)?;
    let mut known = Rows::default();
    let rows = list.jobs.into_iter().map(|job| known.row(job)).filter(|row| {
        let is = |wanted: &Option<String>, found: Option<&String>| wanted.as_ref().is_none_or(|w| Some(w) == found);
        is(&query.qos, row.qos.as_ref())
            && is(&query.reservation, row.reservation.as_ref())
            && (query.nodes.is_empty() || query.nodes.iter().any(|node| row.nodes.contains(node)))
            && (query.jobs.is_empty() || query.jobs.iter().any(|id| names(*id, row)))
            && !JobState::is_final(row.state)
    });
    let mut all: Vec<JobRef> = Vec::new();
    for row in rows {
        let reference = match &row.array {
            // Elements of an array that nothing has touched are one row.
            Some(array) if array.pending.is_some() => {
                let list =
                    array.pending.as_deref().unwrap_or_default().split('%').next().unwrap_or_default().to_owned();
                let Ok(indices) = ephor_model::ArraySpec::parse(&list) else { continue };
                let wanted = |index: &u32| {
                    let whole = |id: &ephor_slurm::squeue::JobId| id.index.is_none_or(|other| other == *index);
                    query.jobs.is_empty() || query.jobs.iter().any(|id| id.job == array.id && whole(id))
                };
                let each = (0..indices.count()).filter_map(|n| indices.index(n)).filter(wanted);
                all.extend(each.map(|index| JobRef { job: array.id, index: Some(index) }));
                continue;
            }
            Some(array) => JobRef { job: array.id, index: array.index },
            None => JobRef { job: row.id, index: None },
        };
        all.push(reference);
    }
    Ok(all)
}
