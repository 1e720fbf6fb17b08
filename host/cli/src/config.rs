//! `ephor config`.

use crate::{Global, output};
use clap::{Args, Subcommand};
use ephor_controller::config::check;
use std::path::PathBuf;
use std::process::ExitCode;

/// Commands about the settings of the controller.
#[derive(Args)]
pub struct Config {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show every setting in force, and what would keep the controller from starting
    Check {
        /// The file; default: /etc/ephor/controller.toml where it is there, else built-in defaults
        file: Option<PathBuf>,
    },
}

impl Config {
    /// Runs the command. Ends with 1 where the controller would not start.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let Command::Check { file } = self.command;
        let report = check(file.as_deref());
        if global.json {
            output::json(&report)?;
        } else {
            output::raw(report.to_text().as_bytes())?;
        }
        Ok(if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
