//! `sbatch`.

use super::{connect, environment, help, version};
use crate::connect::Controller;
use crate::job::wait;
use crate::{clock, output};
use anyhow::Context;
use ephor_model::submit::Caller;
use ephor_model::{JobSpec, limits};
use ephor_proto::convert::draft_to_wire;
use ephor_proto::v1::{Empty, JobRef};
use ephor_slurm::Failure;
use ephor_slurm::sbatch::table::Key;
use ephor_slurm::sbatch::{self, CommandLine, PROGRAM, Script};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) fn run(words: &[String]) -> anyhow::Result<ExitCode> {
    let line = CommandLine::read(words)?;
    if line.has(Key::Version) {
        return version();
    }
    if line.has(Key::Help) || line.has(Key::Usage) {
        return help(&sbatch::help());
    }
    let (script, command) = script(&line)?;
    let folder = std::env::current_dir().context("the folder that you are in is gone or closed to you")?;
    let folder = folder.to_str().context("the path of the folder that you are in is not UTF-8 text")?;
    let environment = environment();
    let now = clock::now();
    let caller = Caller { now, utc_offset: clock::offset(now), work_dir: folder, environment: &environment };
    let mut job = sbatch::read(&line, script, &caller)?;
    job.draft.spec.words.push(("Command".to_owned(), command.unwrap_or_else(|| "(null)".into())));
    if let Ok(host) = nix::unistd::gethostname() {
        let variables = &mut job.draft.blobs.environment;
        sbatch::environment::put(variables, "SLURM_SUBMIT_HOST", &host.to_string_lossy());
    }
    if !job.quiet {
        job.warnings.iter().for_each(|line| output::problem(line));
    }
    let mut controller = connect()?;
    let reply = controller.call(async |c| c.submit(draft_to_wire(&job.draft)).await);
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) if error.is::<crate::exit::CliError>() => return Err(error),
        Err(error) => return Err(refusal(&mut controller, &job.draft.spec, &error.to_string()).into()),
    };
    if !job.quiet {
        reply.messages.iter().for_each(|message| output::problem(&format!("{PROGRAM}: {message}")));
    }
    match (job.parsable, job.quiet) {
        (true, _) => output::line(&reply.job.to_string())?,
        (false, false) => output::line(&format!("Submitted batch job {}", reply.job))?,
        (false, true) => {}
    }
    match job.wait {
        true => wait::until_end(&mut controller, JobRef { job: reply.job, index: None }),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// The script, and the path to show as the job's command.
fn script(line: &CommandLine) -> anyhow::Result<(Script, Option<String>)> {
    match (line.wrapped(), line.operands.first()) {
        (Some(_), Some(_)) => {
            Err(Failure::error(PROGRAM, "Script arguments not permitted with --wrap option", 1).into())
        }
        (Some(command), None) => Ok((Script::wrapped(command), None)),
        (None, None) => {
            let text = read(std::io::stdin().lock()).context("cannot read standard input")?;
            Ok((Script { text, shown: "stdin".into(), name: PROGRAM.into() }, None))
        }
        (None, Some(typed)) => {
            let unreadable = || Failure::error(PROGRAM, format!("Unable to open file {typed}"), 1);
            let path = find(typed).ok_or_else(unreadable)?;
            let file = std::fs::File::open(&path).map_err(|_| unreadable())?;
            let text = read(file).map_err(|_| unreadable())?;
            let name = path.file_name().map_or_else(|| typed.clone(), |name| name.to_string_lossy().into_owned());
            let whole = std::path::absolute(&path).unwrap_or(path);
            Ok((Script { text, shown: typed.clone(), name }, Some(whole.to_string_lossy().into_owned())))
        }
    }
}

/// A script lies where its path leads, or, where it is a name alone, on the search path.
fn find(typed: &str) -> Option<PathBuf> {
    let here = Path::new(typed);
    if here.is_file() || typed.contains('/') {
        return here.is_file().then(|| here.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(typed)).find(|file| file.is_file())
}

/// One byte more than is taken, so that a script that is too large is seen as such.
fn read(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    from.take(limits::SCRIPT_BYTES as u64 + 1).read_to_end(&mut text)?;
    Ok(text)
}

/// The controller's refusal in its own words, and below it the line that clients know for it.
fn refusal(controller: &mut Controller, spec: &JobSpec, why: &str) -> Failure {
    let queues = controller.call(async |c| c.list_queues(Empty {}).await).map(|list| list.queues).unwrap_or_default();
    let unknown = |name: &str| !name.is_empty() && !queues.iter().flat_map(|q| &q.queue).any(|q| q.name == name);
    let failed = |text: &str| format!("{PROGRAM}: error: Batch job submission failed: {text}");
    if unknown(&spec.queue) {
        let first = format!("{PROGRAM}: error: invalid partition specified: {}", spec.queue);
        return Failure { lines: vec![first, failed("Invalid partition name specified")], code: 1 };
    }
    let lines = vec![format!("{PROGRAM}: error: {why}"), failed(sbatch::refusal::known(spec, why))];
    Failure { lines, code: 1 }
}
