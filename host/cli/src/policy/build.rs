//! `ephor policy build`.

use crate::{Global, output};
use anyhow::Context;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// Builds a component.
#[derive(Args)]
pub struct Build {
    /// Folder of the policy crate
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// File to write the component to
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

impl Build {
    /// Runs the command.
    ///
    /// # Errors
    /// The crate cannot be built into a component, or the file cannot be written.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let component = ephor_policy_build::build_crate(&self.folder)?;
        let shown = self.output.display();
        std::fs::write(&self.output, &component).with_context(|| format!("cannot write {shown}"))?;
        output::written(&self.output, component.len() as u64, global)?;
        Ok(ExitCode::SUCCESS)
    }
}
