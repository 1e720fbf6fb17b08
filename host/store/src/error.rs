//! Why the store could not do it: what was wrong, where, and what would work.

use ephor_model::{Digest, Epoch};
use std::io;
use std::path::{Path, PathBuf};

/// A refusal or failure of the store.
///
/// After [`Full`](Self::Full), [`Io`](Self::Io) or [`Damaged`](Self::Damaged) of a write the store is closed: every
/// further call answers [`Closed`](Self::Closed) until it is opened again.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process (or another part of this one) has the data folder open.
    #[error(
        "{} is in use by {}; one data folder serves one controller: stop that one, or give this one a folder of its own",
        path.display(),
        holder(pid)
    )]
    Busy {
        /// The folder or file.
        path: PathBuf,
        /// Process id of the holder, where it could be read.
        pid: Option<u32>,
    },
    /// The disk, or the quota on it, is full.
    #[error("no space left for {}; the last batch was not acknowledged: free some space, then start the controller again", path.display())]
    Full {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// Reading or writing failed.
    #[error("{}: {source}; nothing more is written until the controller is started again", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The content makes no sense.
    #[error("{} is damaged: {what}; restore the last backup with 'ephor controller --recover'", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A later version wrote it.
    #[error("{} has format {found} and this version knows up to {known}; run the version that wrote it, or a later one", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The format of this version.
        known: u32,
    },
    /// An earlier version wrote it, too early for this one.
    #[error("{} has format {found} and this version reads from {known} on; upgrade through the versions between", path.display())]
    Older {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The oldest format that this version reads.
        known: u32,
    },
    /// It is a copy that was made as a backup.
    #[error(
        "{} is a backup: jobs may have started and ended since it was made; start with '--recover' to go on from it \
         with an epoch above every agent's",
        path.display()
    )]
    IsBackup {
        /// The file.
        path: PathBuf,
    },
    /// There is a file already where a copy should go.
    #[error("{} is there already; name a file that is not", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another controller took over: its epoch is higher.
    #[error("epoch {given} was deposed: the store is at epoch {stored}")]
    Fenced {
        /// The epoch of the store.
        stored: Epoch,
        /// The epoch of the caller.
        given: Epoch,
    },
    /// The batch does not follow the last one.
    #[error("the batch begins with event {given} where {expected} comes next")]
    Gap {
        /// Number of the next event.
        expected: u64,
        /// Number that was given.
        given: u64,
    },
    /// A row names a blob that is neither in the batch nor in the store.
    #[error("the batch refers to blob {0}, which is neither in it nor in the store")]
    MissingBlob(Digest),
    /// A write failed before.
    #[error("{} failed before and is closed; start the controller again", path.display())]
    Closed {
        /// The file.
        path: PathBuf,
    },
}

fn holder(pid: &Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

impl StoreError {
    /// Whether the store keeps working after it: it is the caller's error, and nothing was written.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Fenced { .. } | Self::Gap { .. } | Self::MissingBlob(_) | Self::Exists { .. })
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path: path.to_owned() },
            _ => Self::Io { path: path.to_owned(), source },
        }
    }

    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), what: what.into() }
    }

    pub(crate) fn redb(path: &Path, error: impl Into<redb::Error>) -> Self {
        match error.into() {
            redb::Error::Io(e) if e.kind() == io::ErrorKind::InvalidData => {
                Self::damaged(path, format!("it is no store of Ephor ({e})"))
            }
            redb::Error::Io(e) => Self::io(path, e),
            redb::Error::Corrupted(what) => Self::damaged(path, what),
            redb::Error::DatabaseAlreadyOpen => Self::Busy { path: path.to_owned(), pid: None },
            redb::Error::PreviousIo | redb::Error::DatabaseClosed => Self::Closed { path: path.to_owned() },
            redb::Error::UpgradeRequired(version) => {
                Self::damaged(path, format!("its file format {version} is not one that Ephor ever wrote"))
            }
            e @ (redb::Error::TableTypeMismatch { .. }
            | redb::Error::TableDoesNotExist(_)
            | redb::Error::TypeDefinitionChanged { .. }
            | redb::Error::TableIsMultimap(_)
            | redb::Error::TableIsNotMultimap(_)) => Self::damaged(path, e.to_string()),
            e => Self::Io { path: path.to_owned(), source: io::Error::other(e.to_string()) },
        }
    }
}

/// Runs what reads a file of unknown condition. redb says of itself that damage may make it panic: that is an answer
/// like others.
pub(crate) fn calmly<T>(path: &Path, read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    // What `read` borrowed is not used again after a panic: the caller gets an error instead of it.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(StoreError::damaged(path, "its pages make no sense")))
}
