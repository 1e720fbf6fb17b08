//! The versioned content of the files in a spool entry.

use crate::confine::Confinement;
use ephor_model::{EndCause, SignalTo, WarningSignal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Version of the form; a shim may be older than the agent that reads what it left.
const VERSION: u16 = 2;

/// What a shim runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Whom to become; `None`: the shim's own user.
    pub user: Option<User>,
    /// What to run.
    pub program: Program,
    /// `NAME=value` entries, complete.
    pub environment: Vec<String>,
    /// Absolute path of the folder to run in; the paths below are relative to it.
    pub work_dir: String,
    /// Standard input; `None`: nothing to read.
    pub stdin: Option<String>,
    /// Standard output.
    pub stdout: String,
    /// Standard error; `None`: where the output goes.
    pub stderr: Option<String>,
    /// Keep what the output files hold.
    pub append: bool,
    /// Longest run, in milliseconds.
    pub time_limit_ms: Option<u64>,
    /// From SIGTERM to SIGKILL, in milliseconds.
    pub grace_ms: u64,
    /// The signal before the time limit.
    pub signal: Option<WarningSignal>,
    /// Soft limit of open files: the agent raises its own, jobs get what they would have had.
    pub open_files: u64,
    /// How the processes are kept together.
    pub confinement: Confinement,
}

/// One node's part of a step: what its shim runs, and where the streams of the tasks lead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepOrder {
    /// Whom to become; `None`: the shim's own user.
    pub user: Option<User>,
    /// The program, looked up in the tasks' PATH, and its arguments.
    pub argv: Vec<String>,
    /// `NAME=value` entries that all tasks have in common.
    pub environment: Vec<String>,
    /// Absolute path of the folder to run in.
    pub work_dir: String,
    /// Which rights new files do not get.
    pub umask: u32,
    /// Output files keep what they hold.
    pub append: bool,
    /// Output is passed on as it comes, not by whole lines.
    pub unbuffered: bool,
    /// Soft limit of open files.
    pub open_files: u64,
    /// The group of the step, and that of its attempt, in which it lies.
    pub confinement: Confinement,
    /// See `confinement`.
    pub attempt_group: Confinement,
    /// The tasks of this node.
    pub tasks: Vec<TaskOrder>,
    /// Name of the node.
    pub node: String,
    /// Where the streams are served, to be tried in order: `IP:port`.
    pub addresses: Vec<String>,
    /// The certificate of whoever serves them, in PEM: no other is trusted.
    pub certificate: String,
    /// Proves there that this is the step.
    pub key: String,
    /// Thousandths of cores that the step takes from others of its attempt.
    pub cpu_milli: i64,
    /// GPUs that it takes from others.
    pub devices: Vec<u32>,
}

/// One task of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOrder {
    /// Its rank in the step.
    pub rank: u32,
    /// `NAME=value` entries of its own.
    pub environment: Vec<String>,
    /// Its standard input.
    pub stdin: Stream,
    /// Its standard output.
    pub stdout: Stream,
    /// Its standard error.
    pub stderr: Stream,
}

/// Where a standard stream of a task leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    /// To whoever started the step.
    Served,
    /// Into or from this file, relative to the working folder.
    File(String),
    /// Nowhere.
    Nothing,
}

/// Whom a shim becomes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// User id.
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
    /// All groups.
    pub groups: Vec<u32>,
}

/// What an attempt runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Program {
    /// The entry's script, with these arguments.
    Script(Vec<String>),
    /// A program, looked up in the job's PATH, and its arguments.
    Argv(Vec<String>),
}

/// That an attempt is to be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndOrder {
    /// What to report.
    pub cause: EndCause,
    /// From SIGTERM to SIGKILL, in milliseconds; `None`: what the launch says.
    pub grace_ms: Option<u64>,
}

/// A time limit, counted from the attempt's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// In milliseconds; `None`: there is none.
    pub ms: Option<u64>,
}

/// A signal for the processes of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalOrder {
    /// Its number, 1 to 31.
    pub number: i32,
    /// Which of them get it.
    pub to: SignalTo,
}

/// The last signals that were ordered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signals {
    /// How many there were in all.
    pub count: u64,
    /// The last ones of them, at most [`crate::limits::SIGNALS_KEPT`], the newest at the end.
    pub last: Vec<SignalOrder>,
}

impl Signals {
    /// Those behind the first `seen` of all, as far as they are kept.
    pub fn after(&self, seen: u64) -> &[SignalOrder] {
        let new = usize::try_from(self.count.saturating_sub(seen)).unwrap_or(usize::MAX);
        &self.last[self.last.len().saturating_sub(new)..]
    }
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// When, in milliseconds since 1970.
    pub ended_ms: i64,
    /// Exit code of its first process.
    pub exit_code: i32,
    /// Signal that ended its first process, 0 for none.
    pub exit_signal: i32,
    /// What made it end.
    pub cause: EndCause,
    /// Why it could not be started; else empty.
    pub message: String,
    /// CPU time of all its processes, in milliseconds.
    pub cpu_ms: i64,
    /// Largest resident memory of one of its processes, in MiB, rounded up.
    pub peak_mem_mib: i64,
}

impl Status {
    /// The end of an attempt of which no process ran.
    pub fn unstarted(cause: EndCause, message: impl Into<String>, ended_ms: i64) -> Self {
        Self { ended_ms, exit_code: 0, exit_signal: 0, cause, message: message.into(), cpu_ms: 0, peak_mem_mib: 0 }
    }
}

/// Why a file does not read.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Written by a version that this one does not know.
    #[error(
        "it has form {0}, but this version reads form {VERSION}: agent and shim must be of versions that go together"
    )]
    Version(u16),
    /// Cut off or changed.
    #[error("it is damaged: {0}")]
    Damaged(#[from] postcard::Error),
}

/// Version, then the value.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, FormatError> {
    Ok(postcard::to_stdvec(&(VERSION, value))?)
}

/// Reads what [`encode`] made; the version is checked before anything behind it is looked at.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FormatError> {
    let (version, rest) = postcard::take_from_bytes::<u16>(bytes)?;
    if version != VERSION {
        return Err(FormatError::Version(version));
    }
    Ok(postcard::from_bytes(rest)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_and_damage_are_told_apart() {
        let end = EndOrder { cause: EndCause::Cancelled, grace_ms: Some(5) };
        let bytes = encode(&end).unwrap();
        assert_eq!(decode::<EndOrder>(&bytes).unwrap(), end);
        assert!(matches!(decode::<EndOrder>(&bytes[..1]), Err(FormatError::Damaged(_))));
        assert!(matches!(decode::<EndOrder>(&[1, 0, 0]), Err(FormatError::Version(1))));
    }
}
