//! Reading options from words as the C library's `getopt_long` does, with its messages: clients match them.

use crate::failure::Failure;
use crate::table::{OptionDef, Takes};

/// An option that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given<K> {
    /// Which one.
    pub key: K,
    /// The name it was found by.
    pub long: &'static str,
    /// Its value.
    pub value: Option<String>,
}

/// A command line, read.
#[derive(Clone, Debug)]
pub struct CommandLine<K> {
    /// The options, as they came.
    pub given: Vec<Given<K>>,
    /// What stands behind them: a script or a program, and its arguments.
    pub operands: Vec<String>,
}

impl<K: Copy + PartialEq> CommandLine<K> {
    /// Whether an option was given.
    pub fn has(&self, key: K) -> bool {
        self.given.iter().any(|given| given.key == key)
    }
}

/// What happens at the first word that is no option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// It and all that follows are operands.
    Stop,
    /// Options may follow it.
    Permute,
}

/// Whose words are read.
#[derive(Clone, Copy, Debug)]
pub struct Reader<K: 'static> {
    /// Name of the command in messages.
    pub program: &'static str,
    /// Its options.
    pub table: &'static [OptionDef<K>],
    /// See [`Operands`].
    pub operands: Operands,
    /// Exit code of a wrong command line.
    pub usage_code: u8,
}

impl<K: Copy + PartialEq> Reader<K> {
    /// The options and the operands of a command line.
    ///
    /// # Errors
    /// Unknown or ambiguous names, missing values, values that do not belong.
    pub fn read(&self, words: &[String]) -> Result<(Vec<Given<K>>, Vec<String>), Failure> {
        let (mut given, mut operands) = (Vec::new(), Vec::new());
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                operands.extend(words.cloned());
                break;
            } else if let Some(long) = word.strip_prefix("--") {
                given.push(self.long(long, &mut words)?);
            } else if word.len() > 1 && word.starts_with('-') {
                self.cluster(&word[1..], &mut words, &mut given)?;
            } else {
                operands.push(word.clone());
                if self.operands == Operands::Stop {
                    operands.extend(words.cloned());
                    break;
                }
            }
        }
        Ok((given, operands))
    }

    fn fail(&self, text: String) -> Failure {
        Failure::usage(self.program, text, self.usage_code)
    }

    fn long<'a>(&self, word: &str, more: &mut impl Iterator<Item = &'a String>) -> Result<Given<K>, Failure> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word, None),
        };
        let def = self.find(name).map_err(|found| match found.as_slice() {
            [] => self.fail(format!("unrecognized option '--{word}'")),
            several => {
                let names: Vec<String> = several.iter().map(|n| format!(" '--{n}'")).collect();
                self.fail(format!("option '--{word}' is ambiguous; possibilities:{}", names.concat()))
            }
        })?;
        let value = match (def.takes, value) {
            (Takes::Nothing, Some(_)) => {
                return Err(self.fail(format!("option '--{}' doesn't allow an argument", def.long)));
            }
            (Takes::Value(_), None) => {
                let missing = || self.fail(format!("option '--{}' requires an argument", def.long));
                Some(more.next().ok_or_else(missing)?.clone())
            }
            (_, value) => value,
        };
        Ok(Given { key: def.key, long: def.long, value })
    }

    /// The option of that name or unambiguous prefix, else the names that it could be.
    fn find(&self, name: &str) -> Result<&'static OptionDef<K>, Vec<&'static str>> {
        if let Some(def) = self.table.iter().find(|def| def.long == name) {
            return Ok(def);
        }
        let like: Vec<_> = self.table.iter().filter(|def| !def.long.is_empty() && def.long.starts_with(name)).collect();
        match like.as_slice() {
            [first, more @ ..] if more.iter().all(|def| def.key == first.key && def.takes == first.takes) => Ok(first),
            several => Err(several.iter().map(|def| def.long).collect()),
        }
    }

    fn cluster<'a>(
        &self,
        cluster: &str,
        more: &mut impl Iterator<Item = &'a String>,
        given: &mut Vec<Given<K>>,
    ) -> Result<(), Failure> {
        for (at, c) in cluster.char_indices() {
            let def = self.table.iter().find(|def| def.short == Some(c));
            let def = def.ok_or_else(|| self.fail(format!("invalid option -- '{c}'")))?;
            let rest = &cluster[at + c.len_utf8()..];
            let attached = Some(rest.to_owned()).filter(|rest| !rest.is_empty());
            let value = match def.takes {
                Takes::Nothing => {
                    given.push(Given { key: def.key, long: def.long, value: None });
                    continue;
                }
                Takes::Maybe(_) => attached,
                Takes::Value(_) => {
                    let missing = || self.fail(format!("option requires an argument -- '{c}'"));
                    Some(attached.or_else(|| more.next().cloned()).ok_or_else(missing)?)
                }
            };
            given.push(Given { key: def.key, long: def.long, value });
            break;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Fate, OptionDef};

    const TABLE: &[OptionDef<char>] = &[
        OptionDef::new('t', "time", Some('t'), Takes::Value("T"), Fate::Works),
        OptionDef::new('m', "time-min", None, Takes::Value("T"), Fate::Works),
        OptionDef::new('c', "cluster", Some('M'), Takes::Value("C"), Fate::Works),
        OptionDef::new('c', "clusters", Some('M'), Takes::Value("C"), Fate::Works),
        OptionDef::new('H', "hold", Some('H'), Takes::Nothing, Fate::Works),
        OptionDef::new('k', "no-kill", Some('k'), Takes::Maybe("V"), Fate::Works),
    ];

    fn read(line: &str, operands: Operands) -> Result<String, Failure> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let reader = Reader { program: "sbatch", table: TABLE, operands, usage_code: 255 };
        let (given, operands) = reader.read(&words)?;
        let mut out: Vec<String> =
            given.iter().map(|g| format!("{}={}", g.key, g.value.as_deref().unwrap_or("-"))).collect();
        out.push(format!("[{}]", operands.join(",")));
        Ok(out.join(" "))
    }

    #[test]
    fn every_form_is_read() {
        let stop = |line| read(line, Operands::Stop).unwrap();
        assert_eq!(stop("-t5 --time 6 --time=7 -Ht 8 x -H"), "t=5 t=6 t=7 H=- t=8 [x,-H]");
        assert_eq!(stop("-k -koff --no-k --no-kill=x --clus a -- -H"), "k=- k=off k=- k=x c=a [-H]");
        assert_eq!(read("x -H - y", Operands::Permute).unwrap(), "H=- [x,-,y]");
    }

    #[test]
    fn mistakes_are_told_in_the_words_that_clients_match() {
        for (line, text) in [
            ("--blub=12", "sbatch: unrecognized option '--blub=12'"),
            ("--ti=3", "sbatch: option '--ti=3' is ambiguous; possibilities: '--time' '--time-min'"),
            ("--ho=3", "sbatch: option '--hold' doesn't allow an argument"),
            ("--time", "sbatch: option '--time' requires an argument"),
            ("-Hz", "sbatch: invalid option -- 'z'"),
            ("-Ht", "sbatch: option requires an argument -- 't'"),
        ] {
            let failure = read(line, Operands::Stop).unwrap_err();
            assert_eq!(failure.lines, [text, "Try \"sbatch --help\" for more information"]);
            assert_eq!(failure.code, 255);
        }
    }
}
