//! Choosing by one sum: the fewest nodes that have enough of one thing together.

use super::Item;
use crate::fit::Fit;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The places of as few items as have `need` together, at least and at most as many as `range` says, and of those sets
/// the first in the order of the items. Ascending.
pub(super) fn fewest(
    items: &[Item],
    weight: impl Fn(&Fit) -> u32,
    need: u64,
    range: (usize, usize),
) -> Option<Vec<usize>> {
    let weight = |index: usize| u64::from(weight(&items[index].fit));
    let (required, others): (Vec<usize>, Vec<usize>) = (0..items.len()).partition(|i| items[*i].required);
    let base: u64 = required.iter().map(|i| weight(*i)).sum();
    let fewest = range.0.max(required.len());
    let most = range.1.min(items.len());
    if fewest > most {
        return None;
    }
    let mut count = fewest - required.len();
    let mut chosen = required;
    if base + others[..count].iter().map(|i| weight(*i)).sum::<u64>() >= need {
        chosen.extend(&others[..count]);
    } else {
        let mut best = others.clone();
        best.sort_unstable_by_key(|i| (Reverse(weight(*i)), *i));
        let mut sum = base + best[..count].iter().map(|i| weight(*i)).sum::<u64>();
        while sum < need {
            if chosen.len() + count == most {
                return None;
            }
            sum += weight(best[count]);
            count += 1;
        }
        chosen.extend(first_of(&others, &best[..count], weight, sum - need));
    }
    chosen.sort_unstable();
    Some(chosen)
}

/// The first set of `best.len()` places whose weight is that of `best`, less `spare` at most.
fn first_of(others: &[usize], best: &[usize], weight: impl Fn(usize) -> u64, mut spare: u64) -> Vec<usize> {
    // Those still needed to reach the sum: always the heaviest of the places not yet passed.
    let mut needed: BTreeSet<(u64, Reverse<usize>)> = best.iter().map(|i| (weight(*i), Reverse(*i))).collect();
    let mut chosen = Vec::with_capacity(best.len());
    for &i in others {
        if needed.remove(&(weight(i), Reverse(i))) {
            chosen.push(i);
        } else if let Some(&lightest) = needed.first()
            && lightest.0 - weight(i) <= spare
        {
            // It can stand in for the lightest of them.
            spare -= lightest.0 - weight(i);
            needed.remove(&lightest);
            chosen.push(i);
        }
    }
    chosen
}
