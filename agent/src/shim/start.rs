//! Starting an attempt's first process: everything between the fork and the exec, and the news of what went wrong.

use super::{exec, streams, user};
use crate::confine::Confinement;
use crate::spool::{Entry, Order, Program, User};
use crate::sys;
use ephor_model::WarningSignal;
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{ForkResult, Pid};
use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::time::Instant;

/// Which rights new files of a job do not get.
const UMASK: u32 = 0o022;

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
    let birth = Birth {
        confinement: &order.confinement,
        open_files: order.open_files,
        user: order.user.as_ref(),
        umask: UMASK,
        work_dir: &order.work_dir,
    };
    match birth.prepare(shim, || streams::open(order)) {
        Err(why) => why,
        Ok(()) => become_program(entry, order),
    }
}

/// What a process of a job becomes between its fork and its program.
pub struct Birth<'a> {
    /// The group that it enters.
    pub confinement: &'a Confinement,
    /// Soft limit of open files.
    pub open_files: u64,
    /// Whom it becomes; `None`: its shim's user.
    pub user: Option<&'a User>,
    /// Which rights new files do not get.
    pub umask: u32,
    /// The folder that it runs in.
    pub work_dir: &'a str,
}

impl Birth<'_> {
    /// Does all of it, and `streams` as the user in the folder.
    ///
    /// # Errors
    /// The step that failed, and why.
    pub fn prepare(&self, shim: Pid, streams: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        let fail = |what: &'static str| move |e: Errno| format!("cannot {what}: {}", e.desc());
        self.confinement.enter().map_err(|e| format!("cannot enter the group {:?}: {e}", self.confinement))?;
        // Its own session: a signal to the job's process group never reaches the shim.
        nix::unistd::setsid().map_err(fail("make a session"))?;
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(fail("read the limit of open files"))?;
        let open_files = self.open_files.min(hard);
        setrlimit(Resource::RLIMIT_NOFILE, open_files, hard).map_err(fail("set the limit of open files"))?;
        if let Some(user) = self.user {
            user::become_user(user)?;
        }
        // After the change of user, which would undo it. A job whose shim was killed has nobody to keep its limits.
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(fail("tie the job to its shim"))?;
        if Pid::parent() != shim {
            return Err("its shim was killed".into());
        }
        umask(Mode::from_bits_truncate(self.umask));
        std::env::set_current_dir(self.work_dir)
            .map_err(|e| format!("cannot enter the working folder {}: {e}", self.work_dir))?;
        streams()?;
        sys::default_signals();
        SigSet::empty().thread_set_mask().map_err(fail("unblock signals"))
    }
}

fn become_program(entry: &Entry, order: &Order) -> String {
    let Ok(environment) = exec::environment(&order.environment) else {
        return "an environment entry holds a NUL byte".into();
    };
    let Ok(mut arguments) = exec::c_strings(match &order.program {
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
        Program::Argv(argv) => exec::candidates(argv, &order.environment),
    };
    explain(&order.program, exec::run(&candidates, &arguments, &environment))
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
        (Program::Script(_), Errno::E2BIG) => exec::TOO_LONG.into(),
        (Program::Script(_), why) => format!("cannot run the script: {}", why.desc()),
        (Program::Argv(argv), why) => exec::explain(argv, why),
    }
}
