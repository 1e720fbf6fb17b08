//! A line of an input file that cannot be used.

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct BadLine {
    /// Which, from 1.
    pub line: u32,
    /// What is wrong with it, and what would work.
    pub what: String,
}

impl BadLine {
    /// An error at that line.
    pub fn new(line: u32, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}
