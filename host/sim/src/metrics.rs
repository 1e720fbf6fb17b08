//! What a schedule was like, in numbers: waits, slowdown, utilisation and the fingerprint of all starts.

use crate::fnv::Fnv;

/// Run times below this count as this in the bounded slowdown, in seconds.
const SLOWDOWN_BOUND: i64 = 10;

/// A job that ran, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// When it came.
    pub submit: i64,
    /// When it started.
    pub start: i64,
    /// How long it ran.
    pub run: i64,
    /// Its processors.
    pub processors: i64,
}

/// See the module. Everything over the jobs that ran, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    /// How many jobs ran.
    pub jobs: u64,
    /// Waits together.
    pub total_wait: i64,
    /// The wait that nine jobs of ten do not pass: of n sorted waits the one with index floor(9 (n - 1) / 10).
    pub p90_wait: i64,
    /// Longest wait.
    pub max_wait: i64,
    /// Mean of the waits.
    pub mean_wait: f64,
    /// Mean of max(1, (wait + run) / max(run, 10)).
    pub mean_bounded_slowdown: f64,
    /// Processor seconds used, of those that there were from the first submit to the last end.
    pub utilisation: f64,
    /// FNV-1a of the starts, in the order of the jobs.
    pub start_fnv: String,
}

impl Metrics {
    /// The metrics of these jobs, in this order, on that many processors.
    pub fn of(jobs: &[Ran], processors: i64) -> Self {
        let mut waits: Vec<i64> = jobs.iter().map(|j| j.start - j.submit).collect();
        let total_wait: i64 = waits.iter().fold(0, |sum, wait| sum.saturating_add(*wait));
        let slowdown: f64 = jobs.iter().map(bounded_slowdown).sum();
        let mut fnv = Fnv::default();
        jobs.iter().for_each(|j| fnv.number(j.start));
        waits.sort_unstable();
        let count = jobs.len().max(1) as f64;
        Self {
            jobs: jobs.len() as u64,
            total_wait,
            p90_wait: waits.get(waits.len().saturating_sub(1) * 9 / 10).copied().unwrap_or(0),
            max_wait: waits.last().copied().unwrap_or(0),
            mean_wait: total_wait as f64 / count,
            mean_bounded_slowdown: slowdown / count,
            utilisation: utilisation(jobs, processors),
            start_fnv: fnv.hex(),
        }
    }
}

fn bounded_slowdown(job: &Ran) -> f64 {
    let (wait, run) = (job.start - job.submit, job.run);
    ((wait + run) as f64 / run.max(SLOWDOWN_BOUND) as f64).max(1.0)
}

fn utilisation(jobs: &[Ran], processors: i64) -> f64 {
    let first = jobs.iter().map(|j| j.submit).min().unwrap_or(0);
    let last = jobs.iter().map(|j| j.start + j.run).max().unwrap_or(0);
    let work: i128 = jobs.iter().map(|j| i128::from(j.run) * i128::from(j.processors)).sum();
    let all = i128::from(last - first) * i128::from(processors);
    if all > 0 { work as f64 / all as f64 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_out_by_hand() {
        let ran = |submit, start, run, processors| Ran { submit, start, run, processors };
        let metrics = Metrics::of(&[ran(0, 0, 20, 2), ran(5, 20, 5, 4), ran(6, 25, 15, 1)], 4);
        assert_eq!((metrics.jobs, metrics.total_wait, metrics.max_wait), (3, 34, 19));
        assert_eq!(metrics.p90_wait, 15);
        assert!((metrics.mean_bounded_slowdown - (1.0 + 2.0 + 34.0 / 15.0) / 3.0).abs() < 1e-12);
        assert!((metrics.utilisation - 75.0 / 160.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_ran() {
        let metrics = Metrics::of(&[], 4);
        assert_eq!((metrics.jobs, metrics.total_wait, metrics.p90_wait, metrics.max_wait), (0, 0, 0, 0));
        assert_eq!(metrics.start_fnv, "cbf29ce484222325");
        assert_eq!((metrics.mean_wait, metrics.utilisation), (0.0, 0.0));
    }
}
