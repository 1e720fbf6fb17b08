//! What a schedule was like, in numbers: waits, slowdown, utilisation and the fingerprint of all starts.

use crate::fnv::Fnv;
use crate::sweep;

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
    /// What it held: processors or milli-GPUs.
    pub size: i64,
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
    /// The same for 99 of a hundred: the wait with index floor(99 (n - 1) / 100).
    pub p99_wait: i64,
    /// Longest wait.
    pub max_wait: i64,
    /// Mean of the waits.
    pub mean_wait: f64,
    /// Mean of max(1, (wait + run) / max(run, 10)).
    pub mean_bounded_slowdown: f64,
    /// Processor (or GPU) seconds used, of those that there were from the first submit to the last end.
    pub utilisation: f64,
    /// Part of all of them that was free while jobs that asked for at least as much waited: at each time the smaller of
    /// what is free and what the waiting ask for, over the same span.
    pub loss_of_capacity: f64,
    /// FNV-1a of the starts, in the order of the jobs.
    pub start_fnv: String,
}

impl Metrics {
    /// The metrics of these jobs, in this order, on that many processors or milli-GPUs.
    pub fn of(jobs: &[Ran], capacity: i64) -> Self {
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
            p90_wait: at(&waits, 9, 10).unwrap_or(0),
            p99_wait: at(&waits, 99, 100).unwrap_or(0),
            max_wait: waits.last().copied().unwrap_or(0),
            mean_wait: total_wait as f64 / count,
            mean_bounded_slowdown: slowdown / count,
            utilisation: utilisation(jobs, capacity),
            loss_of_capacity: loss(jobs, capacity),
            start_fnv: fnv.hex(),
        }
    }
}

/// Of n sorted values the one with index floor(part (n - 1) / whole).
pub fn at<T: Copy>(sorted: &[T], part: usize, whole: usize) -> Option<T> {
    sorted.get(sorted.len().saturating_sub(1) * part / whole).copied()
}

/// Bounded slowdown of one job.
pub fn bounded_slowdown(job: &Ran) -> f64 {
    let (wait, run) = (job.start - job.submit, job.run);
    ((wait + run) as f64 / run.max(SLOWDOWN_BOUND) as f64).max(1.0)
}

/// From the first submit to the last end.
fn span(jobs: &[Ran]) -> i64 {
    let first = jobs.iter().map(|j| j.submit).min().unwrap_or(0);
    let last = jobs.iter().map(|j| j.start + j.run).max().unwrap_or(0);
    last - first
}

fn utilisation(jobs: &[Ran], capacity: i64) -> f64 {
    let work: i128 = jobs.iter().map(|j| i128::from(j.run) * i128::from(j.size)).sum();
    let all = i128::from(span(jobs)) * i128::from(capacity);
    if all > 0 { work as f64 / all as f64 } else { 0.0 }
}

fn loss(jobs: &[Ran], capacity: i64) -> f64 {
    let all = i128::from(span(jobs)) * i128::from(capacity);
    let mut lost = 0i128;
    sweep::sweep(jobs, |level| {
        let free = (capacity - level.held).max(0);
        lost += i128::from(level.until - level.from) * i128::from(free.min(level.asked));
    });
    if all > 0 { lost as f64 / all as f64 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_out_by_hand() {
        let ran = |submit, start, run, size| Ran { submit, start, run, size };
        let metrics = Metrics::of(&[ran(0, 0, 20, 2), ran(5, 20, 5, 4), ran(6, 25, 15, 1)], 4);
        assert_eq!((metrics.jobs, metrics.total_wait, metrics.max_wait), (3, 34, 19));
        assert_eq!((metrics.p90_wait, metrics.p99_wait), (15, 15));
        // From 5 to 20 two of four are free and four or more are asked for; from 20 to 25 nothing is free.
        assert!((metrics.loss_of_capacity - 30.0 / 160.0).abs() < 1e-12);
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
