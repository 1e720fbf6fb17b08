//! The configuration: how many promises, how far to look, and who gives way.

use serde::Deserialize;
use serde::de::Error as _;

/// Most jobs that a host hands out at once.
const LARGEST_WINDOW: u32 = 10_000;
/// Longest grace that a host gives: a day.
const LONGEST_GRACE_S: u32 = 86_400;

/// What a site may set.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Which waiting jobs are promised a start.
    pub reservations: Reservations,
    /// Most jobs asked of the host at once, 1 to 10,000.
    #[serde(deserialize_with = "window")]
    pub window: u32,
    /// Most jobs tried behind the last promise of a cycle; 0: no bound. Without effect where every job has a promise.
    pub max_tested: u32,
    /// Most jobs of one user that a cycle looks at; 0: no bound.
    pub max_jobs_per_user: u32,
    /// Most jobs of one queue that a cycle looks at; 0: no bound.
    pub max_jobs_per_queue: u32,
    /// Who may make running jobs give way.
    pub preempt: Preempt,
    /// What becomes of those who give way, and so who may have to.
    pub preempt_mode: PreemptMode,
    /// How long they have to end, in seconds.
    #[serde(deserialize_with = "grace")]
    pub preempt_grace_s: u32,
    /// How long a job runs at the least before it may have to give way, in seconds.
    pub preempt_after_s: u32,
}

/// Who may make running jobs give way.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Preempt {
    /// Nobody.
    #[default]
    Never,
    /// A job in a queue of higher priority, those in queues of lower priority.
    Queue,
    /// A job with a QOS of higher priority, those of lower priority or without one.
    Qos,
}

/// What becomes of jobs that give way.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum PreemptMode {
    /// They wait again. Jobs that may not run twice are spared.
    #[default]
    Requeue,
    /// They wait again, those that may not run twice are cancelled.
    RequeueOrCancel,
    /// They are cancelled.
    Cancel,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            reservations: Reservations::PerCycle(1),
            window: 4_096,
            max_tested: 0,
            max_jobs_per_user: 0,
            max_jobs_per_queue: 0,
            preempt: Preempt::Never,
            preempt_mode: PreemptMode::Requeue,
            preempt_grace_s: 30,
            preempt_after_s: 0,
        }
    }
}

/// Who is promised a start.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "Written")]
pub enum Reservations {
    /// So many jobs from the first on, worked out anew in each cycle; at least 1.
    PerCycle(u32),
    /// Every job, when it comes, and for good.
    All,
}

/// How a number of promises is written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u32),
    Word(String),
}

impl TryFrom<Written> for Reservations {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Number(0) => Err("reservations must be at least 1; for none use scheduling-fifo".to_owned()),
            Written::Number(n) => Ok(Self::PerCycle(n)),
            Written::Word(word) if word == "all" => Ok(Self::All),
            Written::Word(word) => Err(format!("reservations must be a number or \"all\", not {word:?}")),
        }
    }
}

fn window<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let n = u32::deserialize(from)?;
    if (1..=LARGEST_WINDOW).contains(&n) {
        Ok(n)
    } else {
        Err(D::Error::custom(format!("window must be 1 to {LARGEST_WINDOW}, not {n}")))
    }
}

fn grace<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let n = u32::deserialize(from)?;
    if n <= LONGEST_GRACE_S {
        Ok(n)
    } else {
        Err(D::Error::custom(format!("preempt_grace_s must be 0 to {LONGEST_GRACE_S}, not {n}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Config, String> {
        ephor_sdk::config::parse(json)
    }

    #[test]
    fn numbers_words_and_defaults() {
        assert_eq!(parse(""), Ok(Config::default()));
        assert_eq!(parse(r#"{"reservations": 7}"#).map(|c| c.reservations), Ok(Reservations::PerCycle(7)));
        assert_eq!(parse(r#"{"reservations": "all"}"#).map(|c| c.reservations), Ok(Reservations::All));
        let both = parse(r#"{"max_jobs_per_user": 3, "max_jobs_per_queue": 4}"#);
        assert_eq!(both.map(|c| (c.max_jobs_per_user, c.max_jobs_per_queue)), Ok((3, 4)));
        assert_eq!(parse(r#"{"window": 5, "max_tested": 9}"#).map(|c| (c.window, c.max_tested)), Ok((5, 9)));
    }

    #[test]
    fn nonsense_is_an_error_that_says_what_would_work() {
        assert!(parse(r#"{"reservations": 0}"#).unwrap_err().contains("at least 1"));
        assert!(parse(r#"{"reservations": "some"}"#).unwrap_err().contains("\"all\""));
        assert!(parse(r#"{"window": 10001}"#).unwrap_err().contains("1 to 10000"));
        assert!(parse(r#"{"preempt_grace_s": 86401}"#).unwrap_err().contains("0 to 86400"));
        assert!(parse(r#"{"preempt": "all"}"#).unwrap_err().contains("queue"));
        assert!(parse(r#"{"windows": 1}"#).unwrap_err().contains("windows"));
    }

    #[test]
    fn the_schema_and_the_code_have_the_same_defaults() {
        let defaults = ephor_sdk::testing::schema_defaults(include_str!("../manifest.json"));
        assert_eq!(ephor_sdk::config::parse(&defaults), Ok(Config::default()));
    }
}
