//! `sbatch`: from a command line, the environment and a script to a job.
//!
//! Within one source the last option wins; the command line wins over the environment, and that over the script.

mod collect;
pub mod environment;
pub(crate) mod gpu;
mod pbs;
pub mod refusal;
pub mod script;
pub mod table;

use crate::failure::Failure;
use crate::getopt::{self, Given, Operands, Reader};
use collect::{Collector, Source};
use ephor_model::submit::Caller;
use ephor_model::{Draft, submit};
use table::{Key, TABLE};

/// Name of the command in messages.
pub const PROGRAM: &str = "sbatch";
/// Exit code of a wrong option or value.
pub const USAGE: u8 = 255;

const READER: Reader<Key> = Reader { program: PROGRAM, table: TABLE, operands: Operands::Stop, usage_code: USAGE };

/// The command line, read.
pub type CommandLine = getopt::CommandLine<Key>;

impl CommandLine {
    /// Reads the words after the command's name.
    ///
    /// # Errors
    /// Unknown options, missing values.
    pub fn read(words: &[String]) -> Result<Self, Failure> {
        let (given, operands) = READER.read(words)?;
        Ok(Self { given, operands })
    }

    /// The command that stands in place of a script.
    pub fn wrapped(&self) -> Option<&str> {
        self.given.iter().rev().find(|given| given.key == Key::Wrap)?.value.as_deref()
    }
}

/// The script of a job.
#[derive(Clone, Debug)]
pub struct Script {
    /// The whole text.
    pub text: Vec<u8>,
    /// What messages call it: the path as it was typed, or `stdin`.
    pub shown: String,
    /// Name of the job where no option names it.
    pub name: String,
}

impl Script {
    /// The script that `--wrap` stands for.
    pub fn wrapped(command: &str) -> Self {
        let text = format!("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{command}\n").into_bytes();
        Self { text, shown: "wrap".into(), name: "wrap".into() }
    }
}

/// A job, and how the command is to speak of it.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The job.
    pub draft: Draft,
    /// Lines for standard error that stop nothing.
    pub warnings: Vec<String>,
    /// Print the id alone.
    pub parsable: bool,
    /// Print nothing but errors.
    pub quiet: bool,
    /// Wait for the end of the job, and end with its exit code.
    pub wait: bool,
}

/// Reads a job. `caller.environment` gives the defaults of options too.
///
/// # Errors
/// Whatever is wrong, in the lines and with the exit code that clients know.
pub fn read(line: &CommandLine, script: Script, caller: &Caller<'_>) -> Result<Submission, Failure> {
    script::check(&script.text)?;
    let found = script::directives(&script.text, &script.shown)?;
    let mut collector = Collector::new(caller);
    collector.warnings = found.warnings;
    let stray =
        |word: &String| Failure::error(PROGRAM, format!("Invalid directive found in batch script: {word}"), USAGE);
    let (directives, strays) = read_directives(&found.words)?;
    for given in &directives {
        collector.take(given, Source::Script)?;
    }
    if let Some(word) = strays.first() {
        return Err(stray(word));
    }
    let from_environment = defaults(caller.environment);
    let ignores_pbs = |given: &Given<Key>| given.key == Key::IgnorePbs;
    if !directives.iter().chain(&from_environment).chain(&line.given).any(ignores_pbs) {
        for given in &pbs::options(&found.pbs)? {
            collector.take(given, Source::Script)?;
        }
    }
    for given in &from_environment {
        collector.take(given, Source::Environment)?;
    }
    for given in &line.given {
        collector.take(given, Source::CommandLine)?;
    }
    let args = line.operands.iter().skip(1).cloned().collect();
    collector.finish(script, args)
}

/// The options of the directives, and words that are none. A stray word is told after the options before it, so that
/// reading goes on.
fn read_directives(words: &[String]) -> Result<(Vec<Given<Key>>, Vec<String>), Failure> {
    if let Some(word) = words.iter().find(|word| ["hetjob", "packjob"].contains(&word.as_str())) {
        let text = format!("{word}: heterogeneous jobs are not there yet; submit one job for each component");
        return Err(Failure::error(PROGRAM, text, USAGE));
    }
    Reader { operands: Operands::Permute, ..READER }.read(words)
}

/// The options that the environment gives.
fn defaults(entries: &[String]) -> Vec<Given<Key>> {
    let value = |name: &str| entries.iter().find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='));
    let mut given = Vec::new();
    for def in TABLE {
        let Some(text) = def.variable.and_then(value) else { continue };
        let value = match def.takes {
            crate::table::Takes::Nothing => None,
            _ => Some(text.to_owned()).filter(|text| !text.is_empty()),
        };
        if value.is_some() || !matches!(def.takes, crate::table::Takes::Value(_)) {
            given.push(Given { key: def.key, long: def.long, value });
        }
    }
    given
}

/// The help of the command.
pub fn help() -> String {
    crate::table::help(PROGRAM, "script [args...]", TABLE)
}

/// A refusal of the model in the words of this command.
fn refused(error: &submit::SubmitError) -> Failure {
    Failure::error(PROGRAM, &error.message, 1)
}
