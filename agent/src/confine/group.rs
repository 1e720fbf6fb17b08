//! The files of control groups: who is in one, and killing all of them.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io;
use std::path::Path;

/// Writes one control file, which the kernel must have put there.
pub fn write(folder: &Path, file: &str, text: &str) -> io::Result<()> {
    io::Write::write_all(&mut std::fs::OpenOptions::new().write(true).open(folder.join(file))?, text.as_bytes())
}

/// The processes in a group.
pub fn members(folder: &Path) -> io::Result<Vec<Pid>> {
    let text = std::fs::read_to_string(folder.join("cgroup.procs"))?;
    // 0 stands for a process outside of our process namespace: not ours to signal, and 0 means "my group" to kill.
    Ok(text.lines().filter_map(|l| l.parse().ok()).filter(|pid| *pid > 0).map(Pid::from_raw).collect())
}

/// Kills all members of a version 1 freezer group: frozen first, so that none can fork away meanwhile.
pub fn kill_frozen(folder: &Path) {
    // Each step is of use without the one before it, so none stops at an error; the caller looks what is left.
    let _ = write(folder, "freezer.state", "FROZEN");
    for pid in members(folder).unwrap_or_default() {
        let _ = kill(pid, Signal::SIGKILL);
    }
    let _ = write(folder, "freezer.state", "THAWED");
}
