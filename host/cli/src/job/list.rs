//! `ephor job list`.

use crate::connect::Controller;
use crate::{Global, clock, output};
use clap::Args;
use ephor_model::submit::hostlist;
use ephor_model::{JobState, Span};
use ephor_proto::v1::{Job, JobQuery, JobRef};
use std::process::ExitCode;

/// Lists jobs.
#[derive(Args)]
pub struct List {
    /// Only these: 123, or 123_4 for one element of an array
    #[arg(value_name = "ID", value_parser = super::reference::parse)]
    ids: Vec<JobRef>,
    /// Only jobs of this user
    #[arg(long, short, value_name = "NAME")]
    user: Option<String>,
    /// Only my jobs
    #[arg(long, conflicts_with = "user")]
    me: bool,
    /// Only jobs of this account
    #[arg(long, short = 'A', value_name = "NAME")]
    account: Option<String>,
    /// Only jobs of this queue
    #[arg(long, short, visible_short_alias = 'p', value_name = "NAME")]
    queue: Option<String>,
    /// Only jobs of this name
    #[arg(long, short, value_name = "NAME")]
    name: Option<String>,
    /// Only jobs in these states, by name or short code: PENDING, R, FAILED
    #[arg(long, short = 't', value_name = "STATES", value_delimiter = ',', value_parser = state)]
    state: Vec<JobState>,
    /// Only jobs that had not ended before: yesterday, now-2hours, 2026-12-01; finished ones too
    #[arg(long, value_name = "TIME", value_parser = clock::parse_past)]
    since: Option<i64>,
    /// Only jobs submitted before; finished ones too
    #[arg(long, value_name = "TIME", value_parser = clock::parse_past)]
    until: Option<i64>,
    /// Finished jobs too
    #[arg(long, short)]
    all: bool,
    /// At most this many; 0: as many as the controller gives
    #[arg(long, value_name = "N", default_value_t = 0)]
    limit: u32,
}

fn state(text: &str) -> Result<JobState, String> {
    JobState::parse(text).ok_or_else(|| {
        let names: Vec<&str> = JobState::ALL.iter().map(|s| s.name()).collect();
        format!("the states are {}", names.join(", "))
    })
}

impl List {
    /// Runs the command.
    ///
    /// # Errors
    /// The query was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let by_end = self.since.is_some() || self.until.is_some() || self.state.iter().any(|s| s.is_final());
        let query = JobQuery {
            finished: self.all || by_end || !self.ids.is_empty(),
            jobs: self.ids,
            user: if self.me { Some(me()) } else { self.user },
            account: self.account,
            queue: self.queue,
            name: self.name,
            states: self.state.iter().map(|s| s.name().to_owned()).collect(),
            since: self.since,
            until: self.until,
            limit: self.limit,
        };
        let list = Controller::connect(global)?.call(async |c| c.list_jobs(query).await)?;
        if global.json {
            output::json(&list)?;
        } else {
            let now = clock::now().0;
            let rows = list.jobs.iter().map(|job| row(job, now)).collect();
            output::table(["ID", "NAME", "USER", "QUEUE", "STATE", "TIME", "NODES", "REASON"], rows)?;
            if list.truncated {
                output::problem("There are more; ask for fewer with the options of `ephor job list --help`.");
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn me() -> String {
    let uid = nix::unistd::getuid();
    let user = nix::unistd::User::from_uid(uid).ok().flatten();
    user.map_or_else(|| uid.to_string(), |user| user.name)
}

fn row(job: &Job, now: i64) -> [String; 8] {
    let nodes = match job.nodes.as_slice() {
        [] => job.request.as_ref().map_or(1, |r| r.nodes_min.max(1)).to_string(),
        nodes => hostlist::fold(nodes),
    };
    let reason = if job.reason == "None" { String::new() } else { job.reason.clone() };
    [
        job.display_id.clone(),
        job.name.clone(),
        job.user.clone(),
        job.queue.clone(),
        job.state.clone(),
        ran(job, now).map_or_else(|| "-".into(), Span::to_clock),
        nodes,
        reason,
    ]
}

/// How long a job has run, in its latest attempt.
pub fn ran(job: &Job, now: i64) -> Option<Span> {
    // Whole seconds that have passed: `to_clock` rounds up, as suits a limit.
    job.started.map(|started| Span((job.ended.unwrap_or(now) - started).max(0) / 1000 * 1000))
}
