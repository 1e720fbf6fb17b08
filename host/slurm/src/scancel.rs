//! `scancel`: its command line.

use crate::failure::Failure;
use crate::getopt::{Given, Operands, Reader};
use crate::squeue::{JobId, parse_id};
use crate::table::Fate::{Refused, Void, Works};
use crate::table::Takes::{Nothing, Value};
use crate::table::{Fate, OptionDef, from_env as env};
use ephor_model::{ArraySpec, JobState};

/// Name of the command in messages.
pub const PROGRAM: &str = "scancel";

/// The signal that ends a job.
const KILL: i32 = 9;

/// The options by what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named after the option that stands beside it in TABLE")]
pub enum Key {
    Account,
    Batch,
    Full,
    Help,
    Me,
    Name,
    Partition,
    Qos,
    Quiet,
    Reservation,
    Signal,
    State,
    User,
    Verbose,
    Version,
    Nodelist,
    /// Without effect, or refused.
    Other(&'static str),
}

use Key as K;

const fn def(
    key: Key,
    long: &'static str,
    short: Option<char>,
    takes: crate::table::Takes,
    fate: Fate,
) -> OptionDef<Key> {
    OptionDef::new(key, long, short, takes, fate)
}

/// Every option of `scancel` 22.05.
#[rustfmt::skip]
pub const TABLE: &[OptionDef<Key>] = &[
    env("SCANCEL_ACCOUNT", def(K::Account, "account", Some('A'), Value("NAME"), Works)),
    def(K::Batch, "batch", Some('b'), Nothing, Works),
    def(K::Other("clusters"), "clusters", Some('M'), Value("NAMES"), Refused("the command talks to one controller; leave it out")),
    def(K::Other("ctld"), "ctld", None, Nothing, Void("it always goes through the controller")),
    def(K::Full, "full", Some('f'), Nothing, Works),
    def(K::Help, "help", None, Nothing, Works),
    def(K::Other("hurry"), "hurry", Some('H'), Nothing, Void("there are no burst buffers")),
    def(K::Other("interactive"), "interactive", Some('i'), Nothing, Refused("`squeue` first, then the ids")),
    def(K::Name, "jobname", None, Value("NAME"), Works),
    def(K::Me, "me", None, Nothing, Works),
    env("SCANCEL_NAME", def(K::Name, "name", Some('n'), Value("NAME"), Works)),
    def(K::Nodelist, "nodelist", Some('w'), Value("NODES"), Works),
    env("SCANCEL_PARTITION", def(K::Partition, "partition", Some('p'), Value("NAME"), Works)),
    env("SCANCEL_QOS", def(K::Qos, "qos", Some('q'), Value("NAME"), Works)),
    def(K::Quiet, "quiet", Some('Q'), Nothing, Works),
    def(K::Reservation, "reservation", Some('R'), Value("NAME"), Works),
    def(K::Other("sibling"), "sibling", None, Value("NAME"), Refused("there is one cluster; leave it out")),
    def(K::Signal, "signal", Some('s'), Value("SIGNAL"), Fate::Differs("KILL ends the job, with its grace; others go to every process of the job but the script's shell, steps included")),
    env("SCANCEL_STATE", def(K::State, "state", Some('t'), Value("STATE"), Works)),
    def(K::Help, "usage", None, Nothing, Works),
    env("SCANCEL_USER", def(K::User, "user", Some('u'), Value("NAME"), Works)),
    def(K::Verbose, "verbose", Some('v'), Nothing, Works),
    def(K::Version, "version", Some('V'), Nothing, Works),
    def(K::Other("wckey"), "wckey", None, Value("KEY"), Refused("--name")),
];

/// The command line, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is what the option of its name asks for")]
pub struct Query {
    /// None: all that the others let through.
    pub jobs: Vec<JobId>,
    pub user: Option<String>,
    pub me: bool,
    pub account: Option<String>,
    pub name: Option<String>,
    pub partition: Option<String>,
    pub qos: Option<String>,
    pub reservation: Option<String>,
    pub nodes: Vec<String>,
    pub state: Option<JobState>,
    /// The signal to send; none: the job is to end.
    pub signal: Option<i32>,
    /// For the script's shell alone.
    pub batch: bool,
    /// For the script's shell too.
    pub full: bool,
    pub quiet: bool,
    pub verbose: bool,
    pub version: bool,
    pub help: bool,
}

impl Query {
    /// Reads the words after the command's name, and the variables `SCANCEL_*`.
    ///
    /// # Errors
    /// What is no option or value, and a command line that names no job in any way.
    pub fn read(words: &[String], variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let reader = Reader { program: PROGRAM, table: TABLE, operands: Operands::Permute, usage_code: 1 };
        let (given, operands) = reader.read(words)?;
        let mut query = Self::default();
        for def in TABLE {
            if let Some(value) = def.variable.and_then(&variable) {
                query.take(&Given { key: def.key, long: def.long, value: Some(value) })?;
            }
        }
        given.iter().try_for_each(|option| query.take(option))?;
        for word in operands.iter().flat_map(|word| split(word)) {
            let bad = || Failure::error(PROGRAM, format!("Invalid job id {word}"), 1);
            query.jobs.extend(ids(&word).ok_or_else(bad)?);
        }
        if !query.is_bounded() && !query.help && !query.version {
            return Err(Failure::error(PROGRAM, "No job identification provided", 1));
        }
        Ok(query)
    }

    /// Whether anything says which jobs are meant beside their ids.
    pub fn is_filtered(&self) -> bool {
        let texts = [&self.user, &self.account, &self.name, &self.partition, &self.qos, &self.reservation];
        texts.iter().any(|text| text.is_some()) || self.me || self.state.is_some() || !self.nodes.is_empty()
    }

    fn is_bounded(&self) -> bool {
        !self.jobs.is_empty() || self.is_filtered()
    }

    fn take(&mut self, given: &Given<Key>) -> Result<(), Failure> {
        let value = given.value.clone();
        match given.key {
            K::Account => self.account = value,
            K::Name => self.name = value,
            K::Partition => self.partition = value,
            K::Qos => self.qos = value,
            K::Reservation => self.reservation = value,
            K::User => self.user = value,
            K::Me => self.me = true,
            K::Quiet => self.quiet = true,
            K::Verbose => self.verbose = true,
            K::Version => self.version = true,
            K::Help => self.help = true,
            K::Nodelist => {
                let names = ephor_model::submit::hostlist::expand(&value.unwrap_or_default());
                self.nodes = names.map_err(|why| Failure::error(PROGRAM, why, 1))?;
            }
            K::State => {
                let word = value.unwrap_or_default();
                let live = JobState::parse(&word).filter(|state| !state.is_final());
                let lines = || {
                    let valid = "Valid job states are PENDING, RUNNING, and SUSPENDED".to_owned();
                    Failure { lines: vec![format!("Invalid job state specified: {word}"), valid], code: 1 }
                };
                self.state = Some(live.ok_or_else(lines)?);
            }
            K::Signal => self.signal = signal(&value.unwrap_or_default())?,
            K::Batch => self.batch = true,
            K::Full => self.full = true,
            K::Other(_) => {}
        }
        match TABLE.iter().find(|def| def.key == given.key).map(|def| def.fate) {
            Some(Refused(near)) => {
                Err(Failure::error(PROGRAM, format!("--{} is not there in Ephor: {near}", given.long), 1))
            }
            _ => Ok(()),
        }
    }
}

/// Commas part ids, but not inside brackets.
fn split(word: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut inside = false;
    for c in word.chars() {
        match c {
            ',' if !inside => parts.push(String::new()),
            _ => {
                inside = (inside || c == '[') && c != ']';
                parts.last_mut().into_iter().for_each(|part| part.push(c));
            }
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// `123`, `123_4` or `123_[1-3,5]`; `None`: it is none of them.
fn ids(word: &str) -> Option<Vec<JobId>> {
    let Some((job, list)) = word.split_once("_[") else { return parse_id(word).map(|id| vec![id]) };
    let job = parse_id(job)?.job;
    let list = ArraySpec::parse(list.strip_suffix(']')?).ok()?;
    let indices = (0..list.count()).filter_map(|ordinal| list.index(ordinal));
    Some(indices.map(|index| JobId { job, index: Some(index) }).collect())
}

/// The number of a signal; `None`: it ends the job, as none does.
fn signal(text: &str) -> Result<Option<i32>, Failure> {
    let unknown = || Failure { lines: vec![format!("Unknown job signal: {text}")], code: 1 };
    let number = ephor_model::signal::number(text).ok_or_else(unknown)?;
    Ok(Some(number).filter(|number| *number != KILL))
}

/// The help of the command.
pub fn help() -> String {
    crate::table::help(PROGRAM, "[JOB[_INDEX]...]", TABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Query, Failure> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Query::read(&words, |_| None)
    }

    #[test]
    fn ids_and_filters() {
        let query = read("1 2_3,4 5_[1-2,7] -Q -u ann --state=pd").unwrap();
        let shown: Vec<(u64, Option<u32>)> = query.jobs.iter().map(|id| (id.job, id.index)).collect();
        assert_eq!(shown, [(1, None), (2, Some(3)), (4, None), (5, Some(1)), (5, Some(2)), (5, Some(7))]);
        assert_eq!((query.user.as_deref(), query.state, query.quiet), (Some("ann"), Some(JobState::Pending), true));
        let signal = |line: &str| read(line).map(|query| (query.signal, query.batch, query.full)).unwrap();
        assert_eq!(signal("-s SIGKILL 1"), (None, false, false));
        assert_eq!(signal("1 --signal usr2"), (Some(12), false, false));
        assert_eq!((signal("-b -s 10 1"), signal("-f -s TERM 1")), ((Some(10), true, false), (Some(15), false, true)));
    }

    #[test]
    fn mistakes_are_told_in_the_words_that_clients_match() {
        for (line, text) in [
            ("x", "scancel: error: Invalid job id x"),
            ("", "scancel: error: No job identification provided"),
            ("-t foo 1", "Invalid job state specified: foo"),
            ("-s FOO 1", "Unknown job signal: FOO"),
            ("-s 65 1", "Unknown job signal: 65"),
        ] {
            let failure = read(line).unwrap_err();
            assert_eq!((failure.lines[0].as_str(), failure.code), (text, 1));
        }
    }
}
