//! Making the tasks of a step: pipes for the streams that are served, a fork for each, and what went wrong in it.

use super::files::birth;
use crate::shim::exec;
use crate::spool::{StepOrder, Stream, TaskOrder};
use crate::sys;
use nix::errno::Errno;
use nix::unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout};
use std::fs::{File, OpenOptions};
use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};

/// Exit code of a task that could not come as far as its program.
const UNPREPARED: i32 = 1;

/// A task that was made, or not.
pub struct Born {
    /// Its rank.
    pub rank: u32,
    /// Its process, or why there is none.
    pub process: Result<Pid, String>,
    /// Why it did not come as far as its program; complete when the process has ended.
    pub failure: Option<File>,
    /// The far ends of its streams, where they are served.
    pub stdin: Option<PipeWriter>,
    /// See `stdin`.
    pub stdout: Option<PipeReader>,
    /// See `stdin`.
    pub stderr: Option<PipeReader>,
}

/// The ends that the task gets.
struct Ends {
    stdin: Option<PipeReader>,
    stdout: Option<PipeWriter>,
    stderr: Option<PipeWriter>,
}

/// Makes all tasks of this node. One that cannot be made does not keep the others from running.
pub fn start(order: &StepOrder) -> Vec<Born> {
    order.tasks.iter().map(|task| one(order, task)).collect()
}

fn one(order: &StepOrder, task: &TaskOrder) -> Born {
    let failed = |why: String| Born {
        rank: task.rank,
        process: Err(why),
        failure: None,
        stdin: None,
        stdout: None,
        stderr: None,
    };
    let made = pipes(task).and_then(|pipes| Ok((pipes, std::io::pipe()?)));
    let ((ends, far), (failure, mut news)) = match made {
        Ok(made) => made,
        Err(e) => return failed(format!("cannot make a pipe: {e}")),
    };
    let shim = Pid::this();
    match sys::fork() {
        Err(e) => failed(format!("cannot make a process: {}", e.desc())),
        Ok(ForkResult::Parent { child }) => {
            Born { rank: task.rank, process: Ok(child), failure: Some(File::from(OwnedFd::from(failure))), ..far }
        }
        Ok(ForkResult::Child) => {
            let (why, code) = become_task(order, task, &ends, shim);
            // Nobody is left to tell if this fails, and the exit code says that something did.
            let _ = news.write_all(why.as_bytes());
            std::process::exit(code);
        }
    }
}

/// Pipes for the streams that are served: the task's ends and ours.
fn pipes(task: &TaskOrder) -> std::io::Result<(Ends, Born)> {
    let mut ends = Ends { stdin: None, stdout: None, stderr: None };
    let mut far =
        Born { rank: task.rank, process: Err(String::new()), failure: None, stdin: None, stdout: None, stderr: None };
    if task.stdin == Stream::Served {
        let (reader, writer) = std::io::pipe()?;
        (ends.stdin, far.stdin) = (Some(reader), Some(writer));
    }
    if task.stdout == Stream::Served {
        let (reader, writer) = std::io::pipe()?;
        (ends.stdout, far.stdout) = (Some(writer), Some(reader));
    }
    if task.stderr == Stream::Served {
        let (reader, writer) = std::io::pipe()?;
        (ends.stderr, far.stderr) = (Some(writer), Some(reader));
    }
    Ok((ends, far))
}

/// Turns this process into the task; returns only to say why it could not, and its exit code.
fn become_task(order: &StepOrder, task: &TaskOrder, ends: &Ends, shim: Pid) -> (String, i32) {
    if let Err(why) = birth(order).prepare(shim, || open(order, task, ends)) {
        return (why, UNPREPARED);
    }
    let mut entries = order.environment.clone();
    entries.extend_from_slice(&task.environment);
    let Ok(environment) = exec::environment(&entries) else {
        return ("an environment entry holds a NUL byte".into(), UNPREPARED);
    };
    let Ok(arguments) = exec::c_strings(&order.argv) else {
        return ("an argument holds a NUL byte".into(), UNPREPARED);
    };
    let why = exec::run(&exec::candidates(&order.argv, &entries), &arguments, &environment);
    // Slurm's tasks end with the number of the error too: 2 where there is no such program.
    (exec::explain(&order.argv, why), if why == Errno::UnknownErrno { UNPREPARED } else { why as i32 })
}

/// Puts the standard streams in their places. Paths are relative to the working folder, where we are.
fn open(order: &StepOrder, task: &TaskOrder, ends: &Ends) -> Result<(), String> {
    let nothing = |write: bool| {
        let file = OpenOptions::new().read(!write).write(write).open("/dev/null");
        file.map_err(|e| format!("cannot open /dev/null: {e}"))
    };
    let input = match &task.stdin {
        Stream::File(path) => Some(
            File::open(path).map_err(|e| format!("cannot open the input file {path} from {}: {e}", order.work_dir))?,
        ),
        Stream::Nothing => Some(nothing(false)?),
        Stream::Served => None,
    };
    let create = |stream: &Stream, what: &str| match stream {
        Stream::File(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.map(Some).map_err(|e| format!("cannot open the {what} file {path} from {}: {e}", order.work_dir))
        }
        Stream::Nothing => nothing(true).map(Some),
        Stream::Served => Ok(None),
    };
    let (output, errors) = (create(&task.stdout, "output")?, create(&task.stderr, "error")?);
    let place =
        |what: Result<(), Errno>| what.map_err(|e| format!("cannot put the standard streams in place: {}", e.desc()));
    if let Some(fd) = input.as_ref().map(AsFd::as_fd).or(ends.stdin.as_ref().map(AsFd::as_fd)) {
        place(dup2_stdin(fd))?;
    }
    if let Some(fd) = output.as_ref().map(AsFd::as_fd).or(ends.stdout.as_ref().map(AsFd::as_fd)) {
        place(dup2_stdout(fd))?;
    }
    if let Some(fd) = errors.as_ref().map(AsFd::as_fd).or(ends.stderr.as_ref().map(AsFd::as_fd)) {
        place(dup2_stderr(fd))?;
    }
    Ok(())
}
