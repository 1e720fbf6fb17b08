//! `ephor job signal`.

use crate::Global;
use crate::connect::Controller;
use clap::{Args, ValueEnum};
use ephor_model::signal::number;
use ephor_proto::v1::{JobRef, SignalRequest, SignalTo};
use std::process::ExitCode;

/// Sends a signal to jobs.
#[derive(Args)]
pub struct Signal {
    /// The signal: a name such as USR1, or a number from 1 to 31
    #[arg(value_name = "SIGNAL", value_parser = parse)]
    signal: i32,
    /// Running jobs: 123, or 123_4 for one element of an array
    #[arg(required = true, value_name = "ID", value_parser = super::reference::parse)]
    ids: Vec<JobRef>,
    /// Which processes get it; steps get it through srun
    #[arg(long, value_enum, default_value_t = To::Others)]
    to: To,
}

#[derive(Clone, Copy, ValueEnum)]
enum To {
    /// Every one but the script's own shell; all where there is no script
    Others,
    /// The script's own shell, or the program where there is no script
    Script,
    /// Every one
    All,
}

impl Signal {
    /// Runs the command. Ends with 1 where one of the jobs could not get it; the others got it.
    ///
    /// # Errors
    /// The whole request was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let to = match self.to {
            To::Others => SignalTo::Others,
            To::Script => SignalTo::Script,
            To::All => SignalTo::All,
        };
        let request = SignalRequest { jobs: self.ids, number: self.signal, to: to.into() };
        let reply = Controller::connect(global)?.call(async |c| c.signal_jobs(request).await)?;
        super::act::tell(&reply, global)
    }
}

fn parse(text: &str) -> Result<i32, String> {
    number(text).ok_or_else(|| format!("'{text}' is no signal; write a name such as USR1, or a number from 1 to 31"))
}
