//! `ephor status`.

use crate::connect::Controller;
use crate::{Global, clock, output};
use clap::Args;
use ephor_proto::v1::Empty;
use std::process::ExitCode;

/// Shows how the controller is.
#[derive(Args)]
pub struct Status {}

impl Status {
    /// Runs the command.
    ///
    /// # Errors
    /// The request was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let status = Controller::connect(global)?.call(async |c| c.status(Empty {}).await)?;
        if global.json {
            output::json(&status)?;
        } else {
            output::fields(&[
                ("Version", status.version),
                ("Running since", clock::show(status.started)),
                ("Epoch", status.epoch.to_string()),
                ("Jobs pending", status.pending.to_string()),
                ("Jobs running", status.running.to_string()),
                ("Nodes up", format!("{} of {}", status.nodes_up, status.nodes)),
                ("Events", status.events.to_string()),
                ("Cycles", status.cycles.to_string()),
                ("Data folder", status.data_folder),
            ])?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
