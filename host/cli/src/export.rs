//! `ephor export`.

use crate::connect::Controller;
use crate::{Global, objects, output};
use clap::Args;
use std::process::ExitCode;

/// Prints all objects.
#[derive(Args)]
pub struct Export {}

impl Export {
    /// Runs the command.
    ///
    /// # Errors
    /// The request was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let set = objects::all(&mut Controller::connect(global)?)?;
        if global.json {
            output::json(&set)?;
        } else {
            output::raw(objects::write::toml(&set).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
