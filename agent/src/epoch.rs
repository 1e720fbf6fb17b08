//! The highest controller epoch that this agent obeyed, kept on disk, so that no older controller is ever obeyed.

use crate::files::{self, Keep};
use std::path::PathBuf;

/// The highest epoch seen, and its file.
#[derive(Debug)]
pub struct EpochKeeper {
    path: PathBuf,
    highest: u64,
}

/// Why a message must not be obeyed.
#[derive(Debug, thiserror::Error)]
pub enum EpochError {
    /// It comes from a controller that another one has replaced.
    #[error(
        "refused a message of epoch {got}: epoch {highest} was obeyed before, so that controller is not the current one; \
         after restoring an older copy of its data, start it with --recover"
    )]
    Stale {
        /// Epoch of the message.
        got: u64,
        /// Highest epoch obeyed.
        highest: u64,
    },
    /// A higher one could not be kept.
    #[error("cannot keep epoch {got} in {path}: {source}; nothing of that epoch is obeyed until this is mended")]
    Unkept {
        /// Epoch of the message.
        got: u64,
        /// Where it should have gone.
        path: PathBuf,
        /// Why it did not.
        source: std::io::Error,
    },
}

impl EpochKeeper {
    /// Reads the epoch kept in the data folder; 0 where there is none.
    ///
    /// # Errors
    /// A file that cannot be read or holds no number: obeying anybody then would break law 8.
    pub fn open(data: &std::path::Path) -> anyhow::Result<Self> {
        let path = data.join("epoch");
        let highest = match files::read(&path, 32)? {
            None => 0,
            Some(bytes) => std::str::from_utf8(&bytes).ok().and_then(|t| t.trim().parse().ok()).ok_or_else(|| {
                anyhow::anyhow!(
                    "{} holds no number; write the controller's epoch (`ephor status`) into it",
                    path.display()
                )
            })?,
        };
        Ok(Self { path, highest })
    }

    /// The highest epoch obeyed.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Whether a message of this epoch may be obeyed; a higher one is on disk when this returns.
    ///
    /// # Errors
    /// A lower epoch, or a higher one that could not be kept.
    pub fn admit(&mut self, got: u64) -> Result<(), EpochError> {
        if got < self.highest {
            return Err(EpochError::Stale { got, highest: self.highest });
        }
        if got > self.highest {
            files::replace(&self.path, format!("{got}\n").as_bytes(), 0o600, Keep::Always)
                .map_err(|source| EpochError::Unkept { got, path: self.path.clone(), source })?;
            self.highest = got;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_epoch_is_refused_even_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let mut keeper = EpochKeeper::open(folder.path()).unwrap();
        keeper.admit(7).unwrap();
        keeper.admit(7).unwrap();
        let mut again = EpochKeeper::open(folder.path()).unwrap();
        assert_eq!(again.highest(), 7);
        assert!(matches!(again.admit(6), Err(EpochError::Stale { got: 6, highest: 7 })));
        std::fs::write(folder.path().join("epoch"), "x").unwrap();
        assert!(EpochKeeper::open(folder.path()).is_err());
    }
}
