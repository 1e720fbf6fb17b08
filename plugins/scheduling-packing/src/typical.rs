//! What is typical: the requests that wait and run, merged into a few with weights.

use crate::request::{Kinds, Request};
use std::collections::BTreeMap;

/// A request that stands for many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Typical {
    /// Their mean.
    pub request: Request,
    /// How many there are.
    pub count: i64,
}

/// Requests that are looked upon as one: what they differ in is less than a quarter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Alike {
    kinds: Kinds,
    gpus: i64,
    part: i64,
    cpu: i64,
}

/// Sums over requests that are alike.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: i64,
    cpu: i64,
    mem: i64,
    part: i64,
}

/// The requests counted, at most `most` of them, the most frequent first. Rare ones count with the most similar one that
/// takes the same kinds of GPU; where there is none they are left out.
pub fn typical(requests: impl IntoIterator<Item = (Request, i64)>, most: usize) -> Vec<Typical> {
    let mut groups: BTreeMap<Alike, Sum> = BTreeMap::new();
    for (request, count) in requests.into_iter().filter(|(_, count)| *count > 0) {
        let Request { cpu, mem, gpus, part, kinds } = request;
        let alike = Alike { kinds, gpus, part: coarse(part), cpu: coarse(cpu) };
        groups.entry(alike).or_default().add(Sum { count, cpu: cpu * count, mem: mem * count, part: part * count });
    }
    let mut groups: Vec<(Alike, Sum)> = groups.into_iter().collect();
    groups.sort_by_key(|(alike, sum)| (-sum.count, *alike));
    let rare = groups.split_off(most.min(groups.len()));
    for (alike, sum) in rare {
        let same = groups.iter_mut().filter(|(other, _)| other.kinds == alike.kinds);
        if let Some((_, group)) = same.min_by_key(|(other, _)| alike.distance(other)) {
            group.add(sum);
        }
    }
    groups.iter().map(|(alike, sum)| sum.mean(alike)).collect()
}

/// A number as far as its three highest binary digits tell.
pub fn coarse(n: i64) -> i64 {
    let digits = 64 - n.max(0).leading_zeros();
    n >> digits.saturating_sub(3) << digits.saturating_sub(3)
}

impl Alike {
    /// How much two groups differ: more GPUs count most, a whole core as much as half a GPU.
    fn distance(&self, other: &Self) -> i64 {
        let gpu = (self.gpus * self.part - other.gpus * other.part).abs();
        (self.gpus - other.gpus).abs() * 100_000 + gpu + (self.cpu - other.cpu).abs() / 2
    }
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.cpu += other.cpu;
        self.mem += other.mem;
        self.part += other.part;
    }

    fn mean(&self, alike: &Alike) -> Typical {
        let Self { count, cpu, mem, part } = *self;
        // Groups are made of at least one request.
        let each = |sum: i64| sum / count.max(1);
        let request =
            Request { cpu: each(cpu), mem: each(mem), gpus: alike.gpus, part: each(part), kinds: alike.kinds };
        Typical { request, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_ones_become_one_and_rare_ones_join_them() {
        let request = |cpu, gpu| Request::new(cpu, 10, gpu, Kinds::ANY);
        let rare = Request::new(1000, 10, 1000, Kinds::of(&[1]));
        let counted = [(request(11_000, 1000), 4), (request(11_900, 1000), 4), (request(4000, 500), 3), (rare, 1)];
        let all = typical(counted, 9);
        assert_eq!(all.iter().map(|t| t.count).collect::<Vec<_>>(), [8, 3, 1]);
        assert_eq!(all[0].request.cpu, 11_450);
        let few = typical(counted.into_iter().chain([(request(3000, 500), 1)]), 2);
        assert_eq!(few.iter().map(|t| (t.count, t.request.part)).collect::<Vec<_>>(), [(8, 1000), (4, 500)]);
    }

    #[test]
    fn three_digits() {
        assert_eq!([0, 1, 7, 9, 11_300, 1000].map(coarse), [0, 1, 7, 8, 10_240, 896]);
    }
}
