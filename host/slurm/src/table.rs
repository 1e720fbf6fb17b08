//! What every table of options holds: names, values, and what becomes of the option here.

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
