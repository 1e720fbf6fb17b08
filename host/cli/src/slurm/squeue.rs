//! `squeue`.

use super::rows::{self, Rows};
use super::{cluster, connect, help, me, shown, variable, version};
use crate::output;
use ephor_model::{JobState, Span};
use ephor_proto::v1::JobQuery;
use ephor_slurm::scontrol::invalid_id;
use ephor_slurm::squeue::{self, Query, SHOWN_AFTER_END, unknown_field};
use ephor_slurm::{columns, json, show::Shown};
use std::process::ExitCode;

pub(super) fn run(words: &[String]) -> anyhow::Result<ExitCode> {
    let mut query = Query::read(words, variable)?;
    if query.version {
        return version();
    }
    if query.help {
        return help(&squeue::help());
    }
    if query.me {
        query.users = vec![me()];
    }
    let shown = shown();
    let format = query.pieces();
    format.unknown.iter().for_each(|name| output::problem(&unknown_field(name)));
    let mut controller = connect()?;
    let list = controller.call(async |c| c.list_jobs(question(&query, &shown)).await)?;
    let mut known = Rows::default();
    let recent = |ended: Option<i64>| ended.is_none_or(|at| at >= (shown.now + Span(-SHOWN_AFTER_END.0)).0);
    let mut rows: Vec<_> = list.jobs.into_iter().filter(|job| recent(job.ended)).map(|job| known.row(job)).collect();
    if let ([only], true) = (query.jobs.as_slice(), rows.is_empty()) {
        // Of several, those that are known are shown; of one alone it is an error.
        debug_assert!(only.job > 0 || only.index.is_none());
        return Err(invalid_id().into());
    }
    if query.json {
        rows::complete(&mut rows, &mut controller)?;
        let cluster = cluster(&mut controller)?;
        output::raw(json::queued::jobs(&query.select(rows, &shown), &cluster).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    if format.pieces.iter().any(|piece| matches!(piece, columns::Piece::Column(c, _) if needs_more(c.long))) {
        rows::complete(&mut rows, &mut controller)?;
    }
    let rows = query.select(rows, &shown);
    let mut text = String::new();
    if query.heading {
        if query.long && query.format.is_none() && query.long_format.is_none() {
            text.push_str(&format!("{}\n", shown.date_line()));
        }
        text.push_str(&columns::heading(&format.pieces));
        text.push('\n');
    }
    for row in &rows {
        text.push_str(&columns::row(&format.pieces, row, &shown));
        text.push('\n');
    }
    output::raw(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a field is worth another question to the controller for every list.
fn needs_more(field: &str) -> bool {
    field == "dependency"
}

/// What the controller can choose by itself; the rest is chosen of its answer.
fn question(query: &Query, shown: &Shown) -> JobQuery {
    let one = |list: &[String]| match list {
        [only] => Some(only.clone()),
        _ => None,
    };
    let finished = query.all_states || query.states.iter().any(|s| JobState::is_final(*s)) || !query.jobs.is_empty();
    JobQuery {
        jobs: query.jobs.iter().map(|id| rows::reference(*id)).collect(),
        user: one(&query.users),
        account: one(&query.accounts),
        queue: one(&query.partitions),
        name: one(&query.names),
        states: match query.jobs.is_empty() {
            // A named job is looked for in any state, so that one that is unknown is told from one that has ended.
            true => query.states.iter().map(|state| state.name().to_owned()).collect(),
            false => Vec::new(),
        },
        since: finished.then(|| (shown.now + Span(-SHOWN_AFTER_END.0)).0),
        finished,
        ..JobQuery::default()
    }
}
