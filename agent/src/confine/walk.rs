//! Finding the processes of an attempt by descent, through /proc. The shim adopts orphans, so that nothing leaves the
//! tree by forking twice.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;

/// How often a tree is stopped again to find processes born meanwhile, before killing starts.
const ROUNDS: usize = 16;

/// Every process below `root`, parents first, without `root`.
pub fn descendants(root: Pid) -> Vec<Pid> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for pid in processes() {
        if let Some(stat) = Stat::of(pid) {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    let (mut out, mut next) = (Vec::new(), vec![root]);
    while let Some(pid) = next.pop() {
        // Taken out, so that a number used anew while we looked cannot lead us round in a circle.
        let found = children.remove(&pid).unwrap_or_default();
        out.extend_from_slice(&found);
        next.extend(found);
    }
    out
}

/// Kills everything below `root`. What forks is stopped first, so that it cannot outrun the walk.
pub fn kill_descendants(root: Pid) {
    let mut known = HashSet::new();
    for _ in 0..ROUNDS {
        let fresh: Vec<_> = descendants(root).into_iter().filter(|pid| !known.contains(pid)).collect();
        if fresh.is_empty() {
            break;
        }
        for pid in fresh {
            // One that ended meanwhile needs no signal.
            let _ = kill(pid, Signal::SIGSTOP);
            known.insert(pid);
        }
    }
    for pid in known {
        let _ = kill(pid, Signal::SIGKILL);
    }
}

/// Processes whose first environment held this entry: what is left of an attempt whose shim was killed.
pub fn marked(entry: &str) -> Vec<Pid> {
    let holds = |environment: Vec<u8>| environment.split(|b| *b == 0).any(|e| e == entry.as_bytes());
    processes().filter(|pid| std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(holds)).collect()
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).map(Pid::from_raw)
}

/// What `/proc/PID/stat` says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its parent.
    pub parent: Pid,
    /// When it started, in clock ticks since boot: with its number, this names a process for as long as the machine
    /// is up.
    pub start: u64,
}

impl Stat {
    /// Asks the kernel; `None` where there is no such process.
    pub fn of(pid: Pid) -> Option<Self> {
        // The kernel gives it whole in one read; it is far shorter.
        let mut line = [0; 1024];
        let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
        Self::parse(&line[..length])
    }

    fn parse(stat: &[u8]) -> Option<Self> {
        // The name is in brackets and may hold anything, brackets too: the fields start after the last one.
        let after_name = stat.iter().rposition(|b| *b == b')')?;
        let mut fields = std::str::from_utf8(stat.get(after_name + 2..)?).ok()?.split(' ');
        // Fields 4 and 22 of proc(5); the first after the name is the third.
        let parent = fields.nth(1)?.parse().ok()?;
        let start = fields.nth(17)?.parse().ok()?;
        Some(Self { parent: Pid::from_raw(parent), start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_confuse_the_fields() {
        let line = b"77 (a) b (c)) S 5 77 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 10";
        assert_eq!(Stat::parse(line), Some(Stat { parent: Pid::from_raw(5), start: 4242 }));
        let me = Stat::of(Pid::this()).unwrap();
        assert_eq!(me.parent, Pid::parent());
        assert!(me.start > 0);
    }

    #[test]
    fn children_and_their_children_are_found_and_killed() {
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 1000 & wait"]).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        while descendants(pid).is_empty() {
            std::thread::yield_now();
        }
        assert!(descendants(Pid::this()).contains(&pid));
        kill_descendants(pid);
        // The shell waits for its one child, so it ends when that was killed.
        assert!(!child.wait().unwrap().success() || descendants(pid).is_empty());
    }
}
