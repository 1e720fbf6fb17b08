//! How the command ends: exit codes and the line that says why.

use std::io;
use std::process::ExitCode;

/// The end of `ephor --help`.
pub const HELP: &str = "\
Exit codes:
  0  done
  1  refused or failed; for several jobs: it failed for one of them
  2  the command line is wrong
  3  no controller answers
`ephor job submit --wait` ends with the exit code of the job, 128 + N where signal N ended it.

Try `ephor job submit -- echo hello`, then `ephor job list --all`.";

/// An error that has an exit code of its own; every other error ends with 1.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command line cannot be meant (2).
    #[error("{0}")]
    Usage(String),
    /// No controller answers (3).
    #[error("{0}")]
    Unreachable(String),
}

/// Prints why the command failed, and gives the exit code for it.
pub fn report(error: anyhow::Error) -> ExitCode {
    // Whoever read our output has seen enough: `ephor job list | head`.
    if error.chain().any(|e| e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)) {
        return ExitCode::SUCCESS;
    }
    crate::output::problem(&format!("error: {error:#}"));
    ExitCode::from(match error.downcast_ref() {
        Some(CliError::Usage(_)) => 2,
        Some(CliError::Unreachable(_)) => 3,
        None => 1,
    })
}
