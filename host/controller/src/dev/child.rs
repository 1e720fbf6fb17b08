//! Child processes that end when the thread that started them does, even when it is killed.
#![allow(unsafe_code, reason = "only code between fork and exec can ask for a signal at the parent's end")]

use nix::libc::{PR_SET_PDEATHSIG, SIGTERM, prctl};
use std::io;
use tokio::process::Command;

/// The command, with SIGTERM at the end of the thread that spawns it.
pub(super) fn tied(mut command: Command) -> Command {
    let parent = std::process::id();
    // SAFETY: between fork and exec this calls prctl and getppid only, both safe to call there.
    unsafe {
        command.pre_exec(move || {
            if prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 {
                return Err(io::Error::last_os_error());
            }
            // It may have ended before the signal was asked for.
            if nix::unistd::getppid().as_raw() as u32 != parent {
                return Err(io::Error::from(io::ErrorKind::Interrupted));
            }
            Ok(())
        });
    }
    command
}
