//! What is wrong with a script or an option, and where it stands.

use std::fmt;

/// Where an option was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In that line of the script, from 1.
    Line(usize),
    /// Outside the script.
    CommandLine,
}

/// Why script and options are no job. Its text says what would be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SubmitError {
    /// Where it stands, where that is one place.
    pub place: Option<Place>,
    /// What is wrong and what would work.
    pub message: String,
}

impl SubmitError {
    /// An error of the whole job.
    pub fn new(message: impl Into<String>) -> Self {
        Self { place: None, message: message.into() }
    }

    /// An error at one place.
    pub fn at(place: Place, message: impl Into<String>) -> Self {
        Self { place: Some(place), message: message.into() }
    }
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Place::Line(n)) = self.place {
            write!(f, "line {n}: ")?;
        }
        f.write_str(&self.message)
    }
}
