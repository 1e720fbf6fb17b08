//! `scontrol update`: which jobs or nodes change, and how.

use super::{PROGRAM, ids};
use crate::failure::Failure;
use crate::sbatch::gpu;
use crate::squeue::JobId;
use crate::value::{memory, time, when};
use ephor_model::submit::{Dialect, Given, JobOption, Place, hostlist};
use ephor_model::{Span, Timestamp};

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// Of jobs, in the model's words.
    Jobs {
        /// Which.
        ids: Vec<JobId>,
        /// Their new options.
        options: Vec<Given>,
        /// Elements of an array that run at once; 0: any number.
        throttle: Option<u32>,
    },
    /// Nodes take no more jobs (`Some`, with the reason), or take them again.
    Nodes {
        /// Which.
        names: Vec<String>,
        /// Why they take no more; `None`: they take them again.
        drain: Option<String>,
    },
}

/// Keys of a job in the order of the help, and the option that each stands for.
const KEYS: &[(&str, JobOption)] = &[
    ("Account", JobOption::Account),
    ("Comment", JobOption::Comment),
    ("Deadline", JobOption::Deadline),
    ("Dependency", JobOption::Dependency),
    ("EligibleTime", JobOption::Begin),
    ("ExcNodeList", JobOption::Exclude),
    ("Features", JobOption::Constraint),
    ("Gres", JobOption::Gres),
    ("MinMemoryCPU", JobOption::MemPerCpu),
    ("MinMemoryNode", JobOption::Mem),
    ("Nice", JobOption::Nice),
    ("NodeList", JobOption::NodeList),
    ("NumNodes", JobOption::Nodes),
    ("NumTasks", JobOption::Tasks),
    ("Partition", JobOption::Queue),
    ("QOS", JobOption::Qos),
    ("ReqNodeList", JobOption::NodeList),
    ("ReqNodes", JobOption::Nodes),
    ("ReqProcs", JobOption::Tasks),
    ("StartTime", JobOption::Begin),
    ("TimeLimit", JobOption::Time),
    ("TresPerNode", JobOption::Gres),
];

/// Reads the words after `update`. Times are meant at the caller's clock.
///
/// # Errors
/// Keys that there are not, or that cannot change here; values that are none.
pub fn read(words: &[&str], now: Timestamp, offset: Span) -> Result<Update, Failure> {
    // `update job 14 name=x` is an older form of `jobid=14`.
    let joined;
    let mut rest = words;
    let first = match words {
        [] => return Err(Failure { lines: vec!["too few arguments for update keyword".into()], code: 1 }),
        [entity, name, ..] if !entity.contains('=') => {
            joined = format!("{entity}={name}");
            rest = &words[2..];
            joined.as_str()
        }
        [first, ..] => {
            rest = &rest[1..];
            first
        }
    };
    let (entity, value) = first.split_once('=').unwrap_or((first, ""));
    match entity.to_ascii_lowercase().as_str() {
        "job" | "jobid" => jobs(value, rest, now, offset),
        "node" | "nodename" | "nodes" => nodes(value, rest),
        "partition" | "partitionname" => Err(lacking(first, "`ephor queue set`")),
        "reservation" | "reservationname" => Err(lacking(first, "`ephor reservation set`")),
        _ => Err(unknown(first)),
    }
}

fn jobs(list: &str, words: &[&str], now: Timestamp, offset: Span) -> Result<Update, Failure> {
    let (mut options, mut throttle) = (Vec::new(), None);
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| unknown(word))?;
        let is = |name: &str| key.eq_ignore_ascii_case(name);
        let bad = || Failure::error(PROGRAM, format!("Invalid {key} value"), 1);
        let mut put = |option, value: Option<String>| {
            options.push(Given { option, value, place: Place::CommandLine, dialect: Dialect::Slurm });
        };
        if is("ArrayTaskThrottle") {
            throttle = Some(value.parse().map_err(|_| bad())?);
        } else if is("Requeue") {
            match value {
                "0" => put(JobOption::NoRequeue, None),
                "1" => put(JobOption::Requeue, None),
                _ => return Err(bad()),
            }
        } else if let Some((_, option)) = KEYS.iter().find(|(name, _)| is(name)) {
            put(*option, Some(text(*option, value, now, offset).ok_or_else(bad)?));
        } else if ["JobName", "Name"].iter().any(|name| is(name)) {
            return Err(lacking(word, "a job keeps its name"));
        } else if is("Priority") {
            return Err(lacking(word, "Nice"));
        } else {
            return Err(unknown(word));
        }
    }
    if options.is_empty() && throttle.is_none() {
        return Err(Failure { lines: vec!["No changes specified".into()], code: 1 });
    }
    Ok(Update::Jobs { ids: ids("update", &[list])?, options, throttle })
}

/// A value in the model's words; `None`: it is none. What is empty takes away what was there.
fn text(option: JobOption, value: &str, now: Timestamp, offset: Span) -> Option<String> {
    if value.is_empty() {
        return Some(String::new());
    }
    match option {
        JobOption::Time => Some(time::parse(value)?.map_or(0, |limit| limit.0 / 60_000).to_string()),
        JobOption::Begin | JobOption::Deadline => Some(when::parse(value, now, offset).ok()?.to_iso(offset)),
        JobOption::Mem | JobOption::MemPerCpu => Some(format!("{}M", memory::parse(value).filter(|mib| *mib > 0)?)),
        JobOption::Gres => Some(gpu::gres(value).ok()?.map_or("none".into(), |gpus| format!("gpu:{}", gpus.plain))),
        _ => Some(value.to_owned()),
    }
}

fn nodes(list: &str, words: &[&str]) -> Result<Update, Failure> {
    let names = hostlist::expand(list).map_err(|_| Failure::error(PROGRAM, format!("Invalid node name: {list}"), 1))?;
    let value = |key: &str| {
        words.iter().find_map(|word| word.split_once('=').filter(|(k, _)| k.eq_ignore_ascii_case(key)).map(|(_, v)| v))
    };
    let known = |word: &&&str| {
        let key = word.split('=').next().unwrap_or_default();
        !["state", "reason"].iter().any(|name| key.eq_ignore_ascii_case(name))
    };
    if let Some(word) = words.iter().find(known) {
        return Err(lacking(word, "State and Reason; `ephor apply` for what a node is"));
    }
    match (value("State").unwrap_or_default().to_ascii_lowercase().as_str(), value("Reason")) {
        ("drain", None | Some("")) => {
            let text = "You must specify a reason when DRAINING a node. Request denied";
            Err(Failure { lines: vec![text.into()], code: 1 })
        }
        ("drain", Some(reason)) => Ok(Update::Nodes { names, drain: Some(reason.to_owned()) }),
        ("resume" | "undrain" | "idle", _) => Ok(Update::Nodes { names, drain: None }),
        (state, _) => Err(lacking(&format!("State={state}"), "DRAIN or RESUME")),
    }
}

fn unknown(word: &str) -> Failure {
    let lines = vec![format!("Update of this parameter is not supported: {word}"), "Request aborted".into()];
    Failure { lines, code: 1 }
}

fn lacking(word: &str, near: &str) -> Failure {
    unknown(word).after(format!("{PROGRAM}: error: {word} is not there in Ephor: {near}"))
}

/// The keys of a job, for the help and the documents.
pub fn keys() -> String {
    let names: Vec<&str> = KEYS.iter().map(|(name, _)| *name).collect();
    format!("{}, ArrayTaskThrottle, Requeue", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Update, Failure> {
        super::read(&line.split_whitespace().collect::<Vec<_>>(), Timestamp(1_796_079_849_000), Span(0))
    }

    fn options(line: &str) -> Vec<(JobOption, Option<String>)> {
        match read(line).unwrap() {
            Update::Jobs { options, .. } => options.into_iter().map(|given| (given.option, given.value)).collect(),
            Update::Nodes { .. } => panic!("{line} is about a job"),
        }
    }

    #[test]
    fn changes_of_jobs() {
        assert_eq!(
            options("jobid=14 TimeLimit=1:30:00 partition=gpu StartTime=now+1hour Requeue=0 dependency="),
            [
                (JobOption::Time, Some("90".into())),
                (JobOption::Queue, Some("gpu".into())),
                (JobOption::Begin, Some("2026-12-01T00:04:09".into())),
                (JobOption::NoRequeue, None),
                (JobOption::Dependency, Some(String::new())),
            ]
        );
        let of_array =
            Update::Jobs { ids: vec![JobId { job: 3, index: None }], options: Vec::new(), throttle: Some(2) };
        assert_eq!(read("job 3 arraytaskthrottle=2").unwrap(), of_array);
    }

    #[test]
    fn changes_of_nodes() {
        let names = vec!["n1".to_owned(), "n2".to_owned()];
        let drained = Update::Nodes { names: names.clone(), drain: Some("disk".into()) };
        assert_eq!(read("NodeName=n[1-2] State=DRAIN Reason=disk").unwrap(), drained);
        assert_eq!(read("nodename=n1,n2 state=resume").unwrap(), Update::Nodes { names, drain: None });
        assert!(read("NodeName=n1 State=DRAIN").unwrap_err().lines[0].starts_with("You must specify a reason"));
    }

    #[test]
    fn mistakes_are_told_in_the_words_that_clients_match() {
        for (line, text) in [
            ("", "too few arguments for update keyword"),
            ("jobid=14 foo=bar", "Update of this parameter is not supported: foo=bar | Request aborted"),
            ("jobid=14 timelimit=xx", "scontrol: error: Invalid timelimit value"),
            ("jobid=x nice=5", "slurm_load_jobs error: Invalid job id specified"),
        ] {
            let failure = read(line).unwrap_err();
            assert_eq!((failure.lines.join(" | ").as_str(), failure.code), (text, 1));
        }
    }
}
