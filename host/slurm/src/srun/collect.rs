//! Takes the options of environment and command line in their order, checks each value, and makes the step of them.

use super::table::{Key, TABLE};
use super::{CommandLine, Mode, PROGRAM, Step, USAGE};
use crate::failure::Failure;
use crate::getopt::Given;
use crate::table::{Fate, Takes};
use crate::value::count;
use ephor_model::submit::hostlist;

/// See [`super::read`].
pub fn read(line: &CommandLine, environment: &[String]) -> Result<Step, Failure> {
    let value = |name: &str| value_of(environment, name);
    let mut step = Step { argv: line.operands.clone(), ..Step::default() };
    let mut taken = Taken::default();
    for def in TABLE.iter().filter(|def| def.key != Key::Nodes && def.key != Key::Ntasks) {
        let Some(text) = def.variable.and_then(value) else { continue };
        if matches!(def.takes, Takes::Nothing) && matches!(text, "0" | "no") {
            continue;
        }
        let text = (!matches!(def.takes, Takes::Nothing) && !text.is_empty()).then(|| text.to_owned());
        if text.is_none() && matches!(def.takes, Takes::Value(_)) {
            continue;
        }
        // A job may have been submitted with what a step has no use for.
        if def.key == Key::Mpi && text.as_deref() != Some("none") {
            step.warnings.push(format!(
                "{PROGRAM}: Warning: {}={} has no effect: there is no MPI launcher here",
                "SLURM_MPI_TYPE",
                text.unwrap_or_default()
            ));
            continue;
        }
        let given = Given { key: def.key, long: def.long, value: text };
        take(&mut step, &mut taken, &given)?;
    }
    step.export = step.export.or_else(|| value("SLURM_EXPORT_ENV").map(str::to_owned));
    step.cpus_per_task = step.cpus_per_task.or_else(|| count::positive(value("SLURM_CPUS_PER_TASK")?));
    let of_environment = (step.tasks_per_node.take(), std::mem::take(&mut taken.gpus));
    for given in &line.given {
        take(&mut step, &mut taken, given)?;
    }
    shape(&mut step, environment, of_environment.0)?;
    gpus(&mut step, taken, of_environment.1)?;
    Ok(step)
}

fn value_of<'a>(environment: &'a [String], name: &str) -> Option<&'a str> {
    environment.iter().find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='))
}

/// GPUs as they were asked for.
#[derive(Default)]
struct Taken {
    gpus: Asked,
}

#[derive(Clone, Copy, Default)]
struct Asked {
    all: Option<u32>,
    per_node: Option<u32>,
    per_task: Option<u32>,
}

fn take(step: &mut Step, taken: &mut Taken, given: &Given<Key>) -> Result<(), Failure> {
    let text = given.value.clone().unwrap_or_default();
    let long = given.long;
    let invalid = || Failure::error(PROGRAM, format!("Invalid --{long} specification"), USAGE);
    let numeric = |text: &str| Failure::error(PROGRAM, format!("Invalid numeric value \"{text}\" for --{long}."), 1);
    let positive = |text: &str| count::positive(text).ok_or_else(|| numeric(text));
    let number = |text: &str| count::number(text).ok_or_else(|| numeric(text));
    let list = |text: &str| hostlist::expand(text).map_err(|why| invalid().after(format!("{PROGRAM}: error: {why}")));
    match given.key {
        Key::Chdir => step.chdir = Some(text),
        Key::CpusPerTask => step.cpus_per_task = Some(positive(&text)?),
        Key::DisableStatus => step.disable_status = true,
        Key::Distribution => step.cyclic = distribution(&text)?,
        Key::Error => step.error = Some(mode(text)),
        Key::Exclude => step.exclude = list(&text)?,
        Key::Exclusive if !text.is_empty() && !["user", "mcs"].contains(&text.as_str()) => return Err(invalid()),
        Key::Export => step.export = Some(text),
        Key::Gpus => taken.gpus = Asked { all: Some(gpu_count(&text).ok_or_else(invalid)?), ..taken.gpus },
        Key::GpusPerNode => taken.gpus = Asked { per_node: Some(gpu_count(&text).ok_or_else(invalid)?), ..taken.gpus },
        Key::GpusPerTask => taken.gpus = Asked { per_task: Some(gpu_count(&text).ok_or_else(invalid)?), ..taken.gpus },
        Key::Gres => {
            let per_node = if text.eq_ignore_ascii_case("none") { Some(0) } else { gres(&text) };
            let refused =
                || invalid().after(format!("{PROGRAM}: error: --gres={text}: steps share GPUs alone, as gpu:N"));
            taken.gpus = Asked { per_node: Some(per_node.ok_or_else(refused)?), ..taken.gpus };
        }
        Key::Input => step.input = mode(text),
        Key::JobId => {
            let id = text.parse().map_err(|_| Failure::error(PROGRAM, "invalid job id specified", USAGE))?;
            step.job = id;
        }
        Key::JobName => step.name = Some(text),
        Key::KillOnBadExit => step.kill_on_bad_exit = text.is_empty() || number(&text)? != 0,
        Key::Label => step.label = true,
        Key::Mpi => mpi(&text)?,
        Key::Nodelist => step.node_list = list(&text)?,
        Key::Nodes => step.nodes = Some(count::nodes(&text).map_err(|why| Failure::error(PROGRAM, why, USAGE))?),
        Key::Ntasks => step.tasks = Some(positive(&text)?),
        Key::NtasksPerNode => step.tasks_per_node = Some(positive(&text)?),
        Key::OpenMode => match text.bytes().next().map(|b| b.to_ascii_lowercase()) {
            Some(b'a') => step.append = true,
            Some(b't') => step.append = false,
            _ => return Err(invalid()),
        },
        Key::Output => step.output = mode(text),
        Key::Overcommit => step.overcommit = true,
        Key::Overlap => step.overlap = true,
        Key::Quiet => step.quiet = true,
        Key::QuitOnInterrupt => step.quit_on_interrupt = true,
        Key::ThreadsPerCore if positive(&text)? != 1 => {
            return Err(lacking(&format!("threads-per-core={text}"), "tasks get whole cores; leave it out"));
        }
        Key::Unbuffered => step.unbuffered = true,
        Key::Wait => step.wait = number(&text)?,
        Key::Exact
        | Key::Exclusive
        | Key::Help
        | Key::ThreadsPerCore
        | Key::Usage
        | Key::Verbose
        | Key::Version
        | Key::Other(_) => {}
    }
    note(step, given)
}

/// Refuses or warns as the table says.
fn note(step: &mut Step, given: &Given<Key>) -> Result<(), Failure> {
    let Some(def) = TABLE.iter().find(|def| def.key == given.key) else { return Ok(()) };
    match def.fate {
        Fate::Refused(near) => Err(lacking(given.long, near)),
        Fate::Ignored(why) => {
            let line = format!("{PROGRAM}: Warning: --{} has no effect: {why}", def.long);
            if !step.warnings.contains(&line) {
                step.warnings.push(line);
            }
            Ok(())
        }
        Fate::Works | Fate::Differs(_) | Fate::Void(_) => Ok(()),
    }
}

fn lacking(option: &str, near: &str) -> Failure {
    Failure::error(PROGRAM, format!("--{option} is not there: {near}"), USAGE)
}

/// Where a stream leads: words, the rank of a task, or a file.
fn mode(text: String) -> Mode {
    match text.to_ascii_lowercase().as_str() {
        "all" => Mode::All,
        "none" => Mode::Nothing,
        _ => text.parse().map_or(Mode::File(text), Mode::Task),
    }
}

/// Whether tasks go to the nodes in turn; what stands behind a colon is about sockets and cores.
fn distribution(text: &str) -> Result<bool, Failure> {
    let first = text.split([':', ',']).next().unwrap_or_default().to_ascii_lowercase();
    match first.as_str() {
        "block" | "*" | "pack" | "nopack" => Ok(false),
        "cyclic" => Ok(true),
        _ => Err(lacking(&format!("distribution={text}"), "block or cyclic; -w and a step for each node do the rest")),
    }
}

fn mpi(text: &str) -> Result<(), Failure> {
    match text {
        "none" => Ok(()),
        "list" => Err(Failure { lines: vec!["MPI plugin types are...".into(), "\tnone".into()], code: 0 }),
        _ => Err(lacking(
            &format!("mpi={text}"),
            "tasks could not find each other, and each would be a program of one; start MPI programs with their own \
             mpirun, which starts its daemons with srun --mpi=none",
        )),
    }
}

/// `[TYPE:]N`, a type alone being one of it.
fn gpu_count(text: &str) -> Option<u32> {
    let last = text.rsplit(':').next()?;
    match text.matches(':').count() {
        _ if text.contains(',') || text.is_empty() => None,
        0 if !last.starts_with(|c: char| c.is_ascii_digit()) => Some(1),
        0 | 1 => count::number(last),
        _ => None,
    }
}

/// `gpu[:TYPE][:N]`.
fn gres(text: &str) -> Option<u32> {
    let rest = text.trim_start_matches("gres:").trim_start_matches("gres/").strip_prefix("gpu")?;
    match rest.strip_prefix([':', '=']) {
        Some(rest) => gpu_count(rest),
        None => rest.is_empty().then_some(1),
    }
}

/// Tasks and nodes: what the command line does not say comes from the job.
fn shape(step: &mut Step, environment: &[String], tasks_per_node: Option<u32>) -> Result<(), Failure> {
    let number = |names: [&str; 2]| names.iter().find_map(|name| count::positive(value_of(environment, name)?));
    if step.tasks.is_none() && step.tasks_per_node.is_none() {
        step.tasks = number(["SLURM_NTASKS", "SLURM_NPROCS"]);
        // How the job's tasks are spread is how a step of as many is spread.
        step.tasks_per_node = tasks_per_node.filter(|_| step.nodes.is_none());
        if step.nodes.is_some() && step.tasks.is_none() {
            step.tasks_per_node = tasks_per_node;
        }
    }
    let listed = u32::try_from(step.node_list.len()).unwrap_or(u32::MAX);
    if let Some((_, max)) = step.nodes.filter(|(_, max)| *max < listed) {
        return Err(Failure::error(PROGRAM, format!("invalid number of nodes (-N {listed}-{max})"), 1));
    }
    if let (Some(tasks), Some((min, _))) = (step.tasks, step.nodes)
        && tasks < min
    {
        let text = format!("can't run {tasks} processes on {min} nodes, setting nnodes to {tasks}");
        step.warnings.push(format!("{PROGRAM}: Warning: {text}"));
        step.nodes = Some((tasks, tasks));
        step.node_list.truncate(tasks as usize);
    }
    Ok(())
}

/// GPUs: the command line's word in any form puts the environment's aside.
fn gpus(step: &mut Step, taken: Taken, of_environment: Asked) -> Result<(), Failure> {
    let Asked { all, per_node, per_task } = taken.gpus;
    if all.is_none() && per_node.is_none() && per_task.is_none() {
        (step.gpus_per_task, step.gpus_per_node) =
            (of_environment.per_task.filter(|n| *n > 0), of_environment.per_node);
        if step.gpus_per_node.is_some() {
            step.gpus_per_task = None;
        }
        return Ok(());
    }
    step.gpus_per_task = per_task.filter(|n| *n > 0);
    step.gpus_per_node = per_node;
    if let Some(all) = all {
        let nodes = step.nodes.filter(|(min, max)| min == max).map_or(1, |(min, _)| min);
        if all % nodes != 0 {
            let text = format!("--gpus={all} on {nodes} nodes: ask for as many on each, with --gpus-per-node");
            return Err(Failure::error(PROGRAM, text, 1));
        }
        step.nodes.get_or_insert((1, 1));
        step.gpus_per_node = Some(all / nodes);
    }
    if step.gpus_per_task.is_some() && step.gpus_per_node.is_some() {
        let text = "GPUs are asked for by task or by node; leave one of the options out";
        return Err(Failure::error(PROGRAM, text, 1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(line: &str, environment: &[&str]) -> Result<Step, Failure> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let environment: Vec<String> = environment.iter().map(|e| (*e).to_owned()).collect();
        read(&CommandLine::read(&words)?, &environment)
    }

    const JOB: &[&str] = &["SLURM_JOB_ID=7", "SLURM_NTASKS=4", "SLURM_NPROCS=4", "SLURM_JOB_NUM_NODES=2"];

    #[test]
    fn a_step_without_options_has_the_shape_of_its_job() {
        let plain = step("./prog -n 5", JOB).unwrap();
        assert_eq!((plain.job, plain.tasks, plain.nodes), (7, Some(4), None));
        assert_eq!(plain.argv, ["./prog", "-n", "5"]);
        assert_eq!(step("x", &["SLURM_JOB_ID=7", "SLURM_NPROCS=3"]).unwrap().tasks, Some(3));
        let with = |more: &[&'static str]| [JOB, more].concat();
        assert_eq!(step("x", &with(&["SLURM_CPUS_PER_TASK=2"])).unwrap().cpus_per_task, Some(2));
        let both = with(&["SLURM_CPUS_PER_TASK=2", "SRUN_CPUS_PER_TASK=3"]);
        assert_eq!(step("x", &both).unwrap().cpus_per_task, Some(3));
        assert_eq!(step("-c4 x", &both).unwrap().cpus_per_task, Some(4));
        assert_eq!(step("--ntasks-per-node=2 -N2 x", JOB).unwrap().tasks, None);
        let spread = with(&["SLURM_NTASKS_PER_NODE=2"]);
        assert_eq!(step("x", &spread).unwrap().tasks_per_node, Some(2));
        assert_eq!(step("-N1 -n4 x", &spread).unwrap().tasks_per_node, None);
        assert_eq!(step("x", &with(&["SLURM_GPUS_PER_TASK=a100:2"])).unwrap().gpus_per_task, Some(2));
        assert_eq!(step("--gres=none x", &with(&["SLURM_GPUS_PER_TASK=2"])).unwrap().gpus_per_task, None);
    }

    #[test]
    fn what_clients_type_is_read() {
        let submitit =
            step("--unbuffered --output /l/%j_%t_log.out --error /l/%j_%t_log.err python -u x", JOB).unwrap();
        assert!(submitit.unbuffered);
        assert_eq!(submitit.output, Mode::File("/l/%j_%t_log.out".into()));
        assert!(step("--ntasks 3 -l bash x", JOB).unwrap().label);
        let parsl = step("--exclusive --nodes 2 -l bash x", JOB).unwrap();
        assert_eq!((parsl.nodes, parsl.tasks), (Some((2, 2)), Some(4)));
        let ray = step("--nodes=1 --ntasks=1 -w n2 ray start --block", JOB).unwrap();
        assert_eq!((ray.nodes, ray.tasks, ray.node_list), (Some((1, 1)), Some(1), vec!["n2".to_owned()]));
        let mpirun = "--ntasks-per-node=1 --kill-on-bad-exit --mpi=none --cpu-bind=none --nodes=2 --nodelist=n1,n2 --ntasks=2 orted";
        let mpirun = step(mpirun, JOB).unwrap();
        assert!(mpirun.kill_on_bad_exit && mpirun.warnings.len() == 1, "{mpirun:?}");
        assert_eq!(step("-i none -o 2 -e all x", JOB).unwrap().output, Mode::Task(2));
        assert!(step("-m cyclic:block x", JOB).unwrap().cyclic);
        assert_eq!(step("-N2 --gpus=4 x", JOB).unwrap().gpus_per_node, Some(2));
        assert_eq!(step("--gres=gpu:a100:2 x", JOB).unwrap().gpus_per_node, Some(2));
        let few = step("-n1 -N2 x", JOB).unwrap();
        assert_eq!((few.nodes, few.warnings.len()), (Some((1, 1)), 1));
        assert!(few.warnings[0].contains("can't run 1 processes on 2 nodes, setting nnodes to 1"));
    }

    proptest::proptest! {
        #[test]
        fn no_words_make_it_panic(
            words in proptest::collection::vec("(-[nNcwxgGmKWioe]|--(gpus|gres|ntasks|nodes|mpi|wait))?[=0-9a-z:\\[\\],-]{0,8}", 0..6),
            variables in proptest::collection::vec("SLURM_(NTASKS|NPROCS|JOB_ID|GPUS_PER_TASK|WAIT|NTASKS_PER_NODE)=[0-9a-z,:-]{0,6}", 0..6),
        ) {
            if let Ok(line) = CommandLine::read(&words) {
                let _ = read(&line, &variables);
            }
        }
    }

    #[test]
    fn what_is_not_there_says_what_comes_nearest() {
        for (line, text) in [
            ("--pty bash", "--pty is not there: a step has no terminal"),
            ("--mpi=pmix x", "mpirun"),
            ("-m plane=2 x", "block or cyclic"),
            ("-n zero x", "Invalid numeric value \"zero\" for --ntasks."),
            ("-w n[1 x", "Invalid --nodelist specification"),
            ("--gres=tape:1 x", "steps share GPUs alone"),
            ("-N2 --gpus=3 x", "as many on each"),
            ("--multi-prog x", "SLURM_PROCID"),
            ("--blub x", "unrecognized option '--blub'"),
        ] {
            let failure = step(line, JOB).unwrap_err();
            assert!(failure.to_string().contains(text), "{line}: {failure}");
        }
        assert_eq!(step("--mpi=list", JOB).unwrap_err().code, 0);
    }
}
