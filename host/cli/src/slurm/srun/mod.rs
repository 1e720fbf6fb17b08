//! `srun`: plans a step with the controller, serves its streams to its nodes, and says what became of its tasks.
//!
//! The controller is asked for room and for the start, and then let go: from then on the nodes' parts of the step call here. So a controller that
//! restarts does not disturb a step, and the step ends with this process.

mod ask;
mod board;
mod files;
mod input;
mod listen;
mod server;
mod watch;
mod writer;

use super::{help, version};
use crate::output;
use anyhow::Context;
use ephor_proto::v1;
use ephor_slurm::Failure;
use ephor_slurm::srun::environment::{Launched, describe, exported};
use ephor_slurm::srun::table::Key;
use ephor_slurm::srun::{self, CommandLine, PROGRAM, Step};
use files::Files;
use listen::Listening;
use std::process::ExitCode;

/// Where the kernel tells the mask of file rights, among other things.
const STATUS: &str = "/proc/self/status";
/// The mask where the system does not say.
const UMASK: u32 = 0o022;

pub(super) fn run(words: &[String]) -> anyhow::Result<ExitCode> {
    let line = CommandLine::read(words)?;
    if line.has(Key::Version) {
        return version();
    }
    if line.has(Key::Help) || line.has(Key::Usage) {
        return help(&srun::help());
    }
    let environment = super::environment();
    let step = srun::read(&line, &environment)?;
    if step.argv.is_empty() {
        return Err(Failure::fatal(PROGRAM, "No command given to execute.").into());
    }
    if step.job == 0 {
        let text = "there is no job here: srun outside of a job is not there yet; use it in a script of sbatch, or name a \
                    running job with --jobid";
        return Err(Failure::error(PROGRAM, text, 1).into());
    }
    if !step.quiet {
        step.warnings.iter().for_each(|line| output::problem(line));
    }
    let plan = ask::plan(&step)?;
    let listening = Listening::open(&plan)?;
    let files = Files::of(&step, &plan);
    let program = program(&step, &plan, &listening, &files, &environment)?;
    // Opened before anything runs: a step whose output has no place must not.
    let writer = writer::Writer::start(&files)?;
    let input = input::Input::open(&files)?;
    ask::start(&step, &plan, &listening, program)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(watch::watch(&step, &plan, listening, &files, writer, input))?;
    ask::end(&plan);
    // Whoever reads standard input may wait for ever.
    runtime.shutdown_background();
    Ok(ExitCode::from(code))
}

fn program(
    step: &Step,
    plan: &v1::StepPlan,
    listening: &Listening,
    files: &Files,
    environment: &[String],
) -> anyhow::Result<v1::StepProgram> {
    let wrong = |why| Failure::error(PROGRAM, format!("Invalid --export specification: {why}"), srun::USAGE);
    let mut environment = exported(step.export.as_deref(), environment).map_err(wrong)?;
    let here = std::env::current_dir().context("the folder that you are in is gone or closed to you")?;
    let folder = step.chdir.as_ref().map_or_else(|| here.clone(), |folder| here.join(folder));
    let work_dir = folder.to_str().context("the path of the folder to run in is not UTF-8 text")?.to_owned();
    let umask = umask();
    let nodes: Vec<String> = plan.parts.iter().map(|part| part.node.clone()).collect();
    let tasks: Vec<u64> = plan.parts.iter().map(|part| part.tasks.len() as u64).collect();
    let address = listening.first();
    let (address, port) = (&address.ip().to_string(), address.port());
    let launched = Launched { step: plan.step, nodes: &nodes, tasks: &tasks, address, port, umask };
    describe(&mut environment, step, &launched);
    Ok(v1::StepProgram {
        argv: step.argv.clone(),
        environment,
        work_dir,
        stdin: files.stdin.on_nodes(),
        stdout: files.stdout.on_nodes(),
        stderr: files.stderr.on_nodes(),
        append: step.append,
        unbuffered: step.unbuffered,
        stdin_task: files.stdin.only(),
        umask,
        gpus_per_task: step.gpus_per_task,
    })
}

/// Rights that new files do not get. The call that reads it changes it, so that the kernel's text is read instead.
fn umask() -> u32 {
    let text = std::fs::read_to_string(STATUS).unwrap_or_default();
    let mask = text.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok()).unwrap_or(UMASK)
}

/// A step as it is named to people: `5.0`.
fn name(plan: &v1::StepPlan) -> String {
    format!("{}.{}", plan.attempt.map_or(0, |attempt| attempt.job), plan.step)
}
