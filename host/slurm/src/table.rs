//! What every table of options holds, and reading a command line by one.

use crate::failure::Failure;
use crate::getopt::{Operands, Reader};

/// Whether an option takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// It stands alone.
    Nothing,
    /// It must have a value, called so in the help.
    Value(&'static str),
    /// It may have one, only attached: `--option=value`, `-ovalue`.
    Maybe(&'static str),
}

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It means what it means in Slurm.
    Works,
    /// It works, but for what is said.
    Differs(&'static str),
    /// It is taken, with a warning that it has no effect and why that does no harm.
    Ignored(&'static str),
    /// It is taken and has no effect, as it would have none in Slurm on such a cluster.
    Void(&'static str),
    /// It is an error, which says what comes nearest.
    Refused(&'static str),
}

impl Fate {
    /// The two columns of the table in the documents.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Works => ("works", ""),
            Self::Differs(how) => ("differs", how),
            Self::Ignored(why) => ("ignored, with a warning", why),
            Self::Void(why) => ("accepted, without effect", why),
            Self::Refused(near) => ("not there", near),
        }
    }
}

/// One name of an option. Several names of one option share the key.
#[derive(Clone, Copy, Debug)]
pub struct OptionDef<K: 'static> {
    /// Which option.
    pub key: K,
    /// Its name after `--`.
    pub long: &'static str,
    /// Its name after `-`.
    pub short: Option<char>,
    /// Its value.
    pub takes: Takes,
    /// The variable of the environment that gives its default.
    pub variable: Option<&'static str>,
    /// What becomes of it.
    pub fate: Fate,
}

impl<K> OptionDef<K> {
    /// An option of that key and name.
    pub const fn new(key: K, long: &'static str, short: Option<char>, takes: Takes, fate: Fate) -> Self {
        Self { key, long, short, takes, variable: None, fate }
    }

    /// How it is written: `-J, --job-name=NAME`.
    pub fn usage(&self) -> String {
        let short = self.short.map(|c| format!("-{c}, ")).unwrap_or_default();
        let value = match self.takes {
            Takes::Nothing => String::new(),
            Takes::Value(name) => format!("={name}"),
            Takes::Maybe(name) => format!("[={name}]"),
        };
        format!("{short}--{}{value}", self.long)
    }
}

/// What an option of a table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says<K> {
    /// Something that the command heeds.
    Key(K),
    /// Nothing: it has no effect, or is refused. Its name keeps it apart from others.
    Nothing(&'static str),
}

/// A row of a table of [`Says`]: an option that the command heeds.
pub const fn def<K: Copy>(
    key: K,
    long: &'static str,
    short: Option<char>,
    takes: Takes,
    fate: Fate,
) -> OptionDef<Says<K>> {
    OptionDef::new(Says::Key(key), long, short, takes, fate)
}

/// A row of a table of [`Says`]: an option without effect, or one that is refused.
pub const fn other<K: Copy>(long: &'static str, short: Option<char>, takes: Takes, fate: Fate) -> OptionDef<Says<K>> {
    OptionDef::new(Says::Nothing(long), long, short, takes, fate)
}

/// A command line: the options that are heeded with their values, and the operands.
pub type Line<K> = (Vec<(K, String)>, Vec<String>);

/// Reads the words after a command's name by its table, the variables of its options before them.
///
/// # Errors
/// What is no option, in the words of `getopt_long`, and options that are refused, with what comes nearest.
pub fn read<K: Copy + PartialEq>(
    program: &'static str,
    table: &'static [OptionDef<Says<K>>],
    words: &[String],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Line<K>, Failure> {
    let reader = Reader { program, table, operands: Operands::Permute, usage_code: 1 };
    let (given, operands) = reader.read(words)?;
    let defaults = table.iter().filter_map(|def| Some((def.long, Some(def.variable.and_then(&variable)?))));
    let mut heeded = Vec::new();
    for (long, value) in defaults.chain(given.into_iter().map(|given| (given.long, given.value))) {
        match table.iter().find(|def| def.long == long) {
            Some(OptionDef { fate: Fate::Refused(near), .. }) => {
                return Err(lacking(program, &format!("--{long}"), near));
            }
            Some(OptionDef { key: Says::Key(key), .. }) => heeded.push((*key, value.unwrap_or_default())),
            _ => {}
        }
    }
    Ok((heeded, operands))
}

/// That something of Slurm is not there, and what comes nearest.
pub fn lacking(program: &str, what: &str, near: &str) -> Failure {
    Failure::error(program, format!("{what} is not there in Ephor: {near}"), 1)
}

/// The parts of a list with commas.
pub fn list(value: &str) -> Vec<String> {
    value.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Sets the variable of an option's default.
pub const fn from_env<K: Copy>(variable: &'static str, def: OptionDef<K>) -> OptionDef<K> {
    OptionDef { variable: Some(variable), ..def }
}

/// The help of a command: its options, and what does not work as in Slurm.
pub fn help<K>(program: &str, operands: &str, options: &[OptionDef<K>]) -> String {
    let mut text = format!("Usage: {program} [OPTIONS...] {operands}\n\nOptions that Ephor takes:\n");
    for def in options.iter().filter(|def| !matches!(def.fate, Fate::Refused(_))) {
        let (what, how) = def.fate.words();
        match (def.fate, how) {
            (Fate::Works, _) => text.push_str(&format!("  {}\n", def.usage())),
            (_, "") => text.push_str(&format!("  {:<38} {what}\n", def.usage())),
            _ => text.push_str(&format!("  {:<38} {what}: {how}\n", def.usage())),
        }
    }
    text.push_str("\nOptions of Slurm that Ephor does not have, and what comes nearest:\n");
    for def in options {
        if let Fate::Refused(near) = def.fate {
            text.push_str(&format!("  {:<38} {near}\n", def.usage()));
        }
    }
    text
}
