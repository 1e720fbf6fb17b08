//! Choosing by two sums: the fewest nodes that have enough tasks' room and enough GPUs together.
//!
//! Of nodes with equally many GPUs those with more room for tasks are never worse, so that only the number taken of
//! each such group is open; a table over these numbers finds the answer. Among equal answers it is not the order
//! wished for that decides, except within a group.

use super::Item;
use crate::work::{NoFit, Work};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Cells that the table may have; beyond it a rule of thumb decides, which may use more nodes than are needed or miss
/// a set that would do.
const CELLS: usize = 4_000_000;

/// The places of as few items as have `tasks` and `gpus` together, as many as `range` allows. Ascending.
pub(super) fn fewest(
    items: &[Item],
    tasks: u64,
    gpus: u64,
    range: (usize, usize),
    work: &mut Work,
) -> Result<Option<Vec<usize>>, NoFit> {
    let (mut chosen, others): (Vec<usize>, Vec<usize>) = (0..items.len()).partition(|i| items[*i].required);
    let sum = |places: &[usize], of: fn(&Item) -> u32| places.iter().map(|i| u64::from(of(&items[*i]))).sum::<u64>();
    let most = range.1.min(items.len());
    let fewest = range.0.max(chosen.len());
    if fewest > most {
        return Ok(None);
    }
    let (low, high) = (fewest - chosen.len(), most - chosen.len());
    let tasks = tasks.saturating_sub(sum(&chosen, |item| item.fit.tasks));
    let gpus = gpus.saturating_sub(sum(&chosen, |item| item.fit.gpus));
    let simple = &others[..low];
    let found = if sum(simple, |item| item.fit.tasks) >= tasks && sum(simple, |item| item.fit.gpus) >= gpus {
        Some(simple.to_vec())
    } else {
        Table::of(items, &others, gpus).search(tasks, gpus, low, high, work)?
    };
    Ok(found.map(|found| {
        chosen.extend(found);
        chosen.sort_unstable();
        chosen
    }))
}

/// Items by how many GPUs they have, those with most room for tasks first.
struct Table<'a> {
    items: &'a [Item],
    groups: BTreeMap<u64, Vec<usize>>,
}

impl<'a> Table<'a> {
    fn of(items: &'a [Item], others: &[usize], gpus: u64) -> Self {
        let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for &i in others {
            groups.entry(u64::from(items[i].fit.gpus).min(gpus)).or_default().push(i);
        }
        for group in groups.values_mut() {
            group.sort_by_key(|i| Reverse(items[*i].fit.tasks));
        }
        Self { items, groups }
    }

    fn tasks(&self, place: usize) -> u64 {
        u64::from(self.items[place].fit.tasks)
    }

    /// The places of between `low` and `high` items, as few as will do.
    fn search(
        &self,
        tasks: u64,
        gpus: u64,
        low: usize,
        high: usize,
        work: &mut Work,
    ) -> Result<Option<Vec<usize>>, NoFit> {
        // Those with most tasks and those with most GPUs together do, so that no more are needed.
        let by_tasks = self.heaviest(|i| self.tasks(i), tasks, high);
        let by_gpus = self.heaviest(|i| u64::from(self.items[i].fit.gpus), gpus, high);
        let (Some(by_tasks), Some(by_gpus)) = (by_tasks, by_gpus) else { return Ok(None) };
        let enough = high.min(low.max(by_tasks + by_gpus));
        let width = gpus as usize + 1;
        let cells = (enough + 1).saturating_mul(width).saturating_mul(self.groups.len());
        if cells > CELLS {
            return Ok(self.by_thumb(tasks, gpus, low, high));
        }
        work.take(cells)?;
        Ok(self.by_table(tasks, width, low, enough))
    }

    /// How many of the heaviest items reach `need`; `None`: more than `high`.
    fn heaviest(&self, weight: impl Fn(usize) -> u64, need: u64, high: usize) -> Option<usize> {
        let mut weights: Vec<u64> = self.groups.values().flatten().map(|i| weight(*i)).collect();
        weights.sort_unstable_by_key(|w| Reverse(*w));
        let mut left = need;
        let mut count = 0;
        while left > 0 {
            if count == high.min(weights.len()) {
                return None;
            }
            left = left.saturating_sub(weights[count]);
            count += 1;
        }
        Some(count)
    }

    fn by_table(&self, tasks: u64, width: usize, low: usize, high: usize) -> Option<Vec<usize>> {
        // best[count * width + gpus]: most tasks of `count` items that have `gpus` or more (the last column: enough).
        let mut best: Vec<Option<u64>> = vec![None; (high + 1) * width];
        best[0] = Some(0);
        // For each group and cell how many of the group were taken to get there.
        let mut taken: Vec<Vec<(u32, u32)>> = Vec::with_capacity(self.groups.len());
        for (&gpus, group) in &self.groups {
            let mut next: Vec<Option<u64>> = vec![None; best.len()];
            let mut from = vec![(0, 0); best.len()];
            let mut room = 0;
            for take in 0..=group.len().min(high) {
                room += if take == 0 { 0 } else { self.tasks(group[take - 1]) };
                for count in 0..=high - take {
                    for have in 0..width {
                        let Some(before) = best[count * width + have] else { continue };
                        let column = (have + take * gpus as usize).min(width - 1);
                        let cell = (count + take) * width + column;
                        if next[cell].is_none_or(|old| old < before + room) {
                            next[cell] = Some(before + room);
                            // Groups of more than 2^32 nodes do not exist.
                            from[cell] = (take as u32, have as u32);
                        }
                    }
                }
            }
            best = next;
            taken.push(from);
        }
        let enough = |count: usize| best[count * width + width - 1].is_some_and(|most| most >= tasks);
        let mut count = (low..=high).find(|count| enough(*count))?;
        let mut column = width - 1;
        let mut chosen = Vec::with_capacity(count);
        for ((_, group), from) in self.groups.iter().zip(&taken).rev() {
            let (take, have) = from[count * width + column];
            chosen.extend(&group[..take as usize]);
            count -= take as usize;
            column = have as usize;
        }
        Some(chosen)
    }

    /// Those with most of the one until there is enough of it, then those with most of the other; whichever of the two
    /// ways round takes fewer.
    fn by_thumb(&self, tasks: u64, gpus: u64, low: usize, high: usize) -> Option<Vec<usize>> {
        let have = |i: usize| [self.tasks(i), u64::from(self.items[i].fit.gpus)];
        let one_way = |first: usize| {
            let mut left = [tasks, gpus];
            let mut rest: Vec<usize> = self.groups.values().flatten().copied().collect();
            let mut chosen = Vec::new();
            for of in [first, 1 - first] {
                rest.sort_unstable_by_key(|i| (Reverse((have(*i)[of], have(*i)[1 - of])), *i));
                let enough = |left: &[u64; 2], taken: usize| left[of] == 0 && (of == first || taken >= low);
                let mut taken = 0;
                while taken < rest.len() && !enough(&left, chosen.len()) {
                    let has = have(rest[taken]);
                    left = [left[0].saturating_sub(has[0]), left[1].saturating_sub(has[1])];
                    chosen.push(rest[taken]);
                    taken += 1;
                }
                rest.drain(..taken);
            }
            (left == [0, 0] && (low..=high).contains(&chosen.len())).then_some(chosen)
        };
        [one_way(0), one_way(1)].into_iter().flatten().min_by_key(Vec::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::Fit;

    #[test]
    fn a_table_too_large_is_replaced_by_a_rule_of_thumb_that_keeps_the_sums() {
        let fit = |i: u32| Fit { tasks: 1 + i * 7 % 64, gpus: i % 9 };
        let items: Vec<Item> = (0..4000).map(|i| Item { fit: fit(i), required: i == 5 }).collect();
        let mut work = Work(0);
        let chosen = fewest(&items, 9000, 9000, (1, 4000), &mut work).unwrap().unwrap();
        assert!(chosen.contains(&5) && chosen.is_sorted_by(|a, b| a < b));
        assert!(chosen.iter().map(|i| items[*i].fit.tasks).sum::<u32>() >= 9000);
        assert!(chosen.iter().map(|i| items[*i].fit.gpus).sum::<u32>() >= 9000);
        // The 444 with eight GPUs, the 444 with seven, and 390 with six are the least that have 9,000 of them.
        assert!(chosen.len() <= 1280, "{}", chosen.len());
    }
}
