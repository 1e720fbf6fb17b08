//! One attempt's folder in the spool.

use super::format::{EndOrder, Limit, Order, SignalOrder, Signals, Status, StepOrder, decode, encode};
use super::{SpoolError, read_file};
use crate::limits::SIGNALS_KEPT;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::Pid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Which process holds an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Number of the shim.
    pub pid: i32,
    /// When it started, in clock ticks since boot: tells it from a later process of the same number.
    pub start: u64,
    /// When the attempt began, in milliseconds since 1970.
    pub began_ms: i64,
}

impl Claim {
    /// The shim.
    pub fn process(&self) -> Pid {
        Pid::from_raw(self.pid)
    }
}

/// The folder of one attempt.
#[derive(Clone, Debug)]
pub struct Entry {
    folder: PathBuf,
}

impl Entry {
    /// The entry in this folder, whether or not it is there.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the script's text is, for attempts that have one.
    pub fn script(&self) -> PathBuf {
        self.folder.join("script")
    }

    /// What to run.
    ///
    /// # Errors
    /// It is not there, or does not read.
    pub fn order(&self) -> Result<Order, SpoolError> {
        self.launch()
    }

    /// What to run, where this is the entry of a step.
    ///
    /// # Errors
    /// It is not there, or does not read.
    pub fn step_order(&self) -> Result<StepOrder, SpoolError> {
        self.launch()
    }

    fn launch<T: DeserializeOwned>(&self) -> Result<T, SpoolError> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        self.get("launch")?.ok_or_else(|| SpoolError::io("read", &self.folder.join("launch"), missing()))
    }

    /// Takes the attempt; `false`: another process has it, or had it.
    ///
    /// # Errors
    /// What the file system says.
    pub fn claim(&self, claim: Claim) -> Result<bool, SpoolError> {
        let launch = self.folder.join("launch");
        let file = File::open(&launch).map_err(|e| SpoolError::io("open", &launch, e))?;
        // Given back when it goes out of scope: between look and claim no other shim gets in.
        let _lock =
            Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, e)| SpoolError::io("lock", &launch, e.into()))?;
        if self.claimed()?.is_some() {
            return Ok(false);
        }
        self.put("pid", &claim).map(|()| true)
    }

    /// Who has it, or had it; `None`: nobody has started it.
    ///
    /// # Errors
    /// What the file system says, or a file that does not read.
    pub fn claimed(&self) -> Result<Option<Claim>, SpoolError> {
        self.get("pid")
    }

    /// How it ended; `None`: it has not.
    ///
    /// # Errors
    /// What the file system says, or a file that does not read.
    pub fn status(&self) -> Result<Option<Status>, SpoolError> {
        self.get("status")
    }

    /// Writes down how it ended.
    ///
    /// # Errors
    /// What the file system says.
    pub fn set_status(&self, status: &Status) -> Result<(), SpoolError> {
        self.put("status", status)
    }

    /// That it is to be ended; `None`: nobody said so.
    ///
    /// # Errors
    /// What the file system says, or a file that does not read.
    pub fn end_order(&self) -> Result<Option<EndOrder>, SpoolError> {
        self.get("end")
    }

    /// Writes down that it is to be ended.
    ///
    /// # Errors
    /// What the file system says.
    pub fn set_end_order(&self, end: &EndOrder) -> Result<(), SpoolError> {
        self.put("end", end)
    }

    /// Its time limit, where it has another one than its order says.
    ///
    /// # Errors
    /// What the file system says, or a file that does not read.
    pub fn limit(&self) -> Result<Option<Limit>, SpoolError> {
        self.get("limit")
    }

    /// Writes down another time limit.
    ///
    /// # Errors
    /// What the file system says.
    pub fn set_limit(&self, limit: Limit) -> Result<(), SpoolError> {
        self.put("limit", &limit)
    }

    /// The signals that it was sent.
    ///
    /// # Errors
    /// What the file system says, or a file that does not read.
    pub fn signals(&self) -> Result<Signals, SpoolError> {
        self.get("signals").map(Option::unwrap_or_default)
    }

    /// Writes one more signal down.
    ///
    /// # Errors
    /// What the file system says, or a file that does not read.
    pub fn add_signal(&self, order: SignalOrder) -> Result<(), SpoolError> {
        let Signals { count, mut last } = self.signals()?;
        if last.len() >= SIGNALS_KEPT {
            last.remove(0);
        }
        last.push(order);
        self.put("signals", &Signals { count: count + 1, last })
    }

    /// Makes the folder ready for another attempt. Files are kept to be written over: making and removing files by
    /// the thousand is what file systems are slowest at. Not so the script: it was its user's, who may have given it a
    /// second name.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn reset(&self) -> Result<(), SpoolError> {
        let fail = |e| SpoolError::io("reset", &self.folder, e);
        for file in ["script", "end", "limit", "signals"] {
            missing_is_fine(std::fs::remove_file(self.folder.join(file))).map_err(fail)?;
        }
        for file in ["pid", "status"] {
            missing_is_fine(std::fs::rename(self.folder.join(file), self.fresh(file))).map_err(fail)?;
        }
        Ok(())
    }

    /// Writes what to run, before anybody can see the entry.
    pub(super) fn set_order(&self, order: &impl Serialize) -> io::Result<()> {
        write_over(&self.folder.join("launch"), &encode(order).map_err(io::Error::other)?)
    }

    /// The name under which a file is written before it is there.
    fn fresh(&self, file: &str) -> PathBuf {
        self.folder.join(format!("{file}.new"))
    }

    fn get<T: DeserializeOwned>(&self, file: &str) -> Result<Option<T>, SpoolError> {
        let path = self.folder.join(file);
        let Some(bytes) = read_file(&path)? else { return Ok(None) };
        decode(&bytes).map(Some).map_err(|source| SpoolError::Format { path, source })
    }

    fn put<T: Serialize>(&self, file: &str, value: &T) -> Result<(), SpoolError> {
        let path = self.folder.join(file);
        let bytes = encode(value).map_err(|source| SpoolError::Format { path: path.clone(), source })?;
        let fresh = self.fresh(file);
        write_over(&fresh, &bytes)
            .and_then(|()| std::fs::rename(&fresh, &path))
            .map_err(|e| SpoolError::io("write", &path, e))
    }
}

/// Writes a file, over what it held before. It is never emptied first: that would make some file systems write it
/// to the disk at once.
fn write_over(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    let length = bytes.len() as u64;
    if file.metadata()?.len() > length { file.set_len(length) } else { Ok(()) }
}

fn missing_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
