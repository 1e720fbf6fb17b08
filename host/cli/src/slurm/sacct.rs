//! `sacct`.

use super::rows::{self, Rows};
use super::{cluster, connect, help, me, shown, variable, version};
use crate::output;
use ephor_proto::v1::JobQuery;
use ephor_slurm::json;
use ephor_slurm::sacct::{self, Query};
use std::process::ExitCode;

pub(super) fn run(words: &[String]) -> anyhow::Result<ExitCode> {
    let shown = shown();
    let mut query = Query::read(words, variable, &shown)?;
    if query.version {
        return version();
    }
    if query.help {
        return help(&sacct::help());
    }
    if query.help_format {
        return help(&sacct::help_format());
    }
    let columns = query.columns()?;
    let own = !query.all_users && query.users.is_empty() && query.jobs.is_empty() && !nix::unistd::getuid().is_root();
    if own {
        query.users = vec![me()];
    }
    let one = |list: &[String]| match list {
        [only] => Some(only.clone()),
        _ => None,
    };
    let question = JobQuery {
        jobs: query.jobs.iter().map(|id| rows::reference(*id)).collect(),
        user: one(&query.users),
        account: one(&query.accounts),
        queue: one(&query.partitions),
        name: one(&query.names),
        states: query.asked_states().iter().map(|state| state.name().to_owned()).collect(),
        since: query.since.map(|at| at.0),
        until: query.until.map(|at| at.0),
        finished: true,
        ..JobQuery::default()
    };
    let mut controller = connect()?;
    let list = controller.call(async |c| c.list_jobs(question).await)?;
    if list.truncated {
        output::problem(
            "sacct: error: there are more jobs than are shown; narrow it down with --starttime and --endtime",
        );
    }
    let mut known = Rows::default();
    let rows = query.select(list.jobs.into_iter().map(|job| known.row(job)).collect());
    if query.json {
        let cluster = cluster(&mut controller)?;
        output::raw(json::past::jobs(&rows, &cluster, &shown).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    output::raw(query.text(&columns, &rows, &shown).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
