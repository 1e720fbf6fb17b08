//! The options of a job: their names, and reading them from words.

use super::error::{Place, SubmitError};
use super::names::nearest;
use super::table::{NOT_YET, OPTIONS};

/// One option of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each stands in OPTIONS with its names and its help")]
pub enum JobOption {
    JobName,
    Nodes,
    Tasks,
    TasksPerNode,
    CpusPerTask,
    Mem,
    MemPerCpu,
    Time,
    Output,
    Error,
    Input,
    OpenMode,
    Chdir,
    Queue,
    Account,
    Qos,
    Licences,
    Reservation,
    Array,
    Dependency,
    Gres,
    Gpus,
    GpusPerNode,
    GpusPerTask,
    CpusPerGpu,
    MemPerGpu,
    TasksPerGpu,
    Constraint,
    Topology,
    TopologyPrefer,
    NodeList,
    Exclude,
    Exclusive,
    Begin,
    Deadline,
    Signal,
    Hold,
    Nice,
    Requeue,
    NoRequeue,
    Comment,
    Export,
    Wrap,
}

/// Whether an option takes a value, and what help calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// It stands alone.
    Nothing,
    /// It must have a value.
    Value(&'static str),
    /// It may have one, only as `--option=value`.
    Maybe(&'static str),
}

/// The names and the help of an option.
#[derive(Clone, Copy, Debug)]
pub struct OptionDef {
    /// Which one.
    pub option: JobOption,
    /// Its name after `--`.
    pub long: &'static str,
    /// Another name after `--`.
    pub alias: Option<&'static str>,
    /// Its name after `-`.
    pub short: Option<char>,
    /// Its value.
    pub takes: Takes,
    /// One line for people.
    pub help: &'static str,
}

/// Whose rules a text follows where the two differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Ephor's own: a time limit is kept to the second.
    Ephor,
    /// Slurm's: a time limit is rounded up to a minute.
    Slurm,
}

/// An option as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Which one.
    pub option: JobOption,
    /// Its value.
    pub value: Option<String>,
    /// Where.
    pub place: Place,
    /// Whose rules its value follows.
    pub dialect: Dialect,
}

/// Reads the options in a list of words: `--option=value`, `--option value`, `-o value`, `-ovalue`, and long names cut
/// short as far as they stay clear.
///
/// # Errors
/// Words that are no options, unknown or unclear names, missing values, values that do not belong.
pub fn read_words(words: &[String], place: Place, dialect: Dialect) -> Result<Vec<Given>, SubmitError> {
    let mut given = Vec::new();
    let mut words = words.iter();
    let fail = |message: String| SubmitError::at(place, message);
    while let Some(word) = words.next() {
        let mut put = |option, value| given.push(Given { option, value, place, dialect });
        if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let def = find_long(name).map_err(fail)?;
            let value = match (def.takes, value) {
                (Takes::Nothing, Some(value)) => {
                    return Err(fail(format!("--{} takes no value here, and ={value} stands behind it", def.long)));
                }
                (Takes::Value(what), None) => Some(
                    words
                        .next()
                        .cloned()
                        .ok_or_else(|| fail(format!("--{} needs a value: --{}={what}", def.long, def.long)))?,
                ),
                (_, value) => value,
            };
            put(def.option, value);
        } else if let Some(cluster) = word.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
            for (at, c) in cluster.char_indices() {
                let def = find_short(c).map_err(fail)?;
                let rest = &cluster[at + c.len_utf8()..];
                let Takes::Value(what) = def.takes else {
                    put(def.option, None);
                    continue;
                };
                let value = match rest {
                    "" => words.next().cloned().ok_or_else(|| fail(format!("-{c} needs a value: -{c} {what}")))?,
                    _ => rest.to_owned(),
                };
                put(def.option, Some(value));
                break;
            }
        } else if word == "hetjob" || word == "packjob" {
            return Err(fail("heterogeneous jobs do not work yet".into()));
        } else {
            return Err(fail(format!(
                "'{word}' is not an option: options begin with - or --, and a value with blanks needs quotes"
            )));
        }
    }
    Ok(given)
}

fn find_short(c: char) -> Result<&'static OptionDef, String> {
    OPTIONS
        .iter()
        .find(|def| def.short == Some(c))
        .ok_or_else(|| format!("there is no option -{c}; `ephor job submit --help` lists those that exist"))
}

fn find_long(name: &str) -> Result<&'static OptionDef, String> {
    let names =
        || OPTIONS.iter().flat_map(|def| [Some(def.long), def.alias].into_iter().flatten().map(move |n| (n, def)));
    if let Some((_, def)) = names().find(|(n, _)| *n == name) {
        return Ok(def);
    }
    let not_yet = |name: &str| Err(format!("--{name} is an option of Slurm that does not work here yet; take it out"));
    if NOT_YET.contains(&name) {
        return not_yet(name);
    }
    let known: Vec<(&str, &OptionDef)> = names().filter(|(n, _)| n.starts_with(name)).collect();
    let unknown: Vec<&str> = NOT_YET.iter().copied().filter(|n| n.starts_with(name)).collect();
    match (known.as_slice(), unknown.as_slice()) {
        ([(_, def), more @ ..], []) if more.iter().all(|(_, d)| d.option == def.option) => Ok(def),
        ([], [only]) => not_yet(only),
        ([], []) => Err(match nearest(name, names().map(|(n, _)| n)) {
            Some(near) => format!("there is no option --{name}; did you mean --{near}?"),
            None => format!("there is no option --{name}; `ephor job submit --help` lists those that exist"),
        }),
        _ => {
            let all: Vec<String> =
                known.iter().map(|(n, _)| *n).chain(unknown.iter().copied()).map(|n| format!("--{n}")).collect();
            Err(format!("--{name} could be any of {}", all.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_taken_twice() {
        let mut names: Vec<&str> = OPTIONS.iter().flat_map(|d| [Some(d.long), d.alias]).flatten().collect();
        names.extend(NOT_YET);
        let mut shorts: Vec<char> = OPTIONS.iter().filter_map(|d| d.short).collect();
        let count = (names.len(), shorts.len());
        names.sort_unstable();
        names.dedup();
        shorts.sort_unstable();
        shorts.dedup();
        assert_eq!((names.len(), shorts.len()), count);
    }
}
