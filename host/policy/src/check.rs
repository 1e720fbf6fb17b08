//! Checks on what a policy hands over: everything is hostile until it has passed here (law 4).

use crate::fault::Failure;
use ephor_model::limits;

/// A value out of range: the call is discarded.
pub fn bad(text: impl Into<String>) -> Failure {
    Failure::Value(text.into())
}

/// A text for people: at most [`limits::TEXT_BYTES`]; control characters, which could move a terminal's cursor or fake
/// a log line, become spaces.
pub fn text(what: &str, text: String) -> Result<String, Failure> {
    if text.len() > limits::TEXT_BYTES {
        return Err(bad(format!("{what} has {} bytes; at most {} are taken", text.len(), limits::TEXT_BYTES)));
    }
    Ok(printable(text))
}

/// A name: not empty, at most [`limits::NAME_BYTES`], no control characters.
pub fn name(what: &str, text: String) -> Result<String, Failure> {
    match name_complaint(&text) {
        Some(complaint) => Err(bad(format!("{what} {complaint}"))),
        None => Ok(text),
    }
}

/// What is wrong with a name, to stand behind what it names.
pub fn name_complaint(text: &str) -> Option<String> {
    if text.is_empty() {
        Some("is empty".to_owned())
    } else if text.len() > limits::NAME_BYTES {
        Some(format!("has {} bytes; at most {} are taken", text.len(), limits::NAME_BYTES))
    } else if text.chars().any(char::is_control) {
        Some("has a control character in it".to_owned())
    } else {
        None
    }
}

/// A list of the one length that makes sense.
pub fn length(what: &str, found: usize, wanted: usize) -> Result<(), Failure> {
    if found == wanted {
        return Ok(());
    }
    Err(bad(format!("it returned {found} {what} for {wanted} rows")))
}

/// A list of at most so many entries.
pub fn at_most(what: &str, found: usize, most: usize) -> Result<(), Failure> {
    if found <= most {
        return Ok(());
    }
    Err(bad(format!("it returned {found} {what}; at most {most} are taken")))
}

/// The text with control characters, line ends and tabs apart, made spaces.
pub fn printable(text: String) -> String {
    if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { ' ' } else { c }).collect()
    } else {
        text
    }
}
