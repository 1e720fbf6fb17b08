//! Reads traces and descriptions of clusters, unpacking it where the first bytes say that it is gzip.

use crate::limits::TRACE_BYTES;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Why a trace file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("cannot read the {what} '{}': {why}", path.display())]
    Io {
        /// What it was to be.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// It begins like gzip and is not, or is cut off.
    #[error("the {what} '{}' begins like a gzip file but cannot be unpacked: {why}", path.display())]
    Gzip {
        /// What it was to be.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: io::Error,
    },
    /// It is larger than [`TRACE_BYTES`].
    #[error("the {what} '{}' has more than {TRACE_BYTES} bytes of text; cut it into parts", path.display())]
    TooLarge {
        /// What it was to be.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
}

/// The text of a trace, unpacked.
///
/// # Errors
/// See [`ReadError`].
pub fn trace(path: &Path) -> Result<Vec<u8>, ReadError> {
    file(path, "trace")
}

/// The text of a file, unpacked; `what` it is, for errors.
///
/// # Errors
/// See [`ReadError`].
pub fn file(path: &Path, what: &'static str) -> Result<Vec<u8>, ReadError> {
    let io = |why| ReadError::Io { what, path: path.to_owned(), why };
    let file = File::open(path).map_err(io)?;
    let large = || ReadError::TooLarge { what, path: path.to_owned() };
    let bytes = bounded(file).map_err(io)?.ok_or_else(large)?;
    if !bytes.starts_with(&GZIP_MAGIC) {
        return Ok(bytes);
    }
    let gzip = |why| ReadError::Gzip { what, path: path.to_owned(), why };
    bounded(MultiGzDecoder::new(bytes.as_slice())).map_err(gzip)?.ok_or_else(large)
}

/// All of it; `None`: it is larger than [`TRACE_BYTES`].
fn bounded(from: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    from.take(TRACE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= TRACE_BYTES).then_some(bytes))
}
