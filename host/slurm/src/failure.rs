//! Why a command ends without doing what it was asked: its lines on standard error and its exit code.

/// Lines for standard error, as Slurm's clients match them, and the exit code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines.join(" | "))]
pub struct Failure {
    /// The lines, each with the name of the command before it.
    pub lines: Vec<String>,
    /// The exit code.
    pub code: u8,
}

impl Failure {
    /// `PROGRAM: error: TEXT`.
    pub fn error(program: &str, text: impl std::fmt::Display, code: u8) -> Self {
        Self { lines: vec![format!("{program}: error: {text}")], code }
    }

    /// `PROGRAM: TEXT`, and where help is.
    pub fn usage(program: &str, text: impl std::fmt::Display, code: u8) -> Self {
        let lines = vec![format!("{program}: {text}"), format!("Try \"{program} --help\" for more information")];
        Self { lines, code }
    }

    /// `PROGRAM: fatal: TEXT`, exit code 1.
    pub fn fatal(program: &str, text: impl std::fmt::Display) -> Self {
        Self { lines: vec![format!("{program}: fatal: {text}")], code: 1 }
    }

    /// The same with a line before it.
    #[must_use]
    pub fn after(mut self, line: String) -> Self {
        self.lines.insert(0, line);
        self
    }
}
