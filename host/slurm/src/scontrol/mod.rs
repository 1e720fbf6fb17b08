//! `scontrol`: its command line, and what it shows.

pub mod show_job;
pub mod show_node;
pub mod show_partition;
pub mod update;

use crate::failure::Failure;
use crate::squeue::{JobId, SHOWN_AFTER_END, parse_id};
use ephor_model::limits;
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
    ("show partition [NAME]", "works; -o"),
    ("show node [NAMES]", "works; -o; differs: what Ephor does not know of a node is left out"),
    ("show config", "differs: version, cluster, MaxArraySize, MinJobAge and the like alone"),
    ("hold, uhold ID...", "works"),
    ("release ID...", "works"),
    ("requeue ID...", "differs: jobs that run; one that has ended is submitted again"),
    ("update JobId=ID KEY=VALUE...", "works, with the keys below"),
    ("update NodeName=NAMES State=DRAIN|RESUME Reason=TEXT", "works"),
    ("ping", "works"),
    ("version", "works"),
    ("show reservation", "not there: `ephor reservation list`"),
    ("update PartitionName=, ReservationName=", "not there: `ephor queue set`, `ephor reservation set`"),
    ("create, delete", "not there: `ephor apply`"),
    ("reconfigure, shutdown, ...", "not there: what is set with `ephor apply` holds at once"),
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
    /// Show partitions; none: all.
    ShowPartitions(Option<String>),
    /// Show nodes; none: all.
    ShowNodes(Vec<String>),
    /// Show the configuration.
    ShowConfig,
    /// Say whether the controller answers.
    Ping,
    /// Change something: the words for [`update::read`].
    Update(Vec<String>),
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
        _ if is("update", 1) => Ok(Command::Update(rest.iter().map(|word| (*word).to_owned()).collect())),
        _ if is("ping", 3) => Ok(Command::Ping),
        _ if is("create", 2) || is("delete", 1) => Err(lacking(first, "`ephor apply`")),
        _ if is("reconfigure", 3) => Err(lacking(first, "what is set with `ephor apply` holds at once")),
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
        _ if is("partitions", 4) || is("partitionname", 4) => {
            Ok(Command::ShowPartitions(value.or(rest.first().copied()).map(str::to_owned)))
        }
        _ if is("nodes", 4) || is("nodename", 4) => Ok(Command::ShowNodes(match names().as_str() {
            "" => Vec::new(),
            list => hosts(list)?,
        })),
        _ if is("config", 6) => Ok(Command::ShowConfig),
        _ if is("reservations", 3) => Err(lacking("show reservation", "`ephor reservation list`")),
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

/// The lines of `show config`, which clients read names and numbers from.
pub fn config(cluster: &str, as_of: &str) -> Vec<String> {
    let lines = [
        ("ClusterName", cluster.to_owned()),
        ("DefMemPerNode", "UNLIMITED".into()),
        ("MaxArraySize", (limits::ARRAY_ELEMENTS + 1).to_string()),
        ("MinJobAge", format!("{} sec", SHOWN_AFTER_END.0 / 1000)),
        ("SelectType", "select/cons_tres".into()),
        ("SLURM_VERSION", crate::VERSION.trim_start_matches(|c: char| !c.is_ascii_digit()).to_owned()),
    ];
    let first = format!("Configuration data as of {as_of}");
    std::iter::once(first).chain(lines.map(|(name, value)| format!("{name:<23} = {value}"))).collect()
}

/// The help of the command.
pub fn help() -> String {
    let mut text = format!("Usage: {PROGRAM} [-o] COMMAND\n\n");
    for (command, what) in COMMANDS {
        text.push_str(&format!("  {command:<54} {what}\n"));
    }
    text.push_str(&format!("\nKeys of a job: {}\n", update::keys()));
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
        assert_eq!(
            read("show hostname n[08-10],g1").unwrap().command,
            Command::Print(["n08", "n09", "n10", "g1"].map(String::from).to_vec())
        );
        assert_eq!(read("show hostlistsorted n3,n1,n2").unwrap().command, Command::Print(vec!["n[1-3]".into()]));
        assert_eq!(read("show hostnames").unwrap().command, Command::ShowOwnHosts);
        assert_eq!(
            read("show part -o").unwrap(),
            CommandLine { command: Command::ShowPartitions(None), one_line: true }
        );
        assert_eq!(read("show node n[1-2]").unwrap().command, Command::ShowNodes(vec!["n1".into(), "n2".into()]));
        assert_eq!(read("requeue 7").unwrap().command, Command::Requeue(one(7)));
        assert_eq!(read("show jobb 1").unwrap_err().lines, ["invalid entity:jobb for keyword:show "]);
        assert_eq!(read("show job x").unwrap_err(), invalid_id());
    }
}
