//! Standard input, output and error of an attempt, opened as the user.

use crate::spool::Order;
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout};
use std::fs::{File, OpenOptions};
use std::io;

/// Opens the streams and puts them in their places. Paths are relative to the working folder, where we are.
///
/// # Errors
/// The file and why it cannot be opened.
pub fn open(order: &Order) -> Result<(), String> {
    let input = order.stdin.as_deref().unwrap_or("/dev/null");
    let input = File::open(input).map_err(|e| describe("input", input, order, &e))?;
    let output = create(&order.stdout, order).map_err(|e| describe("output", &order.stdout, order, &e))?;
    // One file under two names would be emptied twice, and the two would overwrite each other.
    let errors = match order.stderr.as_deref().filter(|path| *path != order.stdout) {
        Some(path) => Some(create(path, order).map_err(|e| describe("error", path, order, &e))?),
        None => None,
    };
    dup2_stdin(&input)
        .and_then(|()| dup2_stdout(&output))
        .and_then(|()| dup2_stderr(errors.as_ref().unwrap_or(&output)))
        .map_err(|e| format!("cannot put the standard streams in place: {}", e.desc()))
}

fn create(path: &str, order: &Order) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true);
    if order.append {
        options.append(true)
    } else {
        options.write(true).truncate(true)
    };
    options.open(path)
}

fn describe(which: &str, path: &str, order: &Order, error: &io::Error) -> String {
    format!("cannot open the {which} file {path} from {}: {error}", order.work_dir)
}
