//! `ephor job submit`.

use super::options::JobOptions;
use super::wait;
use crate::connect::Controller;
use crate::exit::CliError;
use crate::{Global, clock, output};
use anyhow::Context;
use clap::Args;
use ephor_model::limits;
use ephor_model::submit::{self, Caller, JobOption, Place, SubmitError, Work};
use ephor_proto::convert::draft_to_wire;
use ephor_proto::v1::JobRef;
use std::ffi::OsString;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;

/// The command's usage: clap cannot say that `--` makes another thing of what follows.
pub const USAGE: &str = "ephor job submit [OPTIONS] [SCRIPT [ARGS]...]
       ephor job submit [OPTIONS] -- COMMAND [ARGS]...";

/// The end of the command's help.
pub const HELP: &str = "\
Lines of the script that begin with #SBATCH or #EPHOR, before its first command, hold the same options; options given
here win over them. Seconds of a time limit round up to a minute in #SBATCH lines, as in Slurm, and stay elsewhere.

  ephor job submit -n 4 --mem 2G train.sh
  ephor job submit -t 5 -- ./solve --input data.bin
  echo '#!/bin/sh
  hostname' | ephor job submit -J probe";

/// Submits a job.
#[derive(Args)]
pub struct Submit {
    /// Script to run, with its arguments; `-` or nothing: standard input. After `--`: program to run without a shell
    #[arg(value_name = "SCRIPT", trailing_var_arg = true)]
    words: Vec<String>,
    #[command(flatten)]
    options: JobOptions,
    /// Give the job this variable too; without =VALUE, as it is here
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Wait until the job has ended, and end with its exit code
    #[arg(long)]
    wait: bool,
}

impl Submit {
    /// Runs the command.
    ///
    /// # Errors
    /// Script or options are wrong, the job was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let wrapped = self.options.0.iter().any(|given| given.option == JobOption::Wrap);
        let mut words = self.words;
        let mut script = "the script".to_owned();
        let work = if !words.is_empty() && follow_dashes(words.len(), std::env::args_os()) {
            Work::Command(words)
        } else if words.is_empty() && wrapped {
            Work::Nothing
        } else {
            let args = words.split_off(words.len().min(1));
            let file = words.first().filter(|word| *word != "-").map(Path::new);
            script = file.map_or(script, |file| file.display().to_string());
            Work::Script { text: read(file)?, args, name: name(file) }
        };
        let folder = std::env::current_dir().context("the folder that you are in is gone or closed to you")?;
        let folder = folder.to_str().context("the path of the folder that you are in is not UTF-8 text")?;
        let environment = environment(&self.env)?;
        let now = clock::now();
        let caller = Caller { now, utc_offset: clock::offset(now), work_dir: folder, environment: &environment };
        let draft = submit::draft(work, &self.options.0, &caller).map_err(|e| explain(&e, &script))?;

        let mut controller = Controller::connect(global)?;
        let reply = controller.call(async |c| c.submit(draft_to_wire(&draft)).await)?;
        reply.messages.iter().for_each(|message| output::problem(message));
        if global.json {
            output::json(&reply)?;
        } else {
            output::line(&format!("Submitted job {}", reply.job))?;
        }
        match self.wait {
            true => wait::until_end(&mut controller, JobRef { job: reply.job, index: None }),
            false => Ok(ExitCode::SUCCESS),
        }
    }
}

/// Whether the last `count` words of the command line stand after `--`, which clap takes away.
fn follow_dashes(count: usize, all: impl DoubleEndedIterator<Item = OsString>) -> bool {
    all.rev().nth(count).is_some_and(|word| word == "--")
}

/// An option of the command line that is wrong is a usage error; a script that is wrong was refused.
fn explain(error: &SubmitError, script: &str) -> anyhow::Error {
    match error.place {
        Some(Place::CommandLine) => CliError::Usage(error.to_string()).into(),
        Some(Place::Line(_)) => anyhow::anyhow!("{script}, {error}"),
        None => anyhow::anyhow!("{error}"),
    }
}

fn name(file: Option<&Path>) -> String {
    let name = file.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "stdin".into())
}

fn read(file: Option<&Path>) -> anyhow::Result<Vec<u8>> {
    // One byte more than is taken, so that a script that is too large is seen as such.
    let most = limits::SCRIPT_BYTES as u64 + 1;
    let mut text = Vec::new();
    match file {
        Some(path) => {
            let open = std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
            open.take(most).read_to_end(&mut text).with_context(|| format!("cannot read {}", path.display()))?;
        }
        None => {
            let input = std::io::stdin();
            if input.is_terminal() {
                output::problem("Type the script, beginning with #!/bin/sh, and end it with Ctrl-D.");
            }
            input.lock().take(most).read_to_end(&mut text).context("cannot read standard input")?;
        }
    }
    Ok(text)
}

/// The caller's environment with what `--env` adds. Entries that are not UTF-8 cannot travel and are left out.
fn environment(extra: &[String]) -> Result<Vec<String>, CliError> {
    let entry = |(name, value): (OsString, OsString)| {
        Some(format!("{}={}", name.into_string().ok()?, value.into_string().ok()?))
    };
    let mut all: Vec<String> = std::env::vars_os().filter_map(entry).collect();
    for variable in extra {
        match variable.split_once('=') {
            Some(("", _)) => return Err(CliError::Usage(format!("--env {variable} has no name before the ="))),
            Some((name, _)) => {
                all.retain(|entry| entry.split_once('=').is_none_or(|(n, _)| n != name));
                all.push(variable.clone());
            }
            None if std::env::var(variable).is_ok() => {}
            None => return Err(CliError::Usage(format!("--env {variable}: there is no such variable here"))),
        }
    }
    Ok(all)
}
