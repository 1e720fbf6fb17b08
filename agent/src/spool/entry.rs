//! One attempt's folder in the spool.

use super::format::{EndOrder, Order, Status, decode, encode};
use super::{SpoolError, read_file};
use crate::files::{self, Keep};
use nix::unistd::Pid;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};

/// Files that an entry can hold, besides ones that were just being replaced.
const FILES: [&str; 5] = ["launch", "script", "pid", "end", "status"];

/// Version of the text in `pid`.
const CLAIM_FORM: &str = "1";

/// Which process holds an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The shim.
    pub pid: Pid,
    /// When it started, in clock ticks since boot: tells it from a later process of the same number.
    pub start: u64,
    /// When the attempt began, in milliseconds since 1970.
    pub began_ms: i64,
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
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        self.get("launch")?.ok_or_else(|| SpoolError::io("read", &self.folder.join("launch"), missing()))
    }

    /// Takes the attempt; `false`: another process has it.
    ///
    /// # Errors
    /// What the file system says.
    pub fn claim(&self, claim: Claim) -> Result<bool, SpoolError> {
        let text = format!("{CLAIM_FORM} {} {} {}", claim.pid, claim.start, claim.began_ms);
        let path = self.folder.join("pid");
        match std::os::unix::fs::symlink(text, &path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            done => done.map(|()| true).map_err(|e| SpoolError::io("make", &path, e)),
        }
    }

    /// Who has it; `None`: nobody has started it.
    ///
    /// # Errors
    /// What the file system says, or a text of another form.
    pub fn claimed(&self) -> Result<Option<Claim>, SpoolError> {
        let path = self.folder.join("pid");
        let text = match std::fs::read_link(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|e| SpoolError::io("read", &path, e))?,
        };
        let claim = text.to_str().and_then(parse_claim);
        claim.map(Some).ok_or_else(|| SpoolError::io("read", &path, io::ErrorKind::InvalidData.into()))
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

    /// Removes the entry; one that is not there is fine.
    ///
    /// # Errors
    /// What the file system says.
    pub fn remove(&self) -> Result<(), SpoolError> {
        for file in FILES {
            // What cannot be removed keeps the folder, and the slower way below tells why.
            let _ = std::fs::remove_file(self.folder.join(file));
        }
        match std::fs::remove_dir(&self.folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(_) => std::fs::remove_dir_all(&self.folder).map_err(|e| SpoolError::io("remove", &self.folder, e)),
            Ok(()) => Ok(()),
        }
    }

    fn get<T: DeserializeOwned>(&self, file: &str) -> Result<Option<T>, SpoolError> {
        let path = self.folder.join(file);
        let Some(bytes) = read_file(&path)? else { return Ok(None) };
        decode(&bytes).map(Some).map_err(|source| SpoolError::Format { path, source })
    }

    fn put<T: Serialize>(&self, file: &str, value: &T) -> Result<(), SpoolError> {
        let path = self.folder.join(file);
        let bytes = encode(value).map_err(|source| SpoolError::Format { path: path.clone(), source })?;
        files::replace(&path, &bytes, 0o600, Keep::UntilReboot).map_err(|e| SpoolError::io("write", &path, e))
    }
}

fn parse_claim(text: &str) -> Option<Claim> {
    let [CLAIM_FORM, pid, start, began] = text.split(' ').collect::<Vec<_>>()[..] else { return None };
    let pid = Pid::from_raw(pid.parse().ok()?);
    Some(Claim { pid, start: start.parse().ok()?, began_ms: began.parse().ok()? })
}
