//! JSON in the shape of Slurm 22.05's data parsers: `openapi/v0.0.38` for jobs and nodes, `openapi/dbv0.0.38` for what
//! `sacct` shows.
//!
//! Every name that jobs and nodes have there is here, since typed readers insist on them. What Ephor has no word for says
//! what Slurm says of a thing that is not there: see the tables `ABSENT`.

pub mod node;
pub mod past;
pub mod queued;

use crate::job::JobView;
use crate::scontrol::show_job;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// An answer: what speaks, and rows under the name of their kind.
#[derive(Serialize)]
struct Answer<'a, R: Serialize> {
    meta: Meta,
    /// What went wrong is told on standard error, and by the exit code.
    errors: [(); 0],
    #[serde(flatten)]
    rows: Rows<'a, R>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Rows<'a, R> {
    Jobs(&'a [R]),
    Nodes(&'a [R]),
}

#[derive(Serialize)]
struct Meta {
    plugin: Plugin,
    #[serde(rename = "Slurm")]
    slurm: Release,
}

#[derive(Serialize)]
struct Plugin {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
}

#[derive(Serialize)]
struct Release {
    version: Version,
    release: String,
}

#[derive(Serialize)]
struct Version {
    major: u32,
    micro: u32,
    minor: u32,
}

/// The parser of jobs and nodes.
const LIVE: Plugin = Plugin { kind: "openapi/v0.0.38", name: "Slurm OpenAPI v0.0.38" };
/// The parser of what `sacct` shows.
const PAST: Plugin = Plugin { kind: "openapi/dbv0.0.38", name: "Slurm OpenAPI DB v0.0.38" };

fn text<R: Serialize>(plugin: Plugin, rows: Rows<'_, R>) -> String {
    let release = crate::VERSION.trim_start_matches(|c: char| !c.is_ascii_digit());
    let mut numbers = release.split('.').map(|part| part.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    let version = Version { major: next(), minor: next(), micro: next() };
    let meta = Meta { plugin, slurm: Release { version, release: release.to_owned() } };
    // Proof: the rows are records of texts, numbers and lists of them, and no name is anything but a text.
    let mut text = serde_json::to_string_pretty(&Answer { meta, errors: [], rows }).unwrap_or_default();
    text.push('\n');
    text
}

/// How something is written that is not there.
#[derive(Clone, Copy)]
enum Nothing {
    Text,
    Zero,
    Null,
    No,
    List,
}

/// Names of the shape that Ephor has no word for.
struct Absent(&'static [(&'static str, Nothing)]);

impl Serialize for Absent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, nothing) in self.0 {
            match nothing {
                Nothing::Text => map.serialize_entry(name, "")?,
                Nothing::Zero => map.serialize_entry(name, &0)?,
                Nothing::Null => map.serialize_entry(name, &())?,
                Nothing::No => map.serialize_entry(name, &false)?,
                Nothing::List => map.serialize_entry(name, &[(); 0])?,
            }
        }
        map.end()
    }
}

/// Seconds since 1970; 0 is no time.
fn seconds(at: Option<ephor_model::Timestamp>) -> i64 {
    at.map_or(0, |at| at.0.div_euclid(1000))
}

/// Minutes of a time limit; none: without one.
fn minutes(job: &JobView) -> Option<i64> {
    job.time_limit.map(|limit| limit.0 / 60_000)
}

/// The array that a job belongs to, its index, and the indices that it stands for.
fn array(job: &JobView) -> (u64, Option<u32>, String) {
    match &job.array {
        None => (0, None, String::new()),
        Some(place) => match &place.pending {
            Some(pending) => (place.id, None, pending.clone()),
            None => (place.id, place.index, String::new()),
        },
    }
}

/// How many elements of its array may run at once; 0: all.
fn throttle(tasks: &str) -> u32 {
    tasks.split_once('%').and_then(|(_, most)| most.parse().ok()).unwrap_or(0)
}

/// The script's path; nothing where it has none.
fn command(job: &JobView) -> &str {
    Some(show_job::command(job)).filter(|command| *command != "(null)").unwrap_or_default()
}
