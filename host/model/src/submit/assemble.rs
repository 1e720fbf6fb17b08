//! From all options of a job to its specification and environment.

use super::Caller;
use super::error::SubmitError;
use super::option::{Dialect, Given, JobOption};
use super::request::RequestBuilder;
use super::{dependency, environment, licence};
use crate::array::ArraySpec;
use crate::job::{JobSpec, OpenMode, Payload};
use crate::limits;
use crate::signal::WarningSignal;
use crate::time::{Span, Timestamp};

/// Options that say the same thing in different ways: one of them on the command line replaces all of the script's.
const FAMILIES: [&[JobOption]; 5] = [
    &[JobOption::Mem, JobOption::MemPerCpu, JobOption::MemPerGpu],
    &[JobOption::CpusPerTask, JobOption::CpusPerGpu],
    &[JobOption::Topology, JobOption::TopologyPrefer],
    &[JobOption::Gres, JobOption::Gpus, JobOption::GpusPerNode, JobOption::GpusPerTask],
    &[JobOption::Requeue, JobOption::NoRequeue],
];

/// Builds the specification, and the environment as NUL-ended entries.
pub fn assemble(
    name: &str,
    payload: Payload,
    script: &[Given],
    command_line: &[Given],
    caller: &Caller<'_>,
) -> Result<(JobSpec, Vec<u8>), SubmitError> {
    let mut spec = JobSpec::new(name, payload);
    spec.work_dir = caller.work_dir.to_owned();
    let replaced = |g: &&Given| {
        let family = FAMILIES.iter().find(|f| f.contains(&g.option));
        family.is_some_and(|f| command_line.iter().any(|c| f.contains(&c.option)))
    };
    let mut request = RequestBuilder::default();
    let mut export = None;
    for given in script.iter().filter(|g| !replaced(g)).chain(command_line) {
        let fail = |message| SubmitError::at(given.place, message);
        if given.option == JobOption::Export {
            export = Some(given);
        } else if !request.take(given).map_err(fail)? {
            set(&mut spec, given, caller).map_err(fail)?;
        }
    }
    spec.request = request.finish()?.into();
    let environment =
        environment::select(export.and_then(|g| g.value.as_deref()), caller.environment).map_err(|e| {
            let message = format!("--export: {e}; write ALL, NONE, NAME or NAME=value with commas between them");
            SubmitError { place: export.map(|g| g.place), message }
        })?;
    Ok((spec, environment))
}

fn set(spec: &mut JobSpec, given: &Given, caller: &Caller<'_>) -> Result<(), String> {
    let value = given.value.clone().unwrap_or_default();
    match given.option {
        JobOption::JobName => spec.name = value,
        JobOption::Queue if value.contains(',') => {
            return Err(format!("'{value}': a choice of queues does not work yet; name one"));
        }
        JobOption::Queue => spec.queue = value,
        JobOption::Account => spec.account = value,
        JobOption::Qos => spec.qos = Some(value),
        JobOption::Reservation => spec.reservation = Some(value),
        JobOption::Licences => spec.licences = licence::parse(&value)?,
        JobOption::Comment => spec.comment = Some(value),
        JobOption::Time => spec.time_limit = Some(time_limit(&value, given.dialect)?),
        JobOption::Output => spec.stdout = Some(path(value)?),
        JobOption::Error => spec.stderr = Some(path(value)?),
        JobOption::Input => spec.stdin = Some(path(value)?),
        JobOption::OpenMode => {
            spec.open_mode = match value.as_str() {
                "a" | "append" => OpenMode::Append,
                "t" | "truncate" => OpenMode::Truncate,
                _ => return Err(format!("'{value}' is not an open mode; write append or truncate")),
            }
        }
        JobOption::Chdir => spec.work_dir = join(caller.work_dir, &path(value)?),
        JobOption::Array => spec.array = Some(array(&value)?),
        JobOption::Dependency => (spec.dependencies, spec.dependency_any) = dependency::parse(&value)?,
        JobOption::Begin => spec.begin = Some(when(&value, caller)?),
        JobOption::Deadline => spec.deadline = Some(deadline(&value, caller)?),
        JobOption::Signal => spec.signal = Some(WarningSignal::parse(&value).map_err(|e| e.to_string())?),
        JobOption::Hold => spec.hold = true,
        JobOption::Nice => spec.nice = nice(given.value.as_deref())?,
        JobOption::Requeue => spec.requeue = Some(true),
        JobOption::NoRequeue => spec.requeue = Some(false),
        JobOption::Wrap if given.place != super::Place::CommandLine => {
            return Err("--wrap is the whole script, so that it can only stand on the command line".into());
        }
        // `draft` has taken `--wrap`; `assemble` and the request take the rest before they come here.
        _ => {}
    }
    Ok(())
}

fn when(text: &str, caller: &Caller<'_>) -> Result<Timestamp, String> {
    Timestamp::parse_when(text, caller.now, caller.utc_offset).map_err(|e| e.to_string())
}

fn deadline(text: &str, caller: &Caller<'_>) -> Result<Timestamp, String> {
    let deadline = when(text, caller)?;
    match deadline > caller.now {
        true => Ok(deadline),
        false => Err(format!("the deadline {text} is not in the future")),
    }
}

fn time_limit(text: &str, dialect: Dialect) -> Result<Span, String> {
    let longest = Span(limits::TIME_LIMIT_MS);
    Ok(match Span::parse_limit(text).map_err(|e| e.to_string())? {
        // No limit is the longest that there is: a time limit that is not given is filled in by the site instead.
        None | Some(Span(0)) => longest,
        Some(Span(ms)) => match dialect {
            Dialect::Ephor => Span(ms),
            Dialect::Slurm => Span(((ms + 59_999) / 60_000 * 60_000).min(longest.0)),
        },
    })
}

fn array(text: &str) -> Result<ArraySpec, String> {
    // In Slurm a throttle of 0 is none.
    let list = match text.split_once('%') {
        Some((list, throttle)) if throttle.trim().parse() == Ok(0) => list,
        _ => text,
    };
    ArraySpec::parse(list).map_err(|e| e.to_string())
}

fn nice(text: Option<&str>) -> Result<i64, String> {
    let Some(text) = text else { return Ok(100) };
    match text.parse::<i64>() {
        Ok(n) if n.abs() <= limits::NICE => Ok(n),
        _ => Err(format!("'{text}' is not a nice value; write a whole number up to ±{}", limits::NICE)),
    }
}

fn path(text: String) -> Result<String, String> {
    if text.is_empty() { Err("the path is empty".into()) } else { Ok(text) }
}

/// A path seen from a folder, without `.` parts. `..` stays: what it means depends on links, which only the node knows.
fn join(folder: &str, path: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") };
    let parts: Vec<&str> = whole.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    format!("/{}", parts.join("/"))
}
