//! `ephor backup`.

use crate::connect::Controller;
use crate::{Global, clock, output, restore};
use anyhow::{Context, bail};
use clap::Args;
use ephor_proto::v1::{Blob, Empty};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tonic::Streaming;

/// Copies state and history of a running controller; checks and restores such copies.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Backup {
    #[command(subcommand)]
    command: Option<restore::Command>,
    /// File to write, which must not be there yet; `-`: standard output; nothing: a name with the time
    file: Option<PathBuf>,
}

impl Backup {
    /// Runs the command. The file is there only when it is whole.
    ///
    /// # Errors
    /// The file cannot be written, the request was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        if let Some(command) = self.command {
            return command.run(global);
        }
        let default = || PathBuf::from(format!("ephor-{}.backup", clock::show(clock::now().0).replace(':', "-")));
        let file = self.file.unwrap_or_else(default);
        let to_stdout = file == Path::new("-");
        if !to_stdout && file.exists() {
            bail!("{} is there already; name another file", file.display());
        }
        let mut controller = Controller::connect(global)?;
        let mut pieces = controller.call(async |c| c.backup(Empty {}).await)?;
        if to_stdout {
            copy(&mut controller, &mut pieces, &mut io::stdout().lock())?;
            return Ok(ExitCode::SUCCESS);
        }
        let part = file.with_added_extension("part");
        let bytes = write(&mut controller, &mut pieces, &part, &file).inspect_err(|_| {
            // What cannot be removed either is named in the error that follows.
            let _ = std::fs::remove_file(&part);
        })?;
        output::written(&file, bytes, global)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn write(controller: &mut Controller, pieces: &mut Streaming<Blob>, part: &Path, file: &Path) -> anyhow::Result<u64> {
    let failed = || format!("cannot write {}", part.display());
    // The store holds what users submitted: only its owner reads it.
    let open = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(part);
    let mut out = open.with_context(failed)?;
    let bytes = copy(controller, pieces, &mut out)?;
    out.sync_all().with_context(failed)?;
    std::fs::rename(part, file).with_context(|| format!("cannot name the copy {}", file.display()))?;
    let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).with_context(failed)?;
    Ok(bytes)
}

fn copy(controller: &mut Controller, pieces: &mut Streaming<Blob>, out: &mut impl Write) -> anyhow::Result<u64> {
    let mut bytes = 0;
    while let Some(piece) = controller.wait(pieces.message())? {
        out.write_all(&piece.data).context("cannot write the copy")?;
        bytes += piece.data.len() as u64;
    }
    if bytes == 0 {
        bail!("the controller sent an empty copy");
    }
    out.flush().context("cannot write the copy")?;
    Ok(bytes)
}
