//! Standard input for the tasks, read piece by piece by a thread of its own.

use super::files::{Files, Place};
use anyhow::Context;
use ephor_model::limits::STEP_DATA_BYTES;
use std::fs::File;
use std::io::{self, Read};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// What is read for the tasks.
pub struct Input {
    source: Option<Box<dyn Read + Send>>,
}

impl Input {
    /// Opens what is to be read.
    ///
    /// # Errors
    /// A file that cannot be opened.
    pub fn open(files: &Files) -> anyhow::Result<Self> {
        let source: Option<Box<dyn Read + Send>> = match &files.stdin {
            Place::Own(_) => Some(Box::new(io::stdin())),
            Place::Here(path) => {
                Some(Box::new(File::open(path).with_context(|| format!("Could not open stdin file {path}"))?))
            }
            Place::There(_) | Place::Nowhere => None,
        };
        Ok(Self { source })
    }

    /// Starts to read. The last piece is empty; none comes where nothing is served.
    pub fn start(self) -> Receiver<Vec<u8>> {
        let (pieces, waiting) = channel(1);
        if let Some(source) = self.source {
            // Without a thread the tasks' input is at its end.
            let _ = std::thread::Builder::new().name("input".into()).spawn(move || read(source, &pieces));
        }
        waiting
    }
}

fn read(mut source: Box<dyn Read + Send>, pieces: &Sender<Vec<u8>>) {
    let mut buffer = vec![0; STEP_DATA_BYTES];
    loop {
        let length = match source.read(&mut buffer) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            // What cannot be read is at its end.
            read => read.unwrap_or(0),
        };
        if pieces.blocking_send(buffer[..length].to_vec()).is_err() || length == 0 {
            return;
        }
    }
}
