//! The division against known cases, properties, and a slow, plain twin in exact fractions.

use super::*;
use proptest::prelude::*;

const GPU: i64 = 1_000;

/// Total; per queue (quota, weight, request, priority, usage in tenths) and the share expected; what remains.
type Known = (i64, &'static [(i64, i64, i64, i64, i64, i64)], i64);

/// Facts observed of another scheduler, in whole GPUs.
const KNOWN: &[(&str, Known)] = &[
    ("surplus by weight", (8, &[(2, 1, 6, 100, 0, 3), (2, 3, 6, 100, 0, 5)], 0)),
    ("largest remainder", (11, &[(2, 1, 10, 100, 0, 3), (2, 4, 10, 100, 0, 8)], 0)),
    ("older of equals", (11, &[(2, 2, 6, 100, 0, 6), (2, 2, 6, 100, 0, 5)], 0)),
    ("priority before weight", (6, &[(2, 100, 6, 1, 0, 2), (2, 1, 6, 2, 0, 4)], 0)),
    ("weight 0", (7, &[(3, 0, 5, 100, 0, 3)], 4)),
    (
        "unused quota is surplus",
        (
            10_000,
            &[
                (5_000, 5_000, 7_000, 100, 0, 6_000),
                (5_000, 5_000, 2_000, 100, 0, 2_000),
                (5_000, 5_000, 2_000, 100, 0, 2_000),
            ],
            0,
        ),
    ),
    ("past use", (12, &[(0, 1, 12, 100, 8, 2), (0, 1, 12, 100, 0, 10)], 0)),
];

#[test]
fn known_divisions() {
    for (what, (total, queues, remaining)) in KNOWN {
        let sibling =
            |(age, (quota, weight, request, priority, tenths, _)): (usize, &(i64, i64, i64, i64, i64, i64))| {
                let usage = tenths * USAGE_ONE / 10;
                let (quota, demand) = (quota * GPU, request * GPU);
                Sibling { quota, limit: None, demand, weight: *weight, priority: *priority, usage, age: age as i64 }
            };
        let siblings: Vec<Sibling> = queues.iter().enumerate().map(sibling).collect();
        let expected: Vec<i64> = queues.iter().map(|q| q.5 * GPU).collect();
        let found = divide(total * GPU, &siblings, Rules { unit: GPU, k: 1_000 });
        assert_eq!(found, (expected, remaining * GPU), "{what}");
    }
}

#[test]
fn huge_numbers_are_divided_like_small_ones() {
    let one = Sibling { demand: i64::MAX, weight: i64::MAX, usage: i64::MAX, ..Sibling::default() };
    let two = Sibling { age: 1, usage: 0, ..one };
    let (shares, left) = divide(i64::MAX, &[one, two], Rules { unit: 1, k: 1_000 });
    assert_eq!((shares, left), (vec![0, LARGEST], 0));
}

/// An exact fraction, never negative.
#[derive(Clone, Copy, Debug)]
struct Ratio(i128, i128);

impl Ratio {
    fn new(over: i128, under: i128) -> Self {
        let (mut a, mut b) = (over, under);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let by = a.abs().max(1);
        Self(over / by, under / by)
    }
    fn minus(self, other: Self) -> Self {
        Self::new(self.0 * other.1 - other.0 * self.1, self.1 * other.1)
    }
    fn plus(self, other: Self) -> Self {
        Self::new(self.0 * other.1 + other.0 * self.1, self.1 * other.1)
    }
    fn times(self, other: Self) -> Self {
        Self::new(self.0 * other.0, self.1 * other.1)
    }
    fn less(self, other: Self) -> bool {
        self.0 * other.1 < other.0 * self.1
    }
    fn floor(self, unit: i128) -> i128 {
        self.0 / (self.1 * unit) * unit
    }
}

/// The same division said as plainly as possible: weights as fractions, one queue, one round and one unit at a time.
fn twin(total: i64, siblings: &[Sibling], unit: i128, k: Ratio) -> Vec<i128> {
    let want = |s: &Sibling| i128::from(s.limit.map_or(s.demand, |l| l.min(s.demand)));
    let mut share: Vec<i128> = siblings.iter().map(|s| i128::from(s.quota).min(want(s))).collect();
    let mut left = (i128::from(total) - share.iter().sum::<i128>()).max(0);
    let mut priorities: Vec<i64> = siblings.iter().map(|s| s.priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    for priority in priorities.into_iter().rev() {
        let of_priority: Vec<usize> = (0..siblings.len()).filter(|i| siblings[*i].priority == priority).collect();
        let mut rest: Vec<(usize, Ratio)> = Vec::new();
        loop {
            let open: Vec<usize> = of_priority.iter().copied().filter(|i| share[*i] < want(&siblings[*i])).collect();
            let all: i128 = open.iter().map(|i| i128::from(siblings[*i].weight)).sum();
            if left == 0 || all == 0 {
                break;
            }
            let weight = |i: usize| {
                let w = Ratio::new(i128::from(siblings[i].weight), all);
                let u = Ratio::new(i128::from(siblings[i].usage), i128::from(USAGE_ONE));
                let eager = w.plus(k.times(w));
                let tired = k.times(u);
                if siblings[i].weight == 0 || eager.less(tired) { Ratio(0, 1) } else { eager.minus(tired) }
            };
            let sum = open.iter().fold(Ratio(0, 1), |sum, i| sum.plus(weight(*i)));
            if sum.0 == 0 {
                break;
            }
            rest.clear();
            let (offered, mut modest) = (left, false);
            for i in open {
                let slice = Ratio::new(offered, 1).times(weight(i)).times(Ratio(sum.1, sum.0));
                let lacks = Ratio(want(&siblings[i]) - share[i], 1);
                let give = if slice.less(lacks) {
                    rest.push((i, slice.minus(Ratio(slice.floor(unit), 1))));
                    slice.floor(unit)
                } else {
                    modest |= lacks.less(slice);
                    lacks.0
                };
                share[i] += give;
                left -= give;
            }
            if !modest {
                break;
            }
        }
        while let Some(best) = (0..rest.len()).filter(|at| rest[*at].1.0 > 0).reduce(|a, b| {
            let older = siblings[rest[b].0].age < siblings[rest[a].0].age;
            let (ra, rb) = (rest[a].1, rest[b].1);
            if ra.less(rb) || (!rb.less(ra) && older) { b } else { a }
        }) {
            let (i, _) = rest.swap_remove(best);
            let give = unit.min(left).min(want(&siblings[i]) - share[i]);
            share[i] += give;
            left -= give;
        }
    }
    share
}

prop_compose! {
    fn sibling()(quota in 0_i64..12, halves in 0_i64..30, limit in proptest::option::weighted(0.3, 0_i64..12),
        weight in 0_i64..5, priority in 0_i64..3, usage in prop_oneof![Just(0), 0_i64..=USAGE_ONE / 1000])
        -> Sibling {
        Sibling { quota: quota * GPU, limit: limit.map(|l| l * GPU), demand: halves * GPU / 2, weight, priority,
            usage: usage * 1000, age: 0 }
    }
}

fn family() -> impl Strategy<Value = Vec<Sibling>> {
    proptest::collection::vec(sibling(), 1..7).prop_map(|mut all| {
        all.iter_mut().enumerate().for_each(|(age, s)| s.age = age as i64);
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn the_twin_divides_alike(total in 0_i64..80, all in family(), k in 0_i64..4) {
        let total = total * GPU / 2;
        let found = divide(total, &all, Rules { unit: GPU, k: k * 500 });
        let expected = twin(total, &all, i128::from(GPU), Ratio::new(i128::from(k), 2));
        prop_assert_eq!(found.0.iter().map(|s| i128::from(*s)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn shares_keep_their_bounds(total in 0_i64..80, all in family(), k in 0_i64..4) {
        let total = total * GPU / 2;
        let (shares, left) = divide(total, &all, Rules { unit: GPU, k: k * 500 });
        let guaranteed: i64 = all.iter().map(|s| s.quota.min(s.wants())).sum();
        let sum: i64 = shares.iter().sum();
        // More than the total only where quotas alone pass it.
        prop_assert!(sum <= total.max(guaranteed), "{} of {}", sum, total);
        prop_assert_eq!(left, (total - sum).max(0));
        for (s, share) in all.iter().zip(&shares) {
            prop_assert!(*share <= s.wants());
            prop_assert!(*share >= s.quota.min(s.wants()), "quota is always within reach");
        }
        // Nobody with a weight is left wanting while there is something, unless its past use took the weight away.
        let wanting = |(s, share): (&Sibling, &i64)| s.weight > 0 && s.usage == 0 && *share < s.wants();
        prop_assert!(left == 0 || !all.iter().zip(&shares).any(wanting));
    }

    #[test]
    fn the_order_of_the_list_does_not_count(total in 0_i64..40, all in family(), turn in 0_usize..7) {
        let (shares, _) = divide(total * GPU, &all, Rules { unit: GPU, k: 1_000 });
        let by = turn % all.len();
        let mut turned = all.clone();
        turned.rotate_left(by);
        turned.reverse();
        let (mut again, _) = divide(total * GPU, &turned, Rules { unit: GPU, k: 1_000 });
        again.reverse();
        again.rotate_right(by);
        prop_assert_eq!(shares, again);
    }
}
