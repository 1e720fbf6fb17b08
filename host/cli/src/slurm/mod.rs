//! Slurm's commands: the same binary, called by their names, or as `ephor slurm NAME`.
//!
//! What they read and write is in `ephor-slurm`; here is who asks, what time it is, and the way to the controller.

mod links;
mod rows;
mod sacct;
mod sbatch;
mod scancel;
mod scontrol;
mod sinfo;
mod squeue;
mod srun;

use crate::connect::{Controller, SOCKET_VARIABLE};
use crate::exit::CliError;
use crate::{Global, clock, output};
use clap::Args;
use ephor_proto::v1::Empty;
use ephor_slurm::Failure;
use ephor_slurm::show::{Shown, TimeFormat};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

pub use links::Links;

/// The commands by their names.
const COMMANDS: &[(&str, Run)] = &[
    ("sacct", sacct::run),
    ("sbatch", sbatch::run),
    ("scancel", scancel::run),
    ("scontrol", scontrol::run),
    ("sinfo", sinfo::run),
    ("squeue", squeue::run),
    ("srun", srun::run),
];

type Run = fn(&[String]) -> anyhow::Result<ExitCode>;

/// Runs a command of Slurm
#[derive(Args)]
pub struct Slurm {
    /// sacct, sbatch, scancel, scontrol, sinfo, squeue or srun
    name: String,
    /// Its own options and words
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    words: Vec<String>,
}

impl Slurm {
    /// Runs the command.
    ///
    /// # Errors
    /// There is no such command, and what went wrong in it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match find(&self.name) {
            Some((name, run)) => Ok(finish(name, run(&self.words))),
            None => {
                let names: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
                let text = format!("there is no command '{}' of Slurm here; there are {}", self.name, names.join(", "));
                Err(CliError::Usage(text).into())
            }
        }
    }
}

fn find(name: &str) -> Option<(&'static str, Run)> {
    COMMANDS.iter().find(|(known, _)| *known == name).copied()
}

/// Runs the command of Slurm that the whole command line asks for; `None`: it asks for none. Called before anything else
/// is looked at, since its words are its own.
pub fn called(line: &[OsString]) -> Option<ExitCode> {
    let (program, words) = line.split_first()?;
    let name = Path::new(program).file_name().and_then(OsStr::to_str)?;
    let (name, run, words) = match find(name) {
        Some((name, run)) => (name, run, words),
        None => {
            let (noun, words) = words.split_first().filter(|(noun, _)| *noun == "slurm")?;
            debug_assert_eq!(noun, "slurm");
            let (name, words) = words.split_first()?;
            let (name, run) = find(name.to_str()?)?;
            (name, run, words)
        }
    };
    // What is no text can be no option, id or name; a path that is none cannot travel either.
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    Some(finish(name, run(&words)))
}

/// Says why it failed, as the command does.
fn finish(name: &str, result: anyhow::Result<ExitCode>) -> ExitCode {
    let error = match result {
        Ok(code) => return code,
        Err(error) => error,
    };
    if let Some(failure) = error.downcast_ref::<Failure>() {
        failure.lines.iter().for_each(|line| output::problem(line));
        return ExitCode::from(failure.code);
    }
    let broken = |e: &(dyn std::error::Error + 'static)| {
        e.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    };
    if error.chain().any(broken) {
        return ExitCode::SUCCESS;
    }
    if error.is::<CliError>() {
        let what = match name {
            "sbatch" => "sbatch: error: Batch job submission failed: ",
            "sinfo" => "slurm_load_partitions: ",
            "scancel" => "scancel: error: ",
            "srun" => "srun: error: Unable to create step: ",
            _ => "slurm_load_jobs error: ",
        };
        output::problem(&format!("{what}Unable to contact slurm controller (connect failure)"));
    }
    output::problem(&format!("{name}: error: {error:#}"));
    ExitCode::FAILURE
}

/// The global options, which these commands do not have: only the variable names a socket.
fn global() -> Global {
    let socket = std::env::var_os(SOCKET_VARIABLE).filter(|path| !path.is_empty());
    Global { json: false, socket: socket.map(Into::into) }
}

fn connect() -> anyhow::Result<Controller> {
    Controller::connect(&global())
}

/// The cluster's name.
fn cluster(controller: &mut Controller) -> anyhow::Result<String> {
    Ok(controller.call(async |c| c.status(Empty {}).await)?.cluster)
}

/// What lists are shown against: the clock, and the variable for the format of times.
fn shown() -> Shown {
    let now = clock::now();
    let times = TimeFormat::read(variable("SLURM_TIME_FORMAT").as_deref());
    Shown { now, offset: clock::offset(now), times }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The version, as Slurm's commands say theirs.
fn version() -> anyhow::Result<ExitCode> {
    output::line(ephor_slurm::VERSION)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints help.
fn help(text: &str) -> anyhow::Result<ExitCode> {
    output::raw(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The caller's environment. Entries that are not UTF-8 cannot travel and are left out.
fn environment() -> Vec<String> {
    let entry = |(name, value): (OsString, OsString)| {
        Some(format!("{}={}", name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(entry).collect()
}

/// The user that runs this.
fn me() -> String {
    let uid = nix::unistd::getuid();
    let user = nix::unistd::User::from_uid(uid).ok().flatten();
    user.map_or_else(|| uid.to_string(), |user| user.name)
}
