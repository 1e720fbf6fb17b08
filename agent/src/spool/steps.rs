//! The entries of parts of steps, in a folder of their own beside the spool of attempts.
//!
//! An entry is there while the part runs: it is what an agent that was restarted finds the part by. Beside the entries
//! lies one file for each attempt, with the highest number of a step that it had here, so that no number is given twice
//! when the controller has forgotten which it gave.

use super::{Entry, SpoolError, StepOrder, make_folder, parse_key};
use crate::files::{self, Keep};
use ephor_model::{AttemptKey, StepKey};
use std::path::{Path, PathBuf};

/// Begins the name of an entry that is not whole yet.
const UNFINISHED: &str = ".new-";
/// Bytes of the file with the highest number.
const NUMBER_BYTES: u64 = 32;

/// The parts of steps that one agent holds. Copies mean the same ones.
#[derive(Clone, Debug)]
pub struct Steps {
    folder: PathBuf,
}

impl Steps {
    /// Opens the folder in the agent's data folder. Nothing of an earlier boot is kept: `same_boot` says whether this is
    /// still the one in which it was written.
    ///
    /// # Errors
    /// What the file system says.
    pub fn open(data: &Path, same_boot: bool) -> Result<Self, SpoolError> {
        let steps = Self { folder: data.join("steps") };
        make_folder(&steps.folder).map_err(|e| SpoolError::io("make", &steps.folder, e))?;
        for name in steps.names()? {
            let known = parse_step(&name).is_some() || parse_key(&name).is_some();
            if !same_boot || !known {
                let path = steps.folder.join(name);
                let gone = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
                gone.map_err(|e| SpoolError::io("remove", &path, e))?;
            }
        }
        Ok(steps)
    }

    fn names(&self) -> Result<Vec<String>, SpoolError> {
        let fail = |e| SpoolError::io("read", &self.folder, e);
        let entries = std::fs::read_dir(&self.folder).map_err(fail)?.collect::<Result<Vec<_>, _>>().map_err(fail)?;
        Ok(entries.into_iter().filter_map(|e| e.file_name().into_string().ok()).collect())
    }

    /// The entry of a part, whether or not it is there.
    pub fn entry(&self, key: StepKey) -> Entry {
        Entry::at(self.folder.join(key.to_string()))
    }

    /// The parts that have an entry, in order.
    ///
    /// # Errors
    /// What the file system says.
    pub fn parts(&self) -> Result<Vec<StepKey>, SpoolError> {
        let mut keys: Vec<_> = self.names()?.iter().filter_map(|name| parse_step(name)).collect();
        keys.sort();
        Ok(keys)
    }

    /// Of each attempt that had steps here the highest number of one.
    ///
    /// # Errors
    /// What the file system says.
    pub fn last(&self) -> Result<Vec<StepKey>, SpoolError> {
        let mut keys = Vec::new();
        for attempt in self.names()?.iter().filter_map(|name| parse_key(name)) {
            let path = self.number_file(attempt);
            let text = files::read(&path, NUMBER_BYTES).map_err(|e| SpoolError::io("read", &path, e))?;
            // One that does not read says nothing; the entries of steps that run say enough.
            let step = text.and_then(|bytes| std::str::from_utf8(&bytes).ok()?.trim().parse().ok());
            keys.extend(step.map(|step| StepKey { attempt, step }));
        }
        Ok(keys)
    }

    /// Makes the entry of a part, whole; `false`: there is one already, or the step is one of the past.
    ///
    /// # Errors
    /// What the file system says; then there is no entry.
    pub fn create(&self, key: StepKey, order: &StepOrder) -> Result<bool, SpoolError> {
        let number = self.number_file(key.attempt);
        let before = files::read(&number, NUMBER_BYTES).map_err(|e| SpoolError::io("read", &number, e))?;
        let before: Option<u32> = before.and_then(|bytes| std::str::from_utf8(&bytes).ok()?.trim().parse().ok());
        if before.is_none_or(|before| before < key.step) {
            files::replace(&number, format!("{}\n", key.step).as_bytes(), 0o600, Keep::UntilReboot)
                .map_err(|e| SpoolError::io("write", &number, e))?;
        }
        let entry = self.entry(key);
        if before == Some(key.step) || entry.folder().exists() {
            return Ok(false);
        }
        let path = self.folder.join(format!("{UNFINISHED}{key}"));
        let made = make_folder(&path)
            .and_then(|()| Entry::at(path.clone()).set_order(order))
            .and_then(|()| std::fs::rename(&path, entry.folder()));
        made.map(|()| true).map_err(|e| {
            // A half-made entry is also removed at the next start; nothing hangs on it.
            let _ = std::fs::remove_dir_all(&path);
            SpoolError::io("make the entry of the step", &path, e)
        })
    }

    /// Takes the entry of a part away; one that is not there is fine.
    ///
    /// # Errors
    /// What the file system says.
    pub fn remove(&self, key: StepKey) -> Result<(), SpoolError> {
        let entry = self.entry(key);
        gone(std::fs::remove_dir_all(entry.folder())).map_err(|e| SpoolError::io("remove", entry.folder(), e))
    }

    /// Whether the attempt had steps here, and is not over.
    pub fn knows(&self, attempt: AttemptKey) -> bool {
        self.number_file(attempt).exists()
    }

    /// The attempt is over: no step of it will come.
    ///
    /// # Errors
    /// What the file system says.
    pub fn forget(&self, attempt: AttemptKey) -> Result<(), SpoolError> {
        let path = self.number_file(attempt);
        gone(std::fs::remove_file(&path)).map_err(|e| SpoolError::io("remove", &path, e))
    }

    /// Where the highest number of an attempt's steps is.
    fn number_file(&self, attempt: AttemptKey) -> PathBuf {
        self.folder.join(attempt.to_string())
    }
}

fn gone(done: std::io::Result<()>) -> std::io::Result<()> {
    match done {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn parse_step(name: &str) -> Option<StepKey> {
    let (attempt, step) = name.rsplit_once('.')?;
    Some(StepKey { attempt: parse_key(attempt)?, step: step.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::Confinement;
    use ephor_model::JobId;

    fn order() -> StepOrder {
        StepOrder {
            user: None,
            argv: vec!["true".into()],
            environment: Vec::new(),
            work_dir: "/".into(),
            umask: 0o022,
            append: false,
            unbuffered: false,
            open_files: 1024,
            confinement: Confinement::Walk,
            attempt_group: Confinement::Walk,
            tasks: Vec::new(),
            node: "n1".into(),
            addresses: Vec::new(),
            certificate: String::new(),
            key: String::new(),
            cpu_milli: 1000,
            devices: Vec::new(),
        }
    }

    #[test]
    fn a_step_is_made_once_and_its_number_outlives_it() {
        let folder = tempfile::tempdir().unwrap();
        let steps = Steps::open(folder.path(), true).unwrap();
        let attempt = AttemptKey { job: JobId(12), number: 1 };
        let other = AttemptKey { job: JobId(12), number: 2 };
        let key = |step| StepKey { attempt, step };
        assert!(steps.create(key(0), &order()).unwrap());
        assert!(!steps.create(key(0), &order()).unwrap());
        assert!(steps.create(key(7), &order()).unwrap());
        assert!(steps.create(key(3), &order()).unwrap(), "messages of two steps may overtake each other");
        assert!(steps.create(StepKey { attempt: other, step: 1 }, &order()).unwrap());
        assert_eq!(steps.entry(key(7)).step_order().unwrap(), order());
        steps.remove(key(7)).unwrap();
        assert!(!steps.create(key(7), &order()).unwrap(), "it was");

        let again = Steps::open(folder.path(), true).unwrap();
        assert_eq!(again.parts().unwrap(), [key(0), key(3), StepKey { attempt: other, step: 1 }]);
        let mut last = again.last().unwrap();
        last.sort();
        assert_eq!(last, [key(7), StepKey { attempt: other, step: 1 }]);
        again.forget(attempt).unwrap();
        assert_eq!(again.last().unwrap(), [StepKey { attempt: other, step: 1 }]);
        assert!(Steps::open(folder.path(), false).unwrap().names().unwrap().is_empty());
    }
}
