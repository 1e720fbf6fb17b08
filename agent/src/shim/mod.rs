//! Holds the processes of one attempt: becomes the user, starts it, keeps its time limit, and leaves nothing behind.
//!
//! One small process per attempt, in a session of its own, so that the agent may be restarted, upgraded or killed. It
//! speaks with the agent through the attempt's folder in the spool and by SIGTERM ("look at `end`") and SIGUSR1 ("look
//! at `limit`"). It has one thread and no state but its own: everything waits in one place, [`watch`].

mod exec;
mod start;
mod step;
mod streams;
mod user;
mod watch;

use crate::confine::{Confinement, walk::Stat};
use crate::facts::now_ms;
use crate::spool::{Claim, Entry, SpoolError, Status};
use ephor_model::EndCause;
use nix::sys::signal::SigSet;
use nix::unistd::Pid;
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit code of a shim that did not get the attempt because another has it.
pub const HELD_BY_ANOTHER: i32 = 3;

/// Runs the shim: `ephor-shim ENTRY` for an attempt, `ephor-shim --step ENTRY` for a node's part of a step, or
/// `ephor-shim --probe GROUP` to try whether a process can be put into a group.
pub fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [flag, folder] if flag == "--probe" => match Confinement::CgroupV2(PathBuf::from(folder)).enter() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        [flag] if flag == "--version" => {
            println!("ephor-shim {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        [flag, folder] if flag == "--step" => exit(step::hold(&Entry::at(PathBuf::from(folder)))),
        [folder] => exit(hold(&Entry::at(PathBuf::from(folder)))),
        _ => {
            eprintln!("ephor-shim is started by ephor-agent, with the folder of one attempt as its only argument");
            ExitCode::from(2)
        }
    }
}

fn exit(held: Result<Held, SpoolError>) -> ExitCode {
    match held {
        Ok(Held::Ended) => ExitCode::SUCCESS,
        Ok(Held::ByAnother) => ExitCode::from(HELD_BY_ANOTHER as u8),
        Err(e) => {
            eprintln!("ephor-shim: {e}");
            ExitCode::FAILURE
        }
    }
}

enum Held {
    Ended,
    ByAnother,
}

/// Takes an entry: from here on no signal is lost and none ends us, and orphans become our children. The inner result says
/// why they do not; `None`: another process has the entry.
fn take(entry: &Entry, signals: &SigSet) -> Result<Option<nix::Result<()>>, SpoolError> {
    // Blocked before anything else.
    let ready = signals.thread_block().and_then(|()| nix::sys::prctl::set_child_subreaper(true));
    // Refused where the agent has done it for us, which is just as good.
    let _ = nix::unistd::setsid();
    let began_ms = now_ms();
    let pid = Pid::this();
    let start = Stat::of(pid).map_or(0, |s| s.start);
    Ok(entry.claim(Claim { pid: pid.as_raw(), start, began_ms })?.then_some(ready))
}

fn hold(entry: &Entry) -> Result<Held, SpoolError> {
    let signals = SigSet::all();
    let Some(ready) = take(entry, &signals)? else { return Ok(Held::ByAnother) };
    let failed = |why: String| Status::unstarted(EndCause::LaunchFailed, why, now_ms());
    let status = match (ready, entry.order(), entry.end_order()) {
        (Err(e), _, _) => failed(format!("the shim cannot adopt processes: {}", e.desc())),
        (_, Err(e), _) => failed(e.to_string()),
        (_, _, Ok(Some(end))) => Status::unstarted(end.cause, "ended before it started", now_ms()),
        (_, Ok(order), _) => match start::start(entry, order) {
            Ok(started) => watch::watch(entry, &signals, started),
            Err(why) => failed(why),
        },
    };
    entry.set_status(&status)?;
    Ok(Held::Ended)
}
