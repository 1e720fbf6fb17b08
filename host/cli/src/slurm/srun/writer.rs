//! Output of tasks, written where it belongs by a thread of its own, so that a reader who is slow holds up the tasks alone.

use super::files::{Files, Place};
use anyhow::Context;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::thread::JoinHandle;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Pieces of output that wait to be written; then tasks wait.
const WAITING: usize = 16;

/// A piece of output.
pub enum Piece {
    /// Of standard error, or else output, of a task.
    Said(bool, Vec<u8>),
    /// No more comes.
    End,
}

/// The way to the thread.
pub struct Writer {
    /// Takes pieces of output.
    pub pieces: Sender<Piece>,
    thread: JoinHandle<()>,
}

impl Writer {
    /// Opens the files and starts the thread.
    ///
    /// # Errors
    /// A file that cannot be opened.
    pub fn start(files: &Files) -> anyhow::Result<Self> {
        let mut targets: [Box<dyn Write + Send>; 2] = [Box::new(io::stdout()), Box::new(io::stderr())];
        let mut opened: Option<(&str, File)> = None;
        for (target, place) in targets.iter_mut().zip([&files.stdout, &files.stderr]) {
            let Place::Here(path) = place else { continue };
            let file = match &opened {
                // One file under two names would be emptied twice.
                Some((other, file)) if other == path => file.try_clone()?,
                _ => open(path, files.append).with_context(|| format!("Could not open stdout file {path}"))?,
            };
            opened = Some((path, file.try_clone()?));
            *target = Box::new(file);
        }
        let (pieces, waiting) = channel(WAITING);
        let thread = std::thread::Builder::new().name("writer".into()).spawn(move || write(waiting, targets))?;
        Ok(Self { pieces, thread })
    }

    /// Waits until everything is written that connections which are over gave it.
    pub async fn drain(self) {
        // Fails when it ended before.
        let _ = self.pieces.send(Piece::End).await;
        // One that panicked has written what it could.
        let _ = tokio::task::spawn_blocking(move || self.thread.join()).await;
    }
}

fn open(path: &str, append: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true);
    match append {
        true => options.append(true),
        false => options.write(true).truncate(true),
    };
    options.open(path)
}

fn write(mut waiting: Receiver<Piece>, targets: [Box<dyn Write + Send>; 2]) {
    let [output, errors] = targets;
    let mut open = [Some(output), Some(errors)];
    while let Some(Piece::Said(is_error, bytes)) = waiting.blocking_recv() {
        let slot = &mut open[usize::from(is_error)];
        let done = slot.as_mut().map(|target| target.write_all(&bytes).and_then(|()| target.flush()));
        // Whoever read it has seen enough, or the disk is full: the tasks go on.
        if done.is_some_and(|done| done.is_err()) {
            *slot = None;
        }
    }
}
