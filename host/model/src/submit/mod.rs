//! From a job script and its options to a job: one reading for scripts, for `ephor job submit` and for `sbatch`.
//!
//! A script's text gives directive lines ([`directive`]), these give options ([`option`]), and the options of script
//! and command line together give a [`Draft`]. Within one source the last option wins, and the command line wins over
//! the script. Nothing here reads a file or a clock: whoever calls brings both.

mod assemble;
mod dependency;
pub mod directive;
mod environment;
mod error;
mod gpu;
pub mod hostlist;
mod licence;
mod modify;
mod names;
pub mod option;
mod per_gpu;
mod quantity;
mod request;
mod table;

#[cfg(test)]
mod cases;

pub use environment::split_list;
pub use error::{Place, SubmitError};
pub use modify::{changes, is_changeable};
pub use option::{Dialect, Given, JobOption, OptionDef, Takes};
pub use quantity::parse_mib;
pub use table::OPTIONS;

use crate::job::{Blobs, Draft, Payload};
use crate::limits;
use crate::time::{Span, Timestamp};

/// What is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A script with its arguments; its directive lines count.
    Script {
        /// The whole text.
        text: Vec<u8>,
        /// Arguments for it.
        args: Vec<String>,
        /// Name of the job unless an option names it.
        name: String,
    },
    /// A program with its arguments, run without a shell.
    Command(Vec<String>),
    /// Only what `--wrap` says.
    Nothing,
}

/// What the options are read against.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The time now, for begin times.
    pub now: Timestamp,
    /// How far the caller's clock is ahead of UTC.
    pub utc_offset: Span,
    /// Absolute path of the folder that the job is submitted from.
    pub work_dir: &'a str,
    /// The caller's environment as `NAME=value` entries.
    pub environment: &'a [String],
}

/// Reads a job. `command_line` are the options that came outside the script; they win.
///
/// # Errors
/// Whatever is wrong with script or options, with its line and with what would work.
pub fn draft(work: Work, command_line: &[Given], caller: &Caller<'_>) -> Result<Draft, SubmitError> {
    let wrapped = command_line.iter().rev().find(|g| g.option == JobOption::Wrap).and_then(|g| g.value.as_deref());
    let (name, payload, script) = match (work, wrapped) {
        (Work::Nothing, None) => return Err(SubmitError::new("there is nothing to run: name a script or a command")),
        (Work::Nothing, Some(command)) => {
            let text = format!("#!/bin/sh\n{command}\n").into_bytes();
            ("wrap".to_owned(), Payload::Script { args: Vec::new() }, Some(text))
        }
        (_, Some(_)) => {
            return Err(SubmitError::new("--wrap is the whole script: leave out the other script or command"));
        }
        (Work::Script { text, args, name }, None) => (name, Payload::Script { args }, Some(text)),
        (Work::Command(argv), None) => {
            let Some(program) = argv.first().filter(|p| !p.is_empty()) else {
                return Err(SubmitError::new("the command is empty; write the program after --"));
            };
            let name = program.rsplit('/').next().unwrap_or(program).to_owned();
            (name, Payload::Argv(argv), None)
        }
    };
    let from_script = match &script {
        Some(text) => {
            directive::check_script(text)?;
            directive::options(text)?
        }
        None => Vec::new(),
    };
    build(&name, payload, script, &from_script, command_line, caller)
}

/// As [`draft`], where whoever calls has read the directives of the script: `before` are the options that those of the
/// command line win over.
///
/// # Errors
/// As [`draft`].
pub fn draft_of(
    text: Vec<u8>,
    args: Vec<String>,
    name: &str,
    before: &[Given],
    command_line: &[Given],
    caller: &Caller<'_>,
) -> Result<Draft, SubmitError> {
    build(name, Payload::Script { args }, Some(text), before, command_line, caller)
}

fn build(
    name: &str,
    payload: Payload,
    script: Option<Vec<u8>>,
    before: &[Given],
    command_line: &[Given],
    caller: &Caller<'_>,
) -> Result<Draft, SubmitError> {
    let (spec, environment) = assemble::assemble(name, payload, before, command_line, caller)?;
    if environment.len() > limits::ENVIRONMENT_BYTES {
        return Err(SubmitError::new(format!(
            "the environment has {} bytes and a job can take {}; pass less of it with --export=NAME,...",
            environment.len(),
            limits::ENVIRONMENT_BYTES
        )));
    }
    Ok(Draft { spec, blobs: Blobs { script, environment } })
}
