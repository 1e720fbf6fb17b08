//! Several policies or settings on one trace, side by side; with shaken times, so that noise wins nothing.

use crate::driver::Observer;
use crate::queues::Missed;
use crate::report::Report;
use crate::settings::BadSetting;
use crate::simulate::{Choice, Finished, Input, Options, SimulateError};
use crate::workload::Estimates;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Most shaken copies of a trace.
pub const SHAKES: u32 = 1000;
/// Most runs side by side.
pub const RUNS: usize = 100;

/// One of the runs, as it was written.
#[derive(Clone, Debug)]
pub struct Run {
    /// As it was written.
    pub text: String,
    /// What it means.
    pub choice: Choice,
    /// The cluster is that of this file; `None`: as the other options say.
    pub cluster: Option<PathBuf>,
}

/// A text that is no run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRun {
    /// A setting of it.
    #[error("in the run '{0}': {1}")]
    Setting(String, BadSetting),
    /// Its estimates.
    #[error("in the run '{0}': '{1}' are no estimates; take max, kill or exact")]
    Estimates(String, String),
    /// Whether its jobs may be requeued.
    #[error("in the run '{0}': requeue is '{1}'; it is yes or no")]
    Requeue(String, String),
    /// It names no policy.
    #[error(
        "the run '{0}' names no scheduling policy; write NAME or NAME,KEY=VALUE, such as backfill,reservations=all"
    )]
    Policy(String),
}

impl Run {
    /// Reads `NAME[,KEY=VALUE]...`: a scheduling policy and settings. `priority`, `accounting`, `estimates`, `requeue` and
    /// `cluster` are not settings but choose those of the run. What a run does not say is as in `common`.
    ///
    /// # Errors
    /// See [`BadRun`].
    pub fn parse(text: &str, common: &Choice) -> Result<Self, BadRun> {
        let mut parts = text.split(',').map(str::trim);
        let scheduling = parts.next().unwrap_or_default();
        if scheduling.is_empty() || scheduling.contains('=') {
            return Err(BadRun::Policy(text.to_owned()));
        }
        let mut choice = Choice { scheduling: scheduling.to_owned(), ..common.clone() };
        let mut cluster = None;
        for part in parts {
            match part.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
                Some(("priority", name)) => choice.priority = Some(name.to_owned()),
                Some(("accounting", name)) => choice.accounting = Some(name.to_owned()),
                Some(("estimates", name)) => {
                    let known = Estimates::NAMES.iter().find(|(_, n)| *n == name);
                    let bad = || BadRun::Estimates(text.to_owned(), name.to_owned());
                    choice.estimates = known.ok_or_else(bad)?.0;
                }
                Some(("requeue", value)) => {
                    choice.requeue = match value {
                        "yes" => true,
                        "no" => false,
                        _ => return Err(BadRun::Requeue(text.to_owned(), value.to_owned())),
                    };
                }
                Some(("cluster", path)) => cluster = Some(PathBuf::from(path)),
                _ => choice.settings.set(part).map_err(|why| BadRun::Setting(text.to_owned(), why))?,
            }
        }
        Ok(Self { text: text.to_owned(), choice, cluster })
    }
}

/// How often and from which seed on the times are shaken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shaken {
    /// Copies of the trace, each with other times.
    pub copies: u32,
    /// The first copy has this seed, the next the one after it.
    pub seed: u64,
}

/// Smallest, middle and largest of several values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Smallest.
    pub min: f64,
    /// Of n sorted values the one with index floor((n - 1) / 2).
    pub median: f64,
    /// Largest.
    pub max: f64,
}

impl Spread {
    /// Of these values; zeros where there are none.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
        let last = sorted.len().saturating_sub(1);
        Self { min: at(0), median: at(last / 2), max: at(last) }
    }
}

/// How one run went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// As it was written.
    pub run: String,
    /// On the trace as it is.
    pub report: Report,
    /// Figures over the shaken copies, by the name that they have in the report.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub spread: BTreeMap<&'static str, Spread>,
    /// On how many shaken copies it alone had the shortest mean wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_in: Option<u32>,
    /// What queues missed of what they are promised, over time.
    #[serde(skip)]
    pub missed: Vec<Missed>,
}

/// The comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The trace, as it was named.
    pub trace: String,
    /// Shaken copies.
    pub shakes: u32,
    /// Seed of the first of them.
    pub seed: u64,
    /// One for each run, in the order in which they were given.
    pub runs: Vec<Line>,
}

/// A figure of a report, with its name.
type Measure = (&'static str, fn(&Report) -> f64);

/// Figures of which spreads are made.
const SPREAD: [Measure; 7] = [
    ("mean_wait_s", |r| r.mean_wait_s),
    ("p90_wait_s", |r| r.p90_wait_s as f64),
    ("p99_wait_s", |r| r.p99_wait_s as f64),
    ("max_wait_s", |r| r.max_wait_s as f64),
    ("mean_bounded_slowdown", |r| r.mean_bounded_slowdown),
    ("utilisation", |r| r.utilisation),
    ("loss_of_capacity", |r| r.loss_of_capacity),
];

/// Runs all of them; each sees the same trace and the same shaken copies. `next` is told before each simulation: the run,
/// and how many of all simulations are over.
///
/// # Errors
/// See [`SimulateError`].
pub fn compare(
    options: &Options,
    runs: &[Run],
    shaken: Shaken,
    observer: &mut dyn Observer,
    next: &mut dyn FnMut(&str, usize),
) -> Result<Comparison, SimulateError> {
    if shaken.copies > SHAKES || runs.len() > RUNS {
        let text = format!("at most {RUNS} runs can be compared, and a trace be shaken at most {SHAKES} times");
        return Err(SimulateError::Options(text));
    }
    if shaken.copies > 0 && options.fill.is_some() {
        let text = "a cluster that is filled has no times to be shaken; leave --shake or --fill out";
        return Err(SimulateError::Options(text.into()));
    }
    // Everything is read before anything runs: a mistake in the last run shows at once.
    let inputs = inputs(options, runs)?;
    let mut lines = Vec::new();
    let mut waits: Vec<Vec<f64>> = Vec::new();
    let mut done = 0;
    for run in runs {
        let input = &inputs[&run.cluster];
        next(&run.text, done);
        let Finished { report, missed, .. } = input.run(&run.choice, None, observer)?;
        done += 1;
        let mut copies = Vec::new();
        for copy in 0..u64::from(shaken.copies) {
            next(&run.text, done);
            copies.push(input.run(&run.choice, Some(shaken.seed.wrapping_add(copy)), observer)?.report);
            done += 1;
        }
        let figure = |of: fn(&Report) -> f64| Spread::of(&copies.iter().map(of).collect::<Vec<_>>());
        let spread = match copies.is_empty() {
            true => BTreeMap::new(),
            false => SPREAD.iter().map(|(name, of)| (*name, figure(*of))).collect(),
        };
        waits.push(copies.iter().map(|report| report.mean_wait_s).collect());
        lines.push(Line { run: run.text.clone(), report, spread, best_in: None, missed });
    }
    if shaken.copies > 0 {
        let best = best_in(&waits);
        lines.iter_mut().zip(best).for_each(|(line, count)| line.best_in = Some(count));
    }
    let trace = options.trace.display().to_string();
    Ok(Comparison { trace, shakes: shaken.copies, seed: shaken.seed, runs: lines })
}

/// The trace on each of the clusters.
fn inputs(options: &Options, runs: &[Run]) -> Result<BTreeMap<Option<PathBuf>, Input>, SimulateError> {
    let mut inputs = BTreeMap::new();
    for run in runs {
        if inputs.contains_key(&run.cluster) {
            continue;
        }
        let on = match &run.cluster {
            None => options.clone(),
            some => Options { cluster: some.clone(), processors: None, nodes: None, ..options.clone() },
        };
        inputs.insert(run.cluster.clone(), Input::read(&on)?);
    }
    Ok(inputs)
}

/// On how many copies each run alone has the smallest value; `waits[run][copy]`.
fn best_in(waits: &[Vec<f64>]) -> Vec<u32> {
    let mut best = vec![0; waits.len()];
    for copy in 0..waits.first().map_or(0, Vec::len) {
        let least = waits.iter().map(|run| run[copy]).fold(f64::INFINITY, f64::min);
        let winners: Vec<usize> = (0..waits.len()).filter(|run| waits[*run][copy] <= least).collect();
        if let [one] = winners.as_slice() {
            best[*one] += 1;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use ephor_model::Role;

    #[test]
    fn runs_are_read_as_they_are_written() {
        let run = Run::parse(
            "backfill, reservations=all,priority=multifactor,estimates=kill,priority.age_weight=3",
            &Choice::default(),
        );
        let run = run.unwrap();
        assert_eq!((run.choice.scheduling.as_str(), run.choice.priority.as_deref()), ("backfill", Some("multifactor")));
        assert_eq!(run.choice.estimates, Estimates::Kill);
        assert_eq!(run.choice.settings.json(Role::Scheduling), r#"{"reservations":"all"}"#);
        assert_eq!(run.choice.settings.json(Role::Priority), r#"{"age_weight":3}"#);
        let run = Run::parse("fairshare,cluster=a/strict.toml,requeue=yes", &Choice::default()).unwrap();
        assert_eq!((run.cluster, run.choice.requeue), (Some("a/strict.toml".into()), true));
        for (text, part) in [
            ("", "names no scheduling policy"),
            ("reservations=all", "names no scheduling policy"),
            ("fifo,x", "'x' is no setting"),
            ("fifo,estimates=none", "'none' are no estimates"),
            ("fifo,requeue=maybe", "it is yes or no"),
        ] {
            let error = Run::parse(text, &Choice::default()).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn spreads_and_winners() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0, 9.0]), Spread { min: 1.0, median: 2.0, max: 9.0 });
        assert_eq!(best_in(&[vec![1.0, 5.0, 2.0], vec![2.0, 4.0, 2.0]]), [1, 1]);
        assert_eq!(best_in(&[]), [] as [u32; 0]);
    }
}
