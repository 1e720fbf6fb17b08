//! `ephor job`: submit jobs, see them, act on them.

mod act;
mod list;
mod modify;
mod options;
pub(crate) mod reference;
mod show;
mod signal;
mod submit;
pub(crate) mod wait;
mod why;

use crate::Global;
use clap::{Args, Subcommand};
use ephor_proto::v1::JobAction;
use std::process::ExitCode;

/// Commands about jobs.
#[derive(Args)]
pub struct Job {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Submit a script with directive lines, a script on standard input, or a command after `--`
    #[command(infer_long_args = true, override_usage = submit::USAGE, after_help = submit::HELP)]
    Submit(Box<submit::Submit>),
    /// List jobs: those that are not finished, or what the options choose
    List(list::List),
    /// Show all about jobs
    Show(show::Show),
    /// Say what jobs wait for, which policy said so, and when they could start
    Why(why::Why),
    /// Change jobs that wait, and the time limit of those that run
    #[command(infer_long_args = true, after_help = modify::HELP)]
    Modify(Box<modify::Modify>),
    /// Cancel jobs, waiting or running
    Cancel(act::Act),
    /// Keep waiting jobs from starting
    Hold(act::Act),
    /// Let held jobs go
    Release(act::Act),
    /// End running jobs and let them wait again
    Requeue(act::Act),
    /// Send running jobs a signal
    Signal(signal::Signal),
}

impl Job {
    /// Runs the command.
    ///
    /// # Errors
    /// The request was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Submit(command) => command.run(global),
            Command::List(command) => command.run(global),
            Command::Show(command) => command.run(global),
            Command::Why(command) => command.run(global),
            Command::Modify(command) => command.run(global),
            Command::Cancel(command) => command.run(global, JobAction::Cancel),
            Command::Hold(command) => command.run(global, JobAction::Hold),
            Command::Release(command) => command.run(global, JobAction::Release),
            Command::Requeue(command) => command.run(global, JobAction::Requeue),
            Command::Signal(command) => command.run(global),
        }
    }
}
