//! `ephor slurm-links`: makes the names by which this binary is called as Slurm's commands.

use super::COMMANDS;
use crate::output;
use anyhow::Context;
use clap::Args;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::ExitCode;

/// Makes links named sbatch, squeue and so on
#[derive(Args)]
pub struct Links {
    /// Folder for them; made where it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Links {
    /// Runs the command. Links of ours that are there are left; anything else of such a name is kept, and told.
    ///
    /// # Errors
    /// The folder or a link in it cannot be made.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let target = std::env::current_exe().context("cannot tell where this binary lies")?;
        let shown = self.folder.display();
        std::fs::create_dir_all(&self.folder).with_context(|| format!("cannot make the folder {shown}"))?;
        for (name, _) in COMMANDS {
            let link = self.folder.join(name);
            match std::fs::read_link(&link) {
                Ok(there) if there == target => continue,
                Ok(there) => anyhow::bail!(
                    "{} leads to {} already; remove it, or choose another folder",
                    link.display(),
                    there.display()
                ),
                Err(_) => symlink(&target, &link).with_context(|| format!("cannot make {}", link.display()))?,
            }
            output::line(&link.display().to_string())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
