//! What a user submits: the specification of a job, before and after admission.

use crate::array::ArraySpec;
use crate::id::{JobId, Uid};
use crate::request::Request;
use crate::shared::Shared;
use crate::signal::WarningSignal;
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// What an attempt runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Payload {
    /// The script among the job's [`Blobs`], with these arguments.
    Script {
        /// Arguments after the script's name.
        args: Vec<String>,
    },
    /// A program and its arguments, started without a shell; never empty.
    Argv(Vec<String>),
}

/// What happens to an output file that is already there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OpenMode {
    /// It is emptied at the first attempt and appended to by later ones.
    #[default]
    Truncate,
    /// It is appended to.
    Append,
}

/// What must have become of another job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DependencyKind {
    /// It has started, or was cancelled before it could.
    After,
    /// It has ended, however.
    AfterAny,
    /// It has ended with exit code 0.
    AfterOk,
    /// It has ended in any other way.
    AfterNotOk,
    /// Of an array, the element with the index of the waiting element has ended with exit code 0. Of anything else,
    /// it has.
    AfterCorr,
    /// Every job of the same name and user that was submitted before has ended. Names no job.
    Singleton,
}

impl DependencyKind {
    /// All kinds with their names as users write them.
    pub const NAMES: [(Self, &'static str); 6] = [
        (Self::After, "after"),
        (Self::AfterAny, "afterany"),
        (Self::AfterOk, "afterok"),
        (Self::AfterNotOk, "afternotok"),
        (Self::AfterCorr, "aftercorr"),
        (Self::Singleton, "singleton"),
    ];

    /// The name as users write it.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(k, _)| *k == self).map_or("", |(_, n)| n)
    }
}

/// One condition on another job. Where that job is an array (its first id) and no index is given, all its elements are
/// meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Dependency {
    /// What must have become of it.
    pub kind: DependencyKind,
    /// The other job; 0 for [`DependencyKind::Singleton`].
    pub job: JobId,
    /// Index of the one element of the array that is meant.
    pub index: Option<u32>,
}

impl Dependency {
    /// A condition on a whole job.
    pub fn on(kind: DependencyKind, job: JobId) -> Self {
        Self { kind, job, index: None }
    }
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, job, index } = self;
        match (kind, index) {
            (DependencyKind::Singleton, _) => f.write_str(kind.name()),
            (_, None) => write!(f, "{}:{job}", kind.name()),
            (_, Some(index)) => write!(f, "{}:{job}_{index}", kind.name()),
        }
    }
}

/// Who a job runs as. Set by the controller from the connection, never from a request (law 9).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// User id.
    pub uid: Uid,
    /// Primary group id.
    pub gid: u32,
    /// Login name.
    pub name: String,
}

/// What many jobs have in common: whose they are, where they run and write, what they wait for. Most users submit many
/// jobs alike, and those share one allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobCommon {
    /// Who it runs as.
    pub owner: Owner,
    /// Queue by name; empty until admission fills it in.
    pub queue: String,
    /// Account by name; empty until admission fills it in.
    pub account: String,
    /// Quality of service by name, where one was asked for.
    pub qos: Option<String>,
    /// Free text.
    pub comment: Option<String>,
    /// Absolute path of the folder it runs in.
    pub work_dir: String,
    /// Where standard input comes from; `None`: `/dev/null`.
    pub stdin: Option<String>,
    /// Pattern of the output file; `None`: `ephor-%j.out`, for an array `ephor-%A_%a.out`.
    pub stdout: Option<String>,
    /// Pattern of the error file; `None`: where the output goes.
    pub stderr: Option<String>,
    /// What happens to files that are already there.
    pub open_mode: OpenMode,
    /// Lowers (positive) or raises (negative) its priority; see [`crate::limits::NICE`].
    pub nice: i64,
    /// Submitted on hold.
    pub hold: bool,
    /// Not before this time.
    pub begin: Option<Timestamp>,
    /// Conditions on other jobs: all of them, or any one where `dependency_any`.
    pub dependencies: Vec<Dependency>,
    /// Whether one satisfied dependency is enough.
    pub dependency_any: bool,
    /// Whether it may run again after its node failed or a scheduler took its place; `None`: the site's default.
    pub requeue: Option<bool>,
    /// The array's indices, for an array.
    pub array: Option<ArraySpec>,
    /// Licences by name with their counts, for each element of an array.
    pub licences: Vec<(String, u32)>,
    /// Reservation by name that it runs in, and nowhere else.
    pub reservation: Option<String>,
    /// It must have ended by this time: it does not start where its time limit would go beyond it.
    pub deadline: Option<Timestamp>,
    /// The signal that it gets some time before its time limit.
    pub signal: Option<WarningSignal>,
    /// How it was asked for in the words of the command that submitted it, by name, such as `TresPerNode` and `gres:gpu:2`:
    /// to be shown again. Nothing is decided by them. At most [`crate::limits::WORDS`].
    pub words: Vec<(String, String)>,
}

/// A job as specified, small enough to stay in memory: script and environment are kept apart, by digest. What it has in
/// common with others reads as its own: `spec.queue`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// Name shown in lists.
    pub name: String,
    /// What it runs.
    pub payload: Payload,
    /// Longest run; `None` until admission fills it in.
    pub time_limit: Option<Span>,
    /// What it needs.
    pub request: Shared<Request>,
    /// The rest.
    pub common: Shared<JobCommon>,
}

impl Deref for JobSpec {
    type Target = JobCommon;

    fn deref(&self) -> &JobCommon {
        &self.common
    }
}

impl DerefMut for JobSpec {
    fn deref_mut(&mut self) -> &mut JobCommon {
        &mut self.common
    }
}

impl JobSpec {
    /// A job that runs `payload` with every other field at its default.
    pub fn new(name: &str, payload: Payload) -> Self {
        Self {
            name: name.to_owned(),
            payload,
            time_limit: None,
            request: Shared::default(),
            common: JobCommon { work_dir: "/".into(), ..JobCommon::default() }.into(),
        }
    }

    /// Pattern of the output file, also where none was given.
    pub fn output_pattern(&self) -> &str {
        let default = if self.array.is_some() { "ephor-%A_%a.out" } else { "ephor-%j.out" };
        self.stdout.as_deref().unwrap_or(default)
    }

    /// The latest time at which it may start, so as to end by its deadline; `None`: any.
    pub fn latest_start(&self) -> Option<Timestamp> {
        self.deadline.map(|deadline| deadline + Span(-self.time_limit.map_or(0, |limit| limit.0)))
    }

    /// How many ids the job takes: 1, or the elements of its array.
    pub fn count(&self) -> u32 {
        self.array.as_ref().map_or(1, ArraySpec::count)
    }
}

/// The large parts of a job, stored by digest and never resident.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blobs {
    /// Text of the script, where the payload is one.
    pub script: Option<Vec<u8>>,
    /// The environment as `NAME=value` entries, each ended by a NUL byte.
    pub environment: Vec<u8>,
}

/// A job as it arrives: specification and blobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The specification.
    pub spec: JobSpec,
    /// Script and environment.
    pub blobs: Blobs,
}
