//! Finding out what became of an attempt while nobody watched it.

use super::order::mark;
use super::process::Process;
use crate::confine::{Confinement, walk};
use crate::spool::{Entry, SpoolError, Status};
use nix::sys::signal::{Signal, kill};

/// What became of an attempt that has an entry.
#[derive(Debug)]
pub enum Found {
    /// No shim ever took it.
    Unclaimed,
    /// Its shim runs; with when it began.
    Running(Process, i64),
    /// It has ended; with when it began, if it did.
    Ended(Option<i64>, Status),
    /// Its shim took it and is gone without a word; with when it began.
    Lost(i64),
}

/// Looks at an entry.
///
/// # Errors
/// The entry does not read.
pub fn find(entry: &Entry) -> Result<Found, SpoolError> {
    let claim = entry.claimed()?;
    let began = claim.map(|c| c.began_ms);
    if let Some(status) = entry.status()? {
        return Ok(Found::Ended(began, status));
    }
    let Some(claim) = claim else { return Ok(Found::Unclaimed) };
    if let Some(process) = Process::find(claim.process(), claim.start) {
        return Ok(Found::Running(process, claim.began_ms));
    }
    // It may have ended between the two looks.
    Ok(match entry.status()? {
        Some(status) => Found::Ended(began, status),
        None => Found::Lost(claim.began_ms),
    })
}

/// Kills what is left of an attempt that nobody holds.
pub fn clear(entry: &Entry, confinement: &Confinement) {
    confinement.kill_group();
    for pid in walk::marked(&mark(entry)) {
        // One that ended meanwhile needs no signal.
        let _ = kill(pid, Signal::SIGKILL);
    }
}
