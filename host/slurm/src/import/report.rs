//! What became of each line of a site's files.

use super::error::short;
use std::fmt;

/// A line of a file. Lines that go on with a backslash are counted by their first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A file includes others by whatever name it likes.
        let file: String = self.file.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        write!(f, "{file}:{}", self.line)
    }
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It means the same in Ephor.
    Taken,
    /// It, or a part of it, comes near.
    Approximated,
    /// What `ephor apply` takes has no place for it.
    WithoutMeaning,
    /// Its keys are not known.
    Unknown,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 4] = [Self::Taken, Self::Approximated, Self::WithoutMeaning, Self::Unknown];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Approximated => "approximated",
            Self::WithoutMeaning => "without meaning here",
            Self::Unknown => "unknown",
        }
    }
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The line that it is about.
    pub place: Place,
    /// What the line says, cut where it is long.
    pub says: String,
    /// What became of it.
    pub verdict: Verdict,
    /// How, and why.
    pub notes: Vec<String>,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.verdict.words(), self.says)?;
        if !self.notes.is_empty() {
            write!(f, ": {}", self.notes.join("; "))?;
        }
        Ok(())
    }
}

/// The report: an entry for each line that is neither blank nor a comment, in the order in which they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Its entries.
    pub entries: Vec<Entry>,
}

impl Report {
    /// How many lines had that verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.entries.iter().filter(|entry| entry.verdict == verdict).count()
    }

    /// `12 lines: 8 taken, 2 approximated, 2 without meaning here, 0 unknown`.
    pub fn summary(&self) -> String {
        let counts: Vec<String> =
            Verdict::ALL.iter().map(|verdict| format!("{} {}", self.count(*verdict), verdict.words())).collect();
        format!("{} lines: {}", self.entries.len(), counts.join(", "))
    }
}

/// The entries, and the summary in the last line.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.iter().try_for_each(|entry| writeln!(f, "{entry}"))?;
        writeln!(f, "{}", self.summary())
    }
}

/// What is found out about a line while it is read.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    taken: bool,
    approximated: bool,
    without_meaning: bool,
    unknown: bool,
    /// Keys that share a note, in the order in which they came.
    notes: Vec<(Vec<String>, String)>,
}

impl Outcome {
    /// Something of the line means the same.
    pub fn take(&mut self) {
        self.taken = true;
    }

    /// As [`Outcome::take`], with a word on what it has become.
    pub fn take_as(&mut self, note: impl Into<String>) {
        self.taken = true;
        self.notes.insert(0, (vec![String::new()], note.into()));
    }

    /// The same comes about without the file.
    pub fn by_itself(&mut self, key: &str, note: impl Into<String>) {
        self.taken = true;
        self.note(key, note);
    }

    /// Something comes near.
    pub fn near(&mut self, key: &str, note: impl Into<String>) {
        self.approximated = true;
        self.note(key, note);
    }

    /// Something has no place.
    pub fn nothing(&mut self, key: &str, note: impl Into<String>) {
        self.without_meaning = true;
        self.note(key, note);
    }

    /// A key that nobody knows.
    pub fn unknown(&mut self, key: &str) {
        self.unknown = true;
        self.note(key, "no parameter of Slurm that is known here; look whether it is spelt right");
    }

    fn note(&mut self, key: &str, note: impl Into<String>) {
        let note = note.into();
        let key = short(key);
        match self.notes.iter_mut().find(|(_, known)| *known == note) {
            Some((keys, _)) if !keys.contains(&key) => keys.push(key),
            Some(_) => {}
            None => self.notes.push((vec![key], note)),
        }
    }

    fn verdict(&self) -> Verdict {
        match (self.taken, self.approximated, self.without_meaning, self.unknown) {
            (true, false, false, false) => Verdict::Taken,
            (true, ..) | (_, true, ..) => Verdict::Approximated,
            (_, _, true, _) => Verdict::WithoutMeaning,
            // A line that nobody looked at has no known key either.
            _ => Verdict::Unknown,
        }
    }

    /// The line of the report. A key stands before its note only where the line has others.
    pub fn entry(self, place: Place, says: String, keys: usize) -> Entry {
        let verdict = self.verdict();
        let named = |(of, note): (Vec<String>, String)| {
            let of: Vec<String> = of.into_iter().filter(|key| !key.is_empty()).collect();
            if of.is_empty() || keys < 2 { note } else { format!("{}: {note}", of.join(", ")) }
        };
        Entry { place, says, verdict, notes: self.notes.into_iter().map(named).collect() }
    }
}
