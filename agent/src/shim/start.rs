//! Starting an attempt's first process: everything between the fork and the exec, and the news of what went wrong.

use super::{streams, user};
use crate::confine::Confinement;
use crate::spool::{Entry, Order, Program};
use crate::sys;
use ephor_model::WarningSignal;
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{ForkResult, Pid, execve};
use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::time::Instant;

/// Where programs are looked for when the job has no PATH.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// An attempt whose first process was made.
pub struct Started {
    /// The first process.
    pub pid: Pid,
    /// When it was made.
    pub at: Instant,
    /// Holds the reason, should it not have come as far as its program; complete when the process has ended.
    pub failure: File,
    /// How its processes are kept together.
    pub confinement: Confinement,
    /// Longest run and grace, in milliseconds.
    pub limits: (Option<u64>, u64),
    /// The signal before the time limit.
    pub signal: Option<WarningSignal>,
    /// The first process is the shell of a script.
    pub is_script: bool,
}

/// Makes the first process. The order is given up with it: an environment can be large, and a shim lives long.
pub fn start(entry: &Entry, order: Order) -> Result<Started, String> {
    let confinement = order.confinement.clone();
    confinement.make().map_err(|e| format!("cannot make the group {confinement:?}: {e}"))?;
    let (failure, mut news) = std::io::pipe().map_err(|e| format!("cannot make a pipe: {e}"))?;
    let shim = Pid::this();
    match sys::fork() {
        Err(e) => {
            confinement.remove();
            Err(format!("cannot make a process: {}", e.desc()))
        }
        Ok(ForkResult::Parent { child }) => Ok(Started {
            pid: child,
            at: Instant::now(),
            failure: File::from(std::os::fd::OwnedFd::from(failure)),
            confinement,
            limits: (order.time_limit_ms, order.grace_ms),
            signal: order.signal,
            is_script: matches!(order.program, Program::Script(_)),
        }),
        Ok(ForkResult::Child) => {
            let why = become_job(entry, &order, shim);
            // Nobody is left to tell if this fails, and the exit code says that something did.
            let _ = news.write_all(why.as_bytes());
            std::process::exit(127);
        }
    }
}

/// Turns this process into the job's first one; returns only to say why it could not.
fn become_job(entry: &Entry, order: &Order, shim: Pid) -> String {
    match prepare(order, shim) {
        Err(why) => why,
        Ok(()) => exec(entry, order),
    }
}

fn prepare(order: &Order, shim: Pid) -> Result<(), String> {
    let fail = |what: &'static str| move |e: Errno| format!("cannot {what}: {}", e.desc());
    order.confinement.enter().map_err(|e| format!("cannot enter the group {:?}: {e}", order.confinement))?;
    // Its own session: a signal to the job's process group never reaches the shim.
    nix::unistd::setsid().map_err(fail("make a session"))?;
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(fail("read the limit of open files"))?;
    let open_files = order.open_files.min(hard);
    setrlimit(Resource::RLIMIT_NOFILE, open_files, hard).map_err(fail("set the limit of open files"))?;
    if let Some(user) = &order.user {
        user::become_user(user)?;
    }
    // After the change of user, which would undo it. A job whose shim was killed has nobody to keep its limits.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(fail("tie the job to its shim"))?;
    if Pid::parent() != shim {
        return Err("its shim was killed".into());
    }
    umask(Mode::from_bits_truncate(0o022));
    std::env::set_current_dir(&order.work_dir)
        .map_err(|e| format!("cannot enter the working folder {}: {e}", order.work_dir))?;
    streams::open(order)?;
    sys::default_signals();
    SigSet::empty().thread_set_mask().map_err(fail("unblock signals"))
}

fn exec(entry: &Entry, order: &Order) -> String {
    let Ok(mut environment) = c_strings(&order.environment) else {
        return "an environment entry holds a NUL byte".into();
    };
    // Known to nobody before: the process is this one.
    environment.extend(CString::new(format!("SLURM_TASK_PID={}", Pid::this())));
    let Ok(mut arguments) = c_strings(match &order.program {
        Program::Script(arguments) | Program::Argv(arguments) => arguments,
    }) else {
        return "an argument holds a NUL byte".into();
    };
    let candidates = match &order.program {
        Program::Script(_) => match CString::new(entry.script().into_os_string().into_vec()) {
            Ok(path) => {
                arguments.insert(0, path.clone());
                vec![path]
            }
            Err(_) => Vec::new(),
        },
        Program::Argv(argv) => candidates(argv, &order.environment),
    };
    // As a shell does it: a file that may not be run hides nothing behind it, but is what is told at the end.
    let mut why = Errno::ENOENT;
    for path in &candidates {
        // Returns only when it failed.
        let Err(error) = execve(path, &arguments, &environment);
        match error {
            Errno::ENOENT | Errno::ENOTDIR => {}
            Errno::EACCES => why = error,
            _ => {
                why = error;
                break;
            }
        }
    }
    explain(&order.program, why)
}

fn explain(program: &Program, why: Errno) -> String {
    match (program, why) {
        (Program::Script(_), Errno::ENOENT) => {
            "cannot run the script: the interpreter named in its first line is not on this node".into()
        }
        (Program::Script(_), Errno::ENOEXEC) => {
            "cannot run the script: its first line does not name an interpreter, such as #!/bin/sh".into()
        }
        (Program::Script(_), Errno::EACCES) => {
            "cannot run the script: its interpreter, or the agent's data folder, is closed to this user".into()
        }
        (_, Errno::E2BIG) => "cannot run it: arguments and environment together are too long for this kernel".into(),
        (Program::Script(_), why) => format!("cannot run the script: {}", why.desc()),
        (Program::Argv(argv), Errno::ENOEXEC) => {
            format!("cannot run {}: it is no program and names no interpreter in its first line", argv[0])
        }
        (Program::Argv(argv), why) => format!("cannot run {}: {}", argv[0], why.desc()),
    }
}

/// Where a program may be: itself if it names a path, else in each folder of the job's PATH.
fn candidates(argv: &[String], environment: &[String]) -> Vec<CString> {
    let Some(program) = argv.first().filter(|p| !p.is_empty()) else { return Vec::new() };
    if program.contains('/') {
        return CString::new(program.as_str()).into_iter().collect();
    }
    let path = environment.iter().find_map(|e| e.strip_prefix("PATH=")).unwrap_or(DEFAULT_PATH);
    // An empty part means the working folder, as everywhere.
    let folders = path.split(':').map(|f| if f.is_empty() { "." } else { f });
    folders.filter_map(|folder| CString::new(format!("{folder}/{program}")).ok()).collect()
}

fn c_strings(texts: &[String]) -> Result<Vec<CString>, std::ffi::NulError> {
    texts.iter().map(|t| CString::new(t.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_for_in_the_jobs_path() {
        let list = |program: &str, environment: &[&str]| {
            let environment: Vec<_> = environment.iter().map(|e| (*e).to_owned()).collect();
            let found = candidates(&[program.to_owned()], &environment);
            found.into_iter().map(|c| c.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(list("x", &["PATH=/a::/b"]), ["/a/x", "./x", "/b/x"]);
        assert_eq!(list("./x", &["PATH=/a"]), ["./x"]);
        assert_eq!(list("x", &[]), ["/usr/local/bin/x", "/usr/bin/x", "/bin/x"]);
        assert!(list("", &[]).is_empty());
    }
}
