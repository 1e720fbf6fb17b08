//! The output files of a step's tasks on this node, emptied once before the first task writes.
//!
//! Several tasks may share a file. Each opens it to append, so that none writes over another; so somebody must have
//! emptied it before, as the user.

use crate::shim::start::Birth;
use crate::spool::{StepOrder, Stream};
use crate::sys;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;

/// Empties the files, unless they are to be kept. What goes wrong is told by the task that opens the file.
pub fn empty(order: &StepOrder) {
    let streams = order.tasks.iter().flat_map(|task| [&task.stdout, &task.stderr]);
    let paths: BTreeSet<&str> = streams
        .filter_map(|stream| match stream {
            Stream::File(path) => Some(path.as_str()),
            Stream::Served | Stream::Nothing => None,
        })
        .collect();
    if order.append || paths.is_empty() {
        return;
    }
    let shim = Pid::this();
    match sys::fork() {
        // Then the next fork fails too, and says so.
        Err(_) => {}
        Ok(ForkResult::Parent { child }) => drop(waitpid(child, None)),
        Ok(ForkResult::Child) => {
            let truncate = || {
                for path in paths {
                    // Without waiting, should it be a pipe that nobody reads.
                    let mut options = OpenOptions::new();
                    options.write(true).create(true).truncate(true).custom_flags(libc::O_NONBLOCK);
                    let _ = options.open(path);
                }
                Ok(())
            };
            let _ = birth(order).prepare(shim, truncate);
            std::process::exit(0);
        }
    }
}

/// What every task of the step becomes.
pub fn birth(order: &StepOrder) -> Birth<'_> {
    Birth {
        confinement: &order.confinement,
        open_files: order.open_files,
        user: order.user.as_ref(),
        umask: order.umask,
        work_dir: &order.work_dir,
    }
}
