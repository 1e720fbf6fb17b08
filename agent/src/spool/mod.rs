//! The folder in which agent and shim meet: one entry for each attempt, there until its end was acknowledged.
//!
//! | file | written by | says |
//! |---|---|---|
//! | `launch` | agent, before anything starts | what to run ([`Order`]) |
//! | `script` | agent, owned by the user | the script's text |
//! | `pid` | shim, first of all | which process holds the attempt ([`Claim`]) |
//! | `end` | agent | that the attempt is to be ended ([`EndOrder`]); the shim reads it when it gets SIGTERM |
//! | `limit` | agent | another time limit ([`Limit`]); the shim reads it when it starts and when it gets SIGUSR1 |
//! | `signals` | agent | signals for the attempt ([`Signals`]); the shim reads them when it gets SIGUSR1 |
//! | `status` | shim, last of all | how it ended ([`Status`]) |
//!
//! Parts of steps have entries of the same form beside them ([`Steps`]).
//!
//! Whoever makes `pid` runs the attempt, and nobody can make it twice: that is what "at most once" rests on (law 8).
//! Entries and the files that appear in them later come up whole, by rename. A folder that is done with is kept for
//! the next attempt (`.free-N`), with its files to be written over. Nothing here waits for the disk: what a power cut could tear belongs to a boot
//! that is over, and entries of an earlier boot are thrown away.

mod entry;
mod format;
mod steps;

pub use entry::{Claim, Entry};
pub use format::{
    EndOrder, FormatError, Limit, Order, Program, SignalOrder, Signals, Status, StepOrder, Stream, TaskOrder, User,
};
pub use steps::Steps;

use crate::files::{self, Keep};
use crate::limits::{FREE_SPOOL_ENTRIES, SPOOL_FILE_BYTES};
use ephor_model::{AttemptKey, JobId};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Begins the name of an entry that is not whole yet.
const UNFINISHED: &str = ".new-";
/// Begins the name of a folder that waits for an attempt.
const FREE: &str = ".free-";

/// Why the spool could not be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The file system said no.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file of an entry does not read.
    #[error("{path}: {source}")]
    Format {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: FormatError,
    },
}

impl SpoolError {
    fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }
}

/// All attempts of one agent. Copies mean the same one.
#[derive(Clone, Debug)]
pub struct Spool {
    folder: PathBuf,
    free: Arc<Mutex<Free>>,
    steps: Steps,
}

/// Folders that wait for an attempt, by the number in their name.
#[derive(Debug, Default)]
struct Free {
    waiting: Vec<u64>,
    next: u64,
}

impl Spool {
    /// Opens the spool of a data folder. Entries of an earlier boot are removed: nothing of them can be running.
    ///
    /// # Errors
    /// What the file system says.
    pub fn open(data: &Path, boot_id: &str) -> Result<Self, SpoolError> {
        let stamp = data.join("boot_id");
        let known = files::read(&stamp, 256).map_err(|e| SpoolError::io("read", &stamp, e))?;
        let same_boot = known.as_deref() == Some(boot_id.as_bytes());
        let steps = Steps::open(data, same_boot)?;
        let spool = Self { folder: data.join("spool"), free: Arc::default(), steps };
        make_folder(&spool.folder).map_err(|e| SpoolError::io("make", &spool.folder, e))?;
        for name in spool.names()? {
            if !same_boot || parse_key(&name).is_none() {
                let path = spool.folder.join(name);
                std::fs::remove_dir_all(&path).map_err(|e| SpoolError::io("remove", &path, e))?;
            }
        }
        if !same_boot {
            files::replace(&stamp, boot_id.as_bytes(), 0o644, Keep::UntilReboot)
                .map_err(|e| SpoolError::io("write", &stamp, e))?;
        }
        Ok(spool)
    }

    /// The parts of steps beside the attempts.
    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    fn names(&self) -> Result<Vec<String>, SpoolError> {
        let fail = |e| SpoolError::io("read", &self.folder, e);
        let entries = std::fs::read_dir(&self.folder).map_err(fail)?.collect::<Result<Vec<_>, _>>().map_err(fail)?;
        Ok(entries.into_iter().filter_map(|e| e.file_name().into_string().ok()).collect())
    }

    /// The entry of an attempt, whether or not it is there.
    pub fn entry(&self, key: AttemptKey) -> Entry {
        Entry::at(self.folder.join(key.to_string()))
    }

    /// The attempts that have an entry, in order.
    ///
    /// # Errors
    /// What the file system says.
    pub fn attempts(&self) -> Result<Vec<AttemptKey>, SpoolError> {
        let mut keys: Vec<_> = self.names()?.iter().filter_map(|n| parse_key(n)).collect();
        keys.sort();
        Ok(keys)
    }

    /// Makes the entry of an attempt, whole. Where there is one already, it stays as it is and the answer is `false`.
    ///
    /// # Errors
    /// What the file system says; then there is no entry.
    pub fn create(&self, key: AttemptKey, order: &Order, script: Option<&[u8]>) -> Result<bool, SpoolError> {
        let path = self.folder.join(format!("{UNFINISHED}{key}"));
        let made = self.fill(&path, order, script).and_then(|()| std::fs::rename(&path, self.entry(key).folder()));
        let Err(error) = made else { return Ok(true) };
        // A half-made entry is also removed at the next start; nothing hangs on it.
        let _ = std::fs::remove_dir_all(&path);
        // A folder that is not empty cannot be renamed over.
        match error.raw_os_error() {
            Some(libc::ENOTEMPTY | libc::EEXIST) => Ok(false),
            _ => Err(SpoolError::io("make the spool entry", &path, error)),
        }
    }

    fn fill(&self, path: &Path, order: &Order, script: Option<&[u8]>) -> io::Result<()> {
        match self.free().waiting.pop() {
            Some(number) => std::fs::rename(self.free_folder(number), path)?,
            None => make_folder(path)?,
        }
        Entry::at(path.to_owned()).set_order(order)?;
        let Some(text) = script else { return Ok(()) };
        let mut script = OpenOptions::new().write(true).create_new(true).mode(0o700).open(path.join("script"))?;
        if let Some(user) = &order.user {
            std::os::unix::fs::fchown(&script, Some(user.uid), Some(user.gid))?;
        }
        script.write_all(text)
    }

    /// Takes the entry of an attempt away, at one stroke; one that is not there is fine.
    ///
    /// # Errors
    /// What the file system says.
    pub fn retire(&self, key: AttemptKey) -> Result<(), SpoolError> {
        let number = {
            let mut free = self.free();
            free.next += 1;
            free.next
        };
        let (entry, folder) = (self.entry(key), self.free_folder(number));
        match std::fs::rename(entry.folder(), &folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            moved => moved.map_err(|e| SpoolError::io("retire", entry.folder(), e))?,
        }
        let mut free = self.free();
        if free.waiting.len() < FREE_SPOOL_ENTRIES && Entry::at(folder.clone()).reset().is_ok() {
            free.waiting.push(number);
            return Ok(());
        }
        std::fs::remove_dir_all(&folder).map_err(|e| SpoolError::io("remove", &folder, e))
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn free_folder(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{FREE}{number}"))
    }
}

/// Makes a folder that its owner alone can list, and others can pass through to what is theirs.
fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o711).create(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

fn parse_key(name: &str) -> Option<AttemptKey> {
    let (job, number) = name.split_once('.')?;
    Some(AttemptKey { job: JobId(job.parse().ok()?), number: number.parse().ok()? })
}

fn read_file(path: &Path) -> Result<Option<Vec<u8>>, SpoolError> {
    files::read(path, SPOOL_FILE_BYTES).map_err(|e| SpoolError::io("read", path, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::Confinement;

    pub(crate) fn order() -> Order {
        Order {
            user: None,
            program: Program::Argv(vec!["true".into()]),
            environment: vec!["A=1".into()],
            work_dir: "/".into(),
            stdin: None,
            stdout: "/dev/null".into(),
            stderr: None,
            append: false,
            time_limit_ms: None,
            grace_ms: 1000,
            signal: None,
            open_files: 1024,
            confinement: Confinement::Walk,
        }
    }

    #[test]
    fn an_entry_is_made_once_and_claimed_once() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::open(folder.path(), "boot").unwrap();
        let key = AttemptKey { job: JobId(12), number: 3 };
        assert!(spool.create(key, &order(), Some(b"#!/bin/sh\n")).unwrap());
        assert!(!spool.create(key, &order(), None).unwrap());
        assert_eq!(spool.attempts().unwrap(), [key]);
        let entry = spool.entry(key);
        assert_eq!(entry.order().unwrap().environment, ["A=1"]);
        assert!(entry.script().exists());
        let claim = Claim { pid: 5, start: 77, began_ms: 99 };
        assert!(entry.claim(claim).unwrap());
        assert!(!entry.claim(Claim { pid: 6, ..claim }).unwrap());
        assert_eq!(entry.claimed().unwrap(), Some(claim));
        assert!(entry.status().unwrap().is_none() && entry.end_order().unwrap().is_none());
        entry.set_status(&Status::unstarted(ephor_model::EndCause::Exited, "", 1)).unwrap();
        spool.retire(key).unwrap();
        spool.retire(key).unwrap();
        assert_eq!(spool.attempts().unwrap(), []);

        // The next attempt gets the folder, and finds nothing of the last one in it.
        let next = AttemptKey { job: JobId(13), number: 1 };
        let shorter = Order { environment: Vec::new(), ..order() };
        assert!(spool.create(next, &shorter, None).unwrap());
        assert_eq!(spool.names().unwrap(), ["13.1"]);
        let entry = spool.entry(next);
        assert_eq!(entry.order().unwrap(), shorter);
        assert!(entry.claimed().unwrap().is_none() && entry.status().unwrap().is_none() && !entry.script().exists());
    }

    #[test]
    fn entries_of_an_earlier_boot_and_half_made_ones_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::open(folder.path(), "boot 1").unwrap();
        let key = AttemptKey { job: JobId(1), number: 1 };
        spool.create(key, &order(), None).unwrap();
        std::fs::create_dir(folder.path().join("spool/.new-2.1")).unwrap();
        std::fs::create_dir(folder.path().join("spool/.free-7")).unwrap();
        assert_eq!(Spool::open(folder.path(), "boot 1").unwrap().names().unwrap(), ["1.1"]);
        assert!(Spool::open(folder.path(), "boot 2").unwrap().names().unwrap().is_empty());
    }
}
