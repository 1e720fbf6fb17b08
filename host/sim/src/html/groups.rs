//! Waits of groups of jobs: by size, by queue, by user.

use crate::metrics::{Ran, at, bounded_slowdown};
use crate::workload::Workload;
use std::collections::BTreeMap;

/// Groups that a table shows; the others are one line together.
const SHOWN: usize = 15;

/// One group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    pub name: String,
    pub jobs: usize,
    pub mean: f64,
    pub median: i64,
    pub p90: i64,
    pub max: i64,
    pub slowdown: f64,
    /// Its part of all processor (or GPU) seconds.
    pub work: f64,
}

/// A job that ran, with its place in the workload.
pub(super) type Placed = (usize, Ran);

/// By size: 1, 2, 3 to 4, 5 to 8 and so on, in whole units.
pub(super) fn by_size(jobs: &[Placed], parts: i64) -> Vec<Group> {
    let class = |ran: &Ran| match ran.size {
        size if size < parts => 0,
        size => 1 + (size.div_euclid(parts) as u64).next_power_of_two().trailing_zeros(),
    };
    let name = |class: u32| match class {
        0 => "below 1".to_owned(),
        1 | 2 => (1u64 << (class - 1)).to_string(),
        _ => format!("{}–{}", (1u64 << (class - 2)) + 1, 1u64 << (class - 1)),
    };
    grouped(jobs, |(_, ran)| class(ran)).into_iter().map(|(key, group)| Group { name: name(key), ..group }).collect()
}

/// By queue, the largest first.
pub(super) fn by_queue(jobs: &[Placed], workload: &Workload) -> Vec<Group> {
    let groups = grouped(jobs, |(place, _)| workload.jobs[*place].spec.queue.clone());
    largest(jobs, groups, |(place, _)| workload.jobs[*place].spec.queue.clone())
}

/// By user, the largest first.
pub(super) fn by_user(jobs: &[Placed], workload: &Workload) -> Vec<Group> {
    let user = |(place, _): &Placed| workload.jobs[*place].spec.owner.uid.to_string();
    largest(jobs, grouped(jobs, user), user)
}

fn grouped<K: Ord>(jobs: &[Placed], key: impl Fn(&Placed) -> K) -> BTreeMap<K, Group> {
    let mut members: BTreeMap<K, Vec<Ran>> = BTreeMap::new();
    jobs.iter().for_each(|job| members.entry(key(job)).or_default().push(job.1));
    let all = work(jobs.iter().map(|(_, ran)| ran)).max(1.0);
    members.into_iter().map(|(key, ran)| (key, group(String::new(), &ran, all))).collect()
}

/// The groups with most jobs by name, and the rest as one.
fn largest(jobs: &[Placed], groups: BTreeMap<String, Group>, key: impl Fn(&Placed) -> String) -> Vec<Group> {
    let mut named: Vec<Group> = groups.into_iter().map(|(name, group)| Group { name, ..group }).collect();
    named.sort_by(|a, b| b.jobs.cmp(&a.jobs).then(a.name.cmp(&b.name)));
    if named.len() <= SHOWN {
        return named;
    }
    let count = named.len() - SHOWN;
    named.truncate(SHOWN);
    let shown: Vec<&str> = named.iter().map(|g| g.name.as_str()).collect();
    let rest: Vec<Ran> = jobs.iter().filter(|job| !shown.contains(&key(job).as_str())).map(|(_, ran)| *ran).collect();
    let all = work(jobs.iter().map(|(_, ran)| ran)).max(1.0);
    named.push(group(format!("{count} others"), &rest, all));
    named
}

fn work<'a>(jobs: impl Iterator<Item = &'a Ran>) -> f64 {
    jobs.map(|ran| ran.run as f64 * ran.size as f64).sum()
}

fn group(name: String, ran: &[Ran], all: f64) -> Group {
    let mut waits: Vec<i64> = ran.iter().map(|j| j.start - j.submit).collect();
    waits.sort_unstable();
    let count = ran.len().max(1) as f64;
    Group {
        name,
        jobs: ran.len(),
        mean: waits.iter().map(|w| *w as f64).sum::<f64>() / count,
        median: at(&waits, 1, 2).unwrap_or(0),
        p90: at(&waits, 9, 10).unwrap_or(0),
        max: waits.last().copied().unwrap_or(0),
        slowdown: ran.iter().map(bounded_slowdown).sum::<f64>() / count,
        work: work(ran.iter()) / all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(wait: i64, size: i64) -> Placed {
        (0, Ran { submit: 0, start: wait, run: 10, size })
    }

    #[test]
    fn sizes_fall_into_classes() {
        let jobs: Vec<Placed> = [1, 2, 3, 4, 5, 8, 9].into_iter().map(|size| ran(size, size)).collect();
        let groups = by_size(&jobs, 1);
        let shown: Vec<_> = groups.iter().map(|g| (g.name.as_str(), g.jobs, g.max)).collect();
        assert_eq!(shown, [("1", 1, 1), ("2", 1, 2), ("3–4", 2, 4), ("5–8", 2, 8), ("9–16", 1, 9)]);
        let shares = by_size(&[ran(0, 460), ran(0, 1000), ran(0, 8000)], 1000);
        assert_eq!(shares.iter().map(|g| g.name.as_str()).collect::<Vec<_>>(), ["below 1", "1", "5–8"]);
        assert!((groups.iter().map(|g| g.work).sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
