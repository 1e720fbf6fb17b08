//! One data folder, one controller: a lock file that says who holds it.

use crate::error::StoreError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Name of the lock file in the data folder.
const NAME: &str = "lock";

/// The lock, held until it is dropped; the kernel drops it with the process, so that none is ever stale.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the folder.
    pub(crate) fn take(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(NAME);
        let fail = |e| StoreError::io(&path, e);
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // Who holds it is for the message only; a holder that has not written yet stays unnamed.
                let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(StoreError::Busy { path: folder.to_owned(), pid });
            }
            Err(TryLockError::Error(e)) => return Err(fail(e)),
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(fail)?;
        writeln!(file, "{}", std::process::id()).map_err(fail)?;
        Ok(Self { _file: file })
    }
}
