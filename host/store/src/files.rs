//! The files of the data folder: made whole before they have their name, readable by their owner alone.

use crate::error::StoreError;
use redb::backends::FileBackend;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file of the data folder. Where it is not there, `make` makes it under another name first, so that a start
/// that is cut off leaves no half-made store.
pub(crate) fn open_or_make(
    folder: &Path,
    name: &str,
    make: impl FnOnce(FileBackend, &Path) -> Result<(), StoreError>,
) -> Result<FileBackend, StoreError> {
    let path = folder.join(name);
    let io = |e| StoreError::io(&path, e);
    if !path.try_exists().map_err(io)? {
        let mut unfinished = OsString::from(name);
        unfinished.push(".new");
        let unfinished = folder.join(unfinished);
        let file = new_file(OpenOptions::new().truncate(true).create(true), &unfinished)?;
        make(backend(file, &unfinished)?, &unfinished)?;
        std::fs::rename(&unfinished, &path).map_err(io)?;
        sync_folder(folder)?;
    }
    let file = OpenOptions::new().read(true).write(true).open(&path).map_err(io)?;
    backend(file, &path)
}

/// Opens a file to be written, with `how` to make it.
pub(crate) fn new_file(how: &mut OpenOptions, path: &Path) -> Result<File, StoreError> {
    how.read(true).write(true).mode(0o600).open(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => StoreError::Exists { path: path.to_owned() },
        _ => StoreError::io(path, e),
    })
}

/// A file as redb sees it.
pub(crate) fn backend(file: File, path: &Path) -> Result<FileBackend, StoreError> {
    FileBackend::new(file).map_err(|e| StoreError::redb(path, e))
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder).and_then(|f| f.sync_all()).map_err(|e| StoreError::io(folder, e))
}
