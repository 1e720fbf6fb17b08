//! The signal that a job gets some time before its time limit, and the names of signals.

use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A signal some time before the time limit, so that a job can write down how far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WarningSignal {
    /// Its number, 1 to 31.
    pub number: i32,
    /// How long before the limit, in whole seconds: at most [`WarningSignal::LONGEST`]. A job that has not so long gets it
    /// at once.
    pub before: Span,
    /// To the script's own shell alone. Otherwise to all other processes of the job, or to all where there is no script.
    pub to_script: bool,
}

/// A text that is no warning signal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSignal {
    /// No signal has that name or number.
    #[error("'{0}' is no signal; write a name such as USR1, or a number from 1 to 31")]
    Signal(String),
    /// The time before the limit.
    #[error("'{0}' is no time before the limit; write seconds, 0 to 65535, as in USR1@600")]
    Before(String),
    /// Whom it is for.
    #[error(
        "'{0}:' is nobody whom a signal could be for; write B: for the script alone, or nothing for the rest of the job"
    )]
    Whom(String),
}

/// Signals of Linux by number; those that processes cannot use to talk to each other included.
const NAMES: [(i32, &str); 32] = [
    (1, "HUP"),
    (2, "INT"),
    (3, "QUIT"),
    (4, "ILL"),
    (5, "TRAP"),
    (6, "ABRT"),
    (7, "BUS"),
    (8, "FPE"),
    (9, "KILL"),
    (10, "USR1"),
    (11, "SEGV"),
    (12, "USR2"),
    (13, "PIPE"),
    (14, "ALRM"),
    (15, "TERM"),
    (16, "STKFLT"),
    (17, "CHLD"),
    (18, "CONT"),
    (19, "STOP"),
    (20, "TSTP"),
    (21, "TTIN"),
    (22, "TTOU"),
    (23, "URG"),
    (24, "XCPU"),
    (25, "XFSZ"),
    (26, "VTALRM"),
    (27, "PROF"),
    (28, "WINCH"),
    (29, "IO"),
    (30, "PWR"),
    (31, "SYS"),
    (29, "POLL"),
];

/// Which processes of an attempt get a signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignalTo {
    /// Every one but the script's own shell; all where there is no script.
    #[default]
    Others,
    /// The script's own shell, or the program where there is no script.
    Script,
    /// Every one.
    All,
}

impl WarningSignal {
    /// Longest time before the limit.
    pub const LONGEST: Span = Span::seconds(65_535);
    /// The time before the limit where none is said.
    const USUAL: Span = Span::seconds(60);

    /// Reads `[B:]SIGNAL[@SECONDS]`; the signal by name, with or without `SIG`, or by number.
    ///
    /// # Errors
    /// See [`BadSignal`].
    pub fn parse(text: &str) -> Result<Self, BadSignal> {
        let named = text.split_once(':').filter(|(whom, _)| !whom.contains('@'));
        let (whom, rest) = named.map_or((None, text), |(whom, rest)| (Some(whom), rest));
        let to_script = match whom {
            None => false,
            Some(whom) if whom.eq_ignore_ascii_case("B") => true,
            Some(whom) => return Err(BadSignal::Whom(whom.to_owned())),
        };
        let (name, before) = rest.split_once('@').map_or((rest, None), |(name, before)| (name, Some(before)));
        let before = match before {
            None => Self::USUAL,
            Some(text) => {
                let seconds = text.parse::<u16>().map_err(|_| BadSignal::Before(text.to_owned()))?;
                Span::seconds(i64::from(seconds))
            }
        };
        let number = number(name).ok_or_else(|| BadSignal::Signal(name.to_owned()))?;
        Ok(Self { number, before, to_script })
    }

    /// Whether number and time are within their bounds.
    pub fn is_sound(&self) -> bool {
        (1..=31).contains(&self.number) && (0..=Self::LONGEST.0).contains(&self.before.0) && self.before.0 % 1_000 == 0
    }
}

/// The number of a signal by its name, with or without `SIG`, or of a number from 1 to 31; `None`: it is no signal.
pub fn number(name: &str) -> Option<i32> {
    if let Ok(number) = name.parse::<i32>() {
        return Some(number).filter(|n| (1..=31).contains(n));
    }
    let upper = name.to_ascii_uppercase();
    let plain = upper.strip_prefix("SIG").unwrap_or(&upper);
    NAMES.iter().find(|(_, known)| *known == plain).map(|(number, _)| *number)
}

impl fmt::Display for WarningSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whom = if self.to_script { "B:" } else { "" };
        let name = NAMES.iter().find(|(number, _)| *number == self.number).map_or("?", |(_, name)| name);
        write!(f, "{whom}{name}@{}", self.before.0 / 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_writing_one() {
        for (text, shown) in [
            ("USR2@90", "USR2@90"),
            ("B:USR1@600", "B:USR1@600"),
            ("b:usr1", "B:USR1@60"),
            ("1@360", "HUP@360"),
            ("SIGUSR1@0", "USR1@0"),
            ("poll", "IO@60"),
        ] {
            let signal = WarningSignal::parse(text).unwrap();
            assert_eq!(signal.to_string(), shown);
            assert_eq!(WarningSignal::parse(shown), Ok(signal));
            assert!(signal.is_sound());
        }
    }

    #[test]
    fn what_is_none_is_told() {
        for (text, part) in [
            ("", "'' is no signal"),
            ("FOO", "'FOO' is no signal"),
            ("0", "'0' is no signal"),
            ("34", "'34' is no signal"),
            ("USR1@", "'' is no time"),
            ("USR1@65536", "'65536' is no time"),
            ("USR1@1:30", "'1:30' is no time"),
            ("R:USR1", "'R:' is nobody"),
        ] {
            assert!(WarningSignal::parse(text).unwrap_err().to_string().contains(part), "{text}");
        }
    }
}
