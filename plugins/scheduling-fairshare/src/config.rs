//! What a site may set.

use ephor_sdk::Duration;
use serde::Deserialize;
use serde::de::Error as _;

use crate::share::Rules;
use crate::tree::MOST;

/// Most victims of one consolidation that are tried where a site says nothing else.
const MOVES: i64 = 16;

/// What a site may set. Every time is in seconds.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What is done in a cycle, in this order.
    pub actions: Vec<Action>,
    /// Resources that queues share; one that is not named is free for all.
    #[serde(deserialize_with = "resources")]
    pub resources: Vec<Resource>,
    /// How much past use lowers the part of a queue in what is over, in thousandths: 0 not at all, 1,000 as much as its
    /// weight raises it.
    #[serde(deserialize_with = "at_most::<10_000, _>")]
    pub k_thousandths: i64,
    /// How long a job waits at least before others give way to it.
    #[serde(deserialize_with = "seconds")]
    pub preemption_delay_s: i64,
    /// How long a job runs at least before it gives way to one of its own queue.
    #[serde(deserialize_with = "seconds")]
    pub preempt_min_runtime_s: i64,
    /// How long a job runs at least before it gives way to one of another queue.
    #[serde(deserialize_with = "seconds")]
    pub reclaim_min_runtime_s: i64,
    /// How often others are asked to move or go where nothing happens but that jobs come and go; 0: in each cycle.
    #[serde(deserialize_with = "at_most::<86_400, _>")]
    pub search_every_s: i64,
    /// How long a job that gives way has to end; the host takes a day at most.
    #[serde(deserialize_with = "at_most::<86_400, _>")]
    pub grace_s: i64,
    /// Most jobs that are moved to make room for one; 0: none ever, -1: no bound.
    pub consolidation_limit: i64,
    /// How far above what it may have a queue that reclaims may go against the one that gives, in thousandths; at least
    /// 1,000.
    #[serde(deserialize_with = "multiplier")]
    pub saturation_thousandths: i64,
    /// Work units that the search for room for one job may take.
    pub work_per_job: u64,
    /// Work units that one kind of search (moving, reclaiming, preempting) may take in a cycle.
    pub work_per_action: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            actions: vec![Action::Allocate, Action::Consolidate, Action::Reclaim, Action::Preempt],
            resources: vec![Resource { name: "gpu".to_owned(), unit: 1_000 }],
            k_thousandths: 0,
            preemption_delay_s: 0,
            preempt_min_runtime_s: 0,
            reclaim_min_runtime_s: 0,
            search_every_s: 0,
            grace_s: 30,
            consolidation_limit: MOVES,
            saturation_thousandths: 1_000,
            work_per_job: 5_000_000,
            work_per_action: 50_000_000,
        }
    }
}

/// A step of a cycle.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Jobs start on what is free.
    Allocate,
    /// Jobs move together so that a larger one fits.
    Consolidate,
    /// Queues take back what others hold above their share.
    Reclaim,
    /// Jobs give way to more urgent ones of their queue.
    Preempt,
}

/// A resource that queues share.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(from = "Written")]
pub struct Resource {
    /// As in the columns.
    pub name: String,
    /// What surplus is handed out in, in the resource's own unit.
    pub unit: i64,
}

/// How a resource is written.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Written {
    Name(String),
    Both { name: String, unit: i64 },
}

impl From<Written> for Resource {
    fn from(written: Written) -> Self {
        match written {
            // Whole cores and GPUs, and GiB.
            Written::Name(name) => Self { unit: if name == "mem" { 1_024 } else { 1_000 }, name },
            Written::Both { name, unit } => Self { name, unit },
        }
    }
}

impl Config {
    /// How each resource is divided.
    pub fn rules(&self) -> Vec<Rules> {
        self.resources.iter().map(|r| Rules { unit: r.unit, k: self.k_thousandths }).collect()
    }

    /// Whether cores, memory and GPUs are all shared.
    pub fn shares_all(&self) -> bool {
        ["cpu", "mem", "gpu"].iter().all(|name| self.resources.iter().any(|r| r.name == *name))
    }

    /// The grace as a span.
    pub fn grace(&self) -> Duration {
        self.grace_s * 1_000
    }
}

fn resources<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Resource>, D::Error> {
    let resources = Vec::<Resource>::deserialize(from)?;
    if resources.is_empty() || resources.len() > MOST {
        return Err(D::Error::custom(format!("resources must name 1 to {MOST}, not {}", resources.len())));
    }
    for (at, resource) in resources.iter().enumerate() {
        if resource.unit < 1 {
            return Err(D::Error::custom(format!(
                "the unit of {} must be at least 1, not {}",
                resource.name, resource.unit
            )));
        }
        if resources[..at].iter().any(|r| r.name == resource.name) {
            return Err(D::Error::custom(format!("resources names {} twice", resource.name)));
        }
    }
    Ok(resources)
}

/// Ten years.
const LONGEST: i64 = 315_360_000;

fn seconds<'de, D: serde::Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    at_most::<LONGEST, D>(from)
}

fn at_most<'de, const MOST: i64, D: serde::Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let n = i64::deserialize(from)?;
    if (0..=MOST).contains(&n) { Ok(n) } else { Err(D::Error::custom(format!("it must be 0 to {MOST}, not {n}"))) }
}

fn multiplier<'de, D: serde::Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let n = i64::deserialize(from)?;
    if (1_000..=1_000_000).contains(&n) {
        Ok(n)
    } else {
        Err(D::Error::custom(format!("it must be 1000 to 1000000, not {n}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Config, String> {
        ephor_sdk::config::parse(json)
    }

    #[test]
    fn settings_and_defaults() {
        assert_eq!(parse(""), Ok(Config::default()));
        let set = parse(r#"{"actions": ["reclaim"], "resources": ["mem", {"name": "gpu", "unit": 500}]}"#).unwrap();
        assert_eq!(set.actions, [Action::Reclaim]);
        assert_eq!(set.rules().iter().map(|r| r.unit).collect::<Vec<_>>(), [1_024, 500]);
        assert!(!set.shares_all());
        assert!(parse(r#"{"resources": ["mem", "gpu", "cpu"]}"#).unwrap().shares_all());
        assert_eq!(parse(r#"{"grace_s": 7}"#).map(|c| c.grace()), Ok(7_000));
    }

    #[test]
    fn nonsense_is_an_error_that_says_what_would_work() {
        for (json, says) in [
            (r#"{"actions": ["sing"]}"#, "allocate"),
            (r#"{"resources": []}"#, "1 to 8"),
            (r#"{"resources": ["gpu", "gpu"]}"#, "twice"),
            (r#"{"resources": [{"name": "gpu", "unit": 0}]}"#, "at least 1"),
            (r#"{"grace_s": -1}"#, "0 to"),
            (r#"{"saturation_thousandths": 999}"#, "1000 to"),
            (r#"{"quota": 1}"#, "quota"),
        ] {
            let why = parse(json).unwrap_err();
            assert!(why.contains(says), "{json}: {why}");
        }
    }

    #[test]
    fn the_schema_and_the_code_have_the_same_defaults() {
        let defaults = ephor_sdk::testing::schema_defaults(include_str!("../manifest.json"));
        assert_eq!(ephor_sdk::config::parse(&defaults), Ok(Config::default()));
    }
}
