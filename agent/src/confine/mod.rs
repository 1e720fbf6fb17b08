//! Which processes belong to an attempt, and how all of them are reached: the seam for limits on them.
//!
//! Every attempt is at least a tree under its shim, which adopts orphans ([`walk`]). Where a control group can be had,
//! the attempt lies in one too, and its processes end in one stroke.

mod choose;
mod group;
pub mod walk;

pub use choose::{Choice, Wanted, choose};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// How the processes of one attempt, or of all attempts under one folder, are kept together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Confinement {
    /// By descent alone.
    Walk,
    /// A control group of version 2 in this folder.
    CgroupV2(PathBuf),
    /// A freezer control group of version 1 in this folder.
    CgroupV1(PathBuf),
}

/// Begins the name of a step's group below its attempt's.
const STEP: &str = "step.";

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Walk => f.write_str("descent alone, no control group"),
            Self::CgroupV2(folder) => write!(f, "cgroup v2 {}", folder.display()),
            Self::CgroupV1(folder) => write!(f, "cgroup v1 {}", folder.display()),
        }
    }
}

impl Confinement {
    /// The part for one attempt.
    pub fn of_attempt(&self, name: &str) -> Self {
        match self {
            Self::Walk => Self::Walk,
            Self::CgroupV2(base) => Self::CgroupV2(base.join(name)),
            Self::CgroupV1(base) => Self::CgroupV1(base.join(name)),
        }
    }

    /// The part of an attempt's group for one of its steps. A signal to the attempt does not reach it, since whoever
    /// started the step passes it on; killing the attempt does.
    pub fn of_step(&self, step: u32) -> Self {
        self.of_attempt(&format!("{STEP}{step}"))
    }

    fn folder(&self) -> Option<&PathBuf> {
        match self {
            Self::Walk => None,
            Self::CgroupV2(folder) | Self::CgroupV1(folder) => Some(folder),
        }
    }

    /// Makes the group; one that is there already will do.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn make(&self) -> io::Result<()> {
        let Some(folder) = self.folder() else { return Ok(()) };
        match std::fs::create_dir(folder) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            done => done,
        }
    }

    /// Moves the calling process in; its children will be born there.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn enter(&self) -> io::Result<()> {
        self.folder().map_or(Ok(()), |folder| group::write(folder, "cgroup.procs", "0"))
    }

    /// Sends a signal to every process of the attempt that `root` (its shim) holds; not to `root` itself.
    pub fn signal(&self, root: Pid, signal: Signal) {
        self.signal_but(root, signal, root);
    }

    /// The same, but for one process.
    pub fn signal_but(&self, root: Pid, signal: Signal, spared: Pid) {
        let members = match self.folder() {
            Some(folder) => group::members(folder).unwrap_or_else(|_| walk::descendants(root)),
            None => walk::descendants(root),
        };
        for pid in members.into_iter().filter(|pid| *pid != spared) {
            // One that ended meanwhile needs no signal.
            let _ = kill(pid, signal);
        }
    }

    /// Kills every process of the attempt that `root` holds. Call it until nothing is left, the second time and later
    /// with `again`: then those are looked for too that left the group.
    pub fn kill(&self, root: Pid, again: bool) {
        self.kill_group();
        if again || *self == Self::Walk {
            walk::kill_descendants(root);
        }
    }

    /// Kills what is in the group, if there is one.
    pub fn kill_group(&self) {
        match self {
            Self::Walk => {}
            Self::CgroupV2(folder) => {
                // Gone already, then: nothing is in it.
                let _ = group::write(folder, "cgroup.kill", "1");
            }
            // Freezing reaches the groups below, and so must killing; version 2 kills them by itself.
            Self::CgroupV1(folder) => group::kill_frozen(folder, &group::below(folder, STEP)),
        }
    }

    /// Removes the empty group, with the empty groups of its steps. One that is not empty yet stays; the agent tries
    /// again.
    pub fn remove(&self) {
        let Some(folder) = self.folder() else { return };
        for step in group::below(folder, STEP) {
            let _ = std::fs::remove_dir(step);
        }
        let _ = std::fs::remove_dir(folder);
    }
}
