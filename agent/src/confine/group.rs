//! The files of control groups: who is in one, and killing all of them.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io;
use std::path::{Path, PathBuf};

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

/// The groups below one whose names begin so.
pub fn below(folder: &Path, begin: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let ours = entries.filter(|e| e.file_name().to_str().is_some_and(|name| name.starts_with(begin)));
    ours.map(|e| e.path()).filter(|path| path.is_dir()).collect()
}

/// Kills all members of a version 1 freezer group and of those below it: frozen first, so that none can fork away
/// meanwhile.
pub fn kill_frozen(folder: &Path, below: &[PathBuf]) {
    // Each step is of use without the one before it, so none stops at an error; the caller looks what is left.
    let _ = write(folder, "freezer.state", "FROZEN");
    for group in below.iter().map(PathBuf::as_path).chain([folder]) {
        for pid in members(group).unwrap_or_default() {
            let _ = kill(pid, Signal::SIGKILL);
        }
    }
    let _ = write(folder, "freezer.state", "THAWED");
}
