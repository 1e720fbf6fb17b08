//! From files to statements: a file and what it includes, in the order in which Slurm reads them.

use super::error::{Found, Wrong, short};
use super::pairs::{self, Pair};
use super::report::{Outcome, Place};
use super::text::{self, Line};
use ephor_model::limits;

/// A line with its pairs, and what becomes of it.
#[derive(Debug)]
pub(super) struct Statement {
    pub place: Place,
    /// What the report shows of it.
    pub says: String,
    pub pairs: Vec<Pair>,
    pub outcome: Outcome,
}

impl Statement {
    /// The value of a key of this line.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.pairs.iter().rfind(|pair| pair.is(key)).map(|pair| pair.value.as_str())
    }

    /// Whether the line is about an object whose name has that key.
    pub fn is_about(&self, key: &str) -> bool {
        self.pairs.first().is_some_and(|pair| pair.is(key))
    }
}

/// Reads files through the caller.
pub(super) struct Source<'a> {
    read: &'a mut dyn FnMut(&str) -> Result<Option<String>, String>,
    files: usize,
    /// Stands for `%c` in the names of files.
    cluster: String,
}

impl<'a> Source<'a> {
    pub fn new(read: &'a mut dyn FnMut(&str) -> Result<Option<String>, String>) -> Self {
        Self { read, files: 0, cluster: String::new() }
    }

    /// The statements of a file; `None`: it is not there.
    pub fn file(&mut self, name: &str, found: &mut Found) -> Option<Vec<Statement>> {
        let whole = Place { file: name.to_owned(), line: 1 };
        let text = match (self.read)(name) {
            Ok(text) => text?,
            Err(why) => {
                found.add(&whole, Wrong::Unreadable(short(&why)));
                return Some(Vec::new());
            }
        };
        self.files += 1;
        let mut out = Vec::new();
        self.statements(name, &text, 1, &mut out, found);
        Some(out)
    }

    fn statements(&mut self, name: &str, text: &str, depth: usize, out: &mut Vec<Statement>, found: &mut Found) {
        if text.len() > limits::IMPORT_FILE_BYTES {
            found.add(&Place { file: name.to_owned(), line: 1 }, Wrong::TooLarge);
            return;
        }
        for Line { number, text } in text::lines(text) {
            let place = Place { file: name.to_owned(), line: number };
            if let Some(file) = included(&text) {
                self.include(file, place, depth, out, found);
                continue;
            }
            match pairs::read(&text) {
                Ok(pairs) => {
                    if let Some(pair) = pairs.iter().rfind(|pair| pair.is("ClusterName")) {
                        self.cluster.clone_from(&pair.value);
                    }
                    out.push(Statement { place, says: short(&squeezed(&text)), pairs, outcome: Outcome::default() });
                }
                Err(wrong) => found.add(&place, wrong),
            }
        }
    }

    fn include(&mut self, file: &str, place: Place, depth: usize, out: &mut Vec<Statement>, found: &mut Found) {
        if file.is_empty() {
            return found.add(&place, Wrong::IncludesNothing);
        }
        let name = file.replace("%c", &self.cluster);
        if depth >= limits::IMPORT_INCLUDES_DEPTH {
            return found.add(&place, Wrong::TooDeep);
        }
        if self.files >= limits::IMPORT_FILES {
            return found.add(&place, Wrong::TooManyFiles);
        }
        self.files += 1;
        let text = match (self.read)(&name) {
            Ok(Some(text)) => text,
            Ok(None) => return found.add(&place, Wrong::Missing(short(&name))),
            Err(why) => return found.add(&place, Wrong::Unreadable(short(&why))),
        };
        let mut outcome = Outcome::default();
        outcome.take();
        out.push(Statement { place, says: short(&format!("Include {name}")), pairs: Vec::new(), outcome });
        self.statements(&name, &text, depth + 1, out, found);
    }
}

/// The file that a line includes.
fn included(line: &str) -> Option<&str> {
    let line = line.trim();
    let (word, file) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let file = file.trim();
    (word.eq_ignore_ascii_case("include") && !file.starts_with('=')).then_some(file)
}

/// One blank where there are several.
fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
