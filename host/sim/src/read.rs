//! Reads a trace file, unpacking it where its first bytes say that it is gzip.

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
    #[error("cannot read the trace '{}': {why}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// It begins like gzip and is not, or is cut off.
    #[error("the trace '{}' begins like a gzip file but cannot be unpacked: {why}", path.display())]
    Gzip {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: io::Error,
    },
    /// It is larger than [`TRACE_BYTES`].
    #[error("the trace '{}' has more than {TRACE_BYTES} bytes of text; cut it into parts", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
}

/// The text of a trace, unpacked.
///
/// # Errors
/// See [`ReadError`].
pub fn trace(path: &Path) -> Result<Vec<u8>, ReadError> {
    let io = |why| ReadError::Io { path: path.to_owned(), why };
    let file = File::open(path).map_err(io)?;
    let bytes = bounded(file, path, io)?;
    if !bytes.starts_with(&GZIP_MAGIC) {
        return Ok(bytes);
    }
    bounded(MultiGzDecoder::new(bytes.as_slice()), path, |why| ReadError::Gzip { path: path.to_owned(), why })
}

fn bounded(from: impl Read, path: &Path, fail: impl FnOnce(io::Error) -> ReadError) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    from.take(TRACE_BYTES + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > TRACE_BYTES {
        return Err(ReadError::TooLarge { path: path.to_owned() });
    }
    Ok(bytes)
}
