//! `ephor man`.

use crate::{Cli, output};
use anyhow::Context;
use clap::{Args, CommandFactory};
use std::path::PathBuf;
use std::process::ExitCode;

/// Prints the manual.
#[derive(Args)]
pub struct Man {
    /// Write a page for each command into this folder instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    /// Runs the command.
    ///
    /// # Errors
    /// Standard output or the folder cannot be written.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let mut page = Vec::new();
        match self.dir {
            Some(dir) => {
                std::fs::create_dir_all(&dir)
                    .and_then(|()| clap_mangen::generate_to(Cli::command(), &dir))
                    .with_context(|| format!("cannot write the pages into {}", dir.display()))?;
            }
            None => {
                clap_mangen::Man::new(Cli::command()).render(&mut page)?;
                output::raw(&page)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
