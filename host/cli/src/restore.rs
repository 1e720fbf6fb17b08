//! `ephor backup check` and `ephor backup restore`: what is done with a copy, without a controller.

use crate::{Global, output};
use clap::Subcommand;
use ephor_controller::restore::{self, Restored};
use std::path::PathBuf;
use std::process::ExitCode;

/// What can be done with a copy.
#[derive(Subcommand)]
pub enum Command {
    /// Check that a copy is whole and that its state is sound
    Check {
        /// The copy
        file: PathBuf,
    },
    /// Make a data folder of a copy; start on it with `ephor controller --recover`
    Restore {
        /// The copy
        file: PathBuf,
        /// Folder that is empty or not there
        folder: PathBuf,
    },
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// The copy is not whole or damaged, or the folder cannot be written.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let (found, next) = match self {
            Self::Check { file } => (restore::check(&file)?, None),
            Self::Restore { file, folder } => {
                let found = restore::restore(&file, &folder)?;
                let shown = folder.display();
                (found, Some(format!("Start on it with data_folder = \"{shown}\" and `ephor controller --recover`.")))
            }
        };
        show(&found, global)?;
        if !global.json {
            next.iter().for_each(|line| output::problem(line));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn show(found: &Restored, global: &Global) -> anyhow::Result<()> {
    let Restored { live, trust } = found;
    if global.json {
        return output::json(&serde_json::json!({
            "bytes": live.bytes, "epoch": live.epoch.0, "events": live.last_event, "rows": live.rows,
            "blobs": live.blobs, "trust": trust,
        }));
    }
    let authority = if *trust { "is in it" } else { "is not in it: nodes must join anew, or bring DATA/trust along" };
    output::fields(&[
        ("State", "sound".into()),
        ("Events", live.last_event.to_string()),
        ("Epoch", live.epoch.to_string()),
        ("Rows", live.rows.to_string()),
        ("Scripts and components", live.blobs.to_string()),
        ("Certificate authority", authority.into()),
    ])
}
