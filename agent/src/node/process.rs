//! A shim that runs: waiting for its end, and asking it to look at its orders.

use crate::confine::walk::Stat;
use crate::sys;
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// How soon a shim is looked at again that could not be watched.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(1);

/// A shim, named by a descriptor that never means another process. Copies mean the same one.
#[derive(Clone, Debug)]
pub struct Process {
    fd: Arc<OwnedFd>,
}

impl Process {
    /// The child of ours with that number, which nobody has waited for.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn child(pid: Pid) -> Result<Self, Errno> {
        sys::pidfd_open(pid).map(|fd| Self { fd: Arc::new(fd) })
    }

    /// The process with that number which started at that time; `None` where it has ended.
    pub fn find(pid: Pid, start: u64) -> Option<Self> {
        // Opened first and checked after: from then on the number cannot pass to another unnoticed.
        let found = Self::child(pid).ok()?;
        (Stat::of(pid)?.start == start).then_some(found)
    }

    /// Asks it to look at its orders; one that has ended needs none.
    pub fn terminate(&self) {
        let _ = sys::pidfd_send_signal(self.fd.as_fd(), Signal::SIGTERM);
    }

    /// Tells the shim that there is another time limit, or a signal. One that is gone needs none.
    pub fn look(&self) {
        let _ = sys::pidfd_send_signal(self.fd.as_fd(), Signal::SIGUSR1);
    }

    /// Waits for its end, and collects it where it is our child.
    pub async fn ended(&self) {
        match sys::readable(self.fd.clone()) {
            Ok(watched) => drop(watched.readable().await),
            Err(e) => {
                tracing::error!("cannot watch a shim: {e}; looking again in a while");
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
        // Fails for the children of an earlier agent, which somebody else collects.
        let _ = waitid(Id::PIDFd(self.fd.as_fd()), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG);
    }
}
