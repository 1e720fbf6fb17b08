//! `scontrol`: its command line, and what it shows.

pub mod show_job;

use crate::failure::Failure;
use crate::squeue::{JobId, parse_id};
use ephor_model::submit::hostlist;

/// Name of the command in messages.
pub const PROGRAM: &str = "scontrol";

/// Commands with what becomes of them: for the help and the documents.
#[rustfmt::skip]
pub const COMMANDS: &[(&str, &str)] = &[
    ("show job [ID...]", "works; -o, --oneliner"),
    ("show hostnames [LIST]", "works; without a list that of SLURM_JOB_NODELIST"),
    ("show hostlist NAMES", "differs: sorted"),
    ("show hostlistsorted NAMES", "works"),
    ("hold, uhold ID...", "works"),
    ("release ID...", "works"),
    ("requeue ID...", "works"),
    ("version", "works"),
    ("show config, partition, node, reservation", "not there: sinfo, `ephor queue show`, `ephor node show`, `ephor reservation list`"),
    ("update", "not there: `ephor job modify`"),
    ("create, delete", "not there: `ephor apply`"),
    ("reconfigure, shutdown, ping, ...", "not there: `ephor status`"),
];

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Show jobs; none: all.
    ShowJobs(Vec<JobId>),
    /// Print these lines.
    Print(Vec<String>),
    /// Write out the nodes of the job that this runs in.
    ShowOwnHosts,
    /// Keep jobs back.
    Hold(Vec<JobId>),
    /// Let them go.
    Release(Vec<JobId>),
    /// Run them again.
    Requeue(Vec<JobId>),
    /// The version.
    Version,
    /// The help.
    Help,
}

/// The command line, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// What is to be done.
    pub command: Command,
    /// Each on one line.
    pub one_line: bool,
}

impl CommandLine {
    /// Reads the words after the command's name. Options may stand anywhere.
    ///
    /// # Errors
    /// Commands that there are not, and what is no id.
    pub fn read(words: &[String]) -> Result<Self, Failure> {
        let (options, words): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| word.starts_with('-'));
        let mut one_line = false;
        for option in options {
            match option.as_str() {
                "-o" | "--oneliner" => one_line = true,
                "-V" | "--version" => return Ok(Self { command: Command::Version, one_line }),
                "-h" | "--help" | "--usage" => return Ok(Self { command: Command::Help, one_line }),
                // More detail, or less: there is only one.
                "-d" | "--details" | "-a" | "--all" | "-Q" | "--quiet" | "-v" | "--verbose" | "--local" | "--hide" => {}
                other => return Err(Failure::usage(PROGRAM, format!("unrecognized option '{other}'"), 1)),
            }
        }
        let words: Vec<&str> = words.into_iter().map(String::as_str).collect();
        let command = command(&words)?;
        Ok(Self { command, one_line })
    }
}

fn command(words: &[&str]) -> Result<Command, Failure> {
    let (first, rest) = words.split_first().map_or(("", words), |(first, rest)| (*first, rest));
    let is = |full: &str, least: usize| first.len() >= least && full.starts_with(&first.to_ascii_lowercase());
    match first {
        _ if is("show", 3) => show(rest),
        _ if is("hold", 4) || is("uhold", 5) => ids(first, rest).map(Command::Hold),
        _ if is("release", 3) => ids(first, rest).map(Command::Release),
        _ if is("requeue", 4) => ids(first, rest).map(Command::Requeue),
        _ if is("version", 1) => Ok(Command::Version),
        _ if first.is_empty() || is("help", 1) => Ok(Command::Help),
        _ if is("update", 1) => Err(lacking(first, "`ephor job modify`")),
        _ => Err(Failure { lines: vec![format!("invalid keyword: {first}")], code: 1 }),
    }
}

fn show(words: &[&str]) -> Result<Command, Failure> {
    let (entity, rest) = words.split_first().map_or(("", words), |(first, rest)| (*first, rest));
    // `jobid=5` is an older form of `job 5`.
    let (entity, value) = entity.split_once('=').map_or((entity, None), |(name, value)| (name, Some(value)));
    let is = |full: &str, least: usize| entity.len() >= least && full.starts_with(&entity.to_ascii_lowercase());
    let names = || rest.iter().copied().chain(value).collect::<Vec<_>>().join(",");
    match entity {
        _ if is("jobs", 1) || is("jobid", 1) => {
            let rest: Vec<&str> = value.into_iter().chain(rest.iter().copied()).collect();
            match rest.is_empty() {
                true => Ok(Command::ShowJobs(Vec::new())),
                false => ids("show job", &rest).map(Command::ShowJobs),
            }
        }
        _ if is("hostnames", 5) => match names().as_str() {
            "" => Ok(Command::ShowOwnHosts),
            list => hosts(list).map(Command::Print),
        },
        _ if is("hostlistsorted", 9) || is("hostlist", 6) => {
            let names = hosts(&names())?;
            Ok(Command::Print(vec![hostlist::fold(&names)]))
        }
        _ if is("partitions", 4) || is("nodes", 4) || is("config", 6) || is("reservations", 3) => {
            Err(lacking(&format!("show {entity}"), "sinfo, `ephor queue show`, `ephor node show`, `ephor reservation list`"))
        }
        _ => Err(Failure { lines: vec![format!("invalid entity:{entity} for keyword:show ")], code: 1 }),
    }
}

/// Writes a list of nodes out, one a line.
///
/// # Errors
/// What is no list.
pub fn hosts(list: &str) -> Result<Vec<String>, Failure> {
    let bad = |_| Failure { lines: vec![format!("Invalid hostlist: {list}")], code: 1 };
    hostlist::expand(list).map_err(bad)
}

fn ids(command: &str, words: &[&str]) -> Result<Vec<JobId>, Failure> {
    if words.is_empty() {
        return Err(Failure { lines: vec![format!("too few arguments for keyword:{command}")], code: 1 });
    }
    let each = words.iter().flat_map(|word| word.split(',')).filter(|word| !word.is_empty());
    each.map(|word| {
        let plain = word.split_once('=').map_or(word, |(_, id)| id);
        parse_id(plain).ok_or_else(invalid_id)
    })
    .collect()
}

/// What is said of a job that there is not.
pub fn invalid_id() -> Failure {
    Failure { lines: vec!["slurm_load_jobs error: Invalid job id specified".into()], code: 1 }
}

fn lacking(command: &str, near: &str) -> Failure {
    Failure::error(PROGRAM, format!("{command} is not there in Ephor: {near}"), 1)
}

/// The help of the command.
pub fn help() -> String {
    let mut text = format!("Usage: {PROGRAM} [-o] COMMAND\n\n");
    for (command, what) in COMMANDS {
        text.push_str(&format!("  {command:<44} {what}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<CommandLine, Failure> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        CommandLine::read(&words)
    }

    #[test]
    fn commands_are_read() {
        let one = |job| vec![JobId { job, index: None }];
        assert_eq!(read("show job 5 -o").unwrap(), CommandLine { command: Command::ShowJobs(one(5)), one_line: true });
        assert_eq!(read("-o show jobid=5").unwrap().command, Command::ShowJobs(one(5)));
        assert_eq!(read("show hostname n[08-10],g1").unwrap().command, Command::Print(["n08", "n09", "n10", "g1"].map(String::from).to_vec()));
        assert_eq!(read("show hostlistsorted n3,n1,n2").unwrap().command, Command::Print(vec!["n[1-3]".into()]));
        assert_eq!(read("show hostnames").unwrap().command, Command::ShowOwnHosts);
        assert_eq!(read("requeue 7").unwrap().command, Command::Requeue(one(7)));
        assert_eq!(read("show jobb 1").unwrap_err().lines, ["invalid entity:jobb for keyword:show "]);
        assert_eq!(read("show job x").unwrap_err(), invalid_id());
    }
}
