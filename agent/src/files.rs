//! Files that are written whole or not at all, and read up to a bound.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Whether a file must survive a power cut, or only a crash of the process that writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Good until the machine stops: no wait for the disk.
    UntilReboot,
    /// On the disk when the call returns.
    Always,
}

/// Puts `bytes` in place of what `path` held: a reader sees the old or the new, never a part.
///
/// # Errors
/// What the file system says; then `path` is as it was.
pub fn replace(path: &Path, bytes: &[u8], mode: u32, keep: Keep) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&fresh)?;
    file.write_all(bytes)?;
    if keep == Keep::Always {
        file.sync_all()?;
    }
    drop(file);
    std::fs::rename(&fresh, path)?;
    match (keep, path.parent()) {
        (Keep::Always, Some(folder)) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Reads a file of at most `limit` bytes; `None` where there is none.
///
/// # Errors
/// What the file system says, or that the file is too long.
pub fn read(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let size = file.metadata()?.len().min(limit);
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {limit} bytes")));
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_read_up_to_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("epoch");
        assert_eq!(read(&path, 10).unwrap(), None);
        replace(&path, b"1", 0o600, Keep::Always).unwrap();
        replace(&path, b"22", 0o600, Keep::UntilReboot).unwrap();
        assert_eq!(read(&path, 2).unwrap().unwrap(), b"22");
        assert_eq!(read(&path, 1).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}
