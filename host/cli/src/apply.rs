//! `ephor apply`.

use crate::connect::Controller;
use crate::{Global, objects};
use anyhow::Context;
use clap::Args;
use ephor_model::limits;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Makes the objects of a file.
#[derive(Args)]
#[command(
    after_help = "The file has [[queue]], [[account]], [[user]], [[qos]], [[licence]], [[reservation]] and [[node]] tables; docs/cli.md has their keys."
)]
pub struct Apply {
    /// TOML file; `-`: standard input
    file: PathBuf,
}

impl Apply {
    /// Runs the command.
    ///
    /// # Errors
    /// The file is wrong, one of its objects was refused, or no controller answers. Nothing was changed then.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let shown = self.file.display();
        let text = read(&self.file).with_context(|| format!("cannot read {shown}"))?;
        let set = objects::file::read(&text, objects::uid_of).map_err(|e| anyhow::anyhow!("{shown}: {e}"))?;
        let count = objects::count(&set);
        anyhow::ensure!(
            count <= limits::APPLY_OBJECTS,
            "{shown} has {count} objects and at most {} are taken at once; split it",
            limits::APPLY_OBJECTS
        );
        objects::apply(&mut Controller::connect(global)?, set, global)
    }
}

fn read(file: &Path) -> std::io::Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(file)
}
