//! `ephor job cancel`, `hold`, `release` and `requeue`.

use crate::connect::Controller;
use crate::{Global, output};
use clap::Args;
use ephor_proto::v1::{JobAction, JobActionReply, JobActionRequest, JobRef};
use std::process::ExitCode;

/// Acts on jobs.
#[derive(Args)]
pub struct Act {
    /// Jobs: 123, or 123_4 for one element of an array
    #[arg(required = true, value_name = "ID", value_parser = super::reference::parse)]
    ids: Vec<JobRef>,
}

impl Act {
    /// Runs the command. Ends with 1 where it could not be done to one of the jobs; it was done to the others.
    ///
    /// # Errors
    /// The whole request was refused, or no controller answers.
    pub fn run(self, global: &Global, action: JobAction) -> anyhow::Result<ExitCode> {
        let request = JobActionRequest { action: action.into(), jobs: self.ids };
        let reply = Controller::connect(global)?.call(async |c| c.act_on_jobs(request).await)?;
        tell(&reply, global)
    }
}

/// Says which jobs it could not be done to.
pub(super) fn tell(reply: &JobActionReply, global: &Global) -> anyhow::Result<ExitCode> {
    if global.json {
        output::json(reply)?;
    }
    for problem in &reply.problems {
        output::problem(&format!("error: job {}: {}", problem.job, problem.error));
    }
    Ok(if reply.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
