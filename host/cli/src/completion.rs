//! `ephor completion`.

use crate::{Cli, output};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::process::ExitCode;

/// Prints a completion script.
#[derive(Args)]
pub struct Completion {
    /// The shell
    shell: Shell,
}

impl Completion {
    /// Runs the command.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "ephor", &mut script);
        output::raw(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
