//! What is wrong in a site's files, and where.

use super::report::Place;
use ephor_model::limits::{self, APPLY_OBJECTS};

/// Why nothing was made of a site's files: every mistake that was found, in the order of the files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Mistakes(pub Vec<Mistake>);

/// One mistake with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {wrong}")]
pub struct Mistake {
    /// Where it stands.
    pub place: Place,
    /// What it is.
    pub wrong: Wrong,
}

/// What can be wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// A file that is named is not there.
    #[error("there is no file {0:?}; relative names are looked up beside slurm.conf")]
    Missing(String),
    /// A file that is there and cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// A file of too much text.
    #[error("has more than {} MiB of text, and so much is not read", limits::IMPORT_FILE_BYTES >> 20)]
    TooLarge,
    /// Files that include each other without an end.
    #[error("files include each other more than {} deep; does one include itself?", limits::IMPORT_INCLUDES_DEPTH)]
    TooDeep,
    /// Too many files.
    #[error("more than {} files are included", limits::IMPORT_FILES)]
    TooManyFiles,
    /// Lists of nodes that are too long together.
    #[error("the lists of nodes up to here are more than {} names together", limits::IMPORT_NAMES)]
    TooManyNames,
    /// More than one file for `ephor apply` can have.
    #[error("there are {0} queues, nodes and licences, and `ephor apply` takes {most} at once", most = APPLY_OBJECTS)]
    TooManyObjects(usize),
    /// Something that is not `KEY=VALUE`.
    #[error("'{0}' is not KEY=VALUE; values with blanks stand in quotation marks")]
    NotAPair(String),
    /// A line of too many of these.
    #[error("has more than {} KEY=VALUE on a line", limits::IMPORT_PAIRS)]
    TooManyPairs,
    /// A key without a value.
    #[error("{0} has no value; write {0}=VALUE, or take the key out")]
    NoValue(String),
    /// A value that begins with a quotation mark and does not end with one.
    #[error("the value of {0} begins with a quotation mark and does not end with one")]
    OpenQuote(String),
    /// A line that names a file to include and none.
    #[error("Include names no file; write Include FILE")]
    IncludesNothing,
    /// A value that makes no sense for its key.
    #[error("{key}={value}: {why}")]
    Value {
        /// The key as it was written.
        key: String,
        /// Its value.
        value: String,
        /// What would work.
        why: String,
    },
    /// A name that Ephor does not take.
    #[error(
        "'{name}' cannot name a {kind} of Ephor: use letters, digits and . _ - + @, up to {} bytes",
        limits::NAME_BYTES
    )]
    Name {
        /// What is named.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A name that stands twice.
    #[error("the {kind} {name} stands on {first} already; take one of the two out")]
    Twice {
        /// What is named.
        kind: &'static str,
        /// The name.
        name: String,
        /// Where it stood first.
        first: Place,
    },
    /// A list that names nodes that are not there.
    #[error("{key} names {names}: no NodeName or NodeSet line says what that is")]
    UnknownNodes {
        /// The key of the list.
        key: String,
        /// The names, folded.
        names: String,
    },
    /// A feature of a node that is also the one by which a queue finds its nodes.
    #[error("a node has the feature {0} already, by which the queue would find its nodes; rename the feature")]
    Clash(String),
    /// A switch that another names and nobody describes.
    #[error("names the switch {0}, which no SwitchName line describes")]
    UnknownSwitch(String),
    /// Switches that lie below each other.
    #[error("the switch {0} lies below itself")]
    SwitchCycle(String),
}

/// Mistakes as they are found, up to as many as anybody reads.
#[derive(Debug, Default)]
pub(super) struct Found(Vec<Mistake>);

impl Found {
    pub fn add(&mut self, place: &Place, wrong: Wrong) {
        if self.0.len() < limits::IMPORT_MISTAKES {
            self.0.push(Mistake { place: place.clone(), wrong });
        }
    }

    /// A value that makes no sense for its key.
    pub fn value(&mut self, place: &Place, key: &str, value: &str, why: impl Into<String>) {
        let wrong = Wrong::Value { key: key.to_owned(), value: short(value), why: why.into() };
        self.add(place, wrong);
    }

    pub fn none(&self) -> bool {
        self.0.is_empty()
    }

    /// What was found, file by file and line by line.
    pub fn into_mistakes(mut self) -> Mistakes {
        let mut files: Vec<String> = Vec::new();
        for mistake in &self.0 {
            if !files.contains(&mistake.place.file) {
                files.push(mistake.place.file.clone());
            }
        }
        self.0.sort_by_key(|m| (files.iter().position(|file| *file == m.place.file), m.place.line));
        Mistakes(self.0)
    }
}

/// A text of a file for people: without control characters, cut where it is long.
pub(super) fn short(text: &str) -> String {
    const MOST: usize = 80;
    let mut out: String = text.chars().take(MOST).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(MOST).is_some() {
        out.push_str("...");
    }
    out
}
