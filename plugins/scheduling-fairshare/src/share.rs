//! Fair share of one resource among siblings: guaranteed first, then what is over by priority and weight, in whole units.
//!
//! Everything is an integer: slices are fractions over a common denominator, so that the same numbers give the same
//! shares everywhere.

/// Past use is given in parts of a million of what the cluster has.
pub const USAGE_ONE: i64 = 1_000_000;

/// Most of a resource that is divided exactly; more counts as this much.
const LARGEST: i64 = 1_000_000_000_000_000;
/// Largest weight; a larger one counts as this.
const HEAVIEST: i64 = 100_000_000;

/// How surplus is divided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rules {
    /// What surplus is handed out in, in the resource's own unit (1,000 for whole GPUs); at least 1.
    pub unit: i64,
    /// How much past use lowers a weight, in thousandths.
    pub k: i64,
}

/// One of the queues that divide a resource.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sibling {
    /// What it may count on.
    pub quota: i64,
    /// What it may never pass; `None`: no limit.
    pub limit: Option<i64>,
    /// What it holds and waits for.
    pub demand: i64,
    /// Its part of the surplus against that of others of its priority; 0: none ever.
    pub weight: i64,
    /// Higher ones take surplus first.
    pub priority: i64,
    /// What it used lately, in parts of [`USAGE_ONE`].
    pub usage: i64,
    /// The smaller, the older; decides between equal ones.
    pub age: i64,
}

impl Sibling {
    /// The most that it could be given.
    fn wants(&self) -> i64 {
        self.demand.min(self.limit.unwrap_or(i64::MAX)).clamp(0, LARGEST)
    }

    fn weight(&self) -> i128 {
        i128::from(self.weight.clamp(0, HEAVIEST))
    }
}

/// The share of each, and what nobody takes. Quotas are met even where they pass the total together.
pub fn divide(total: i64, siblings: &[Sibling], rules: Rules) -> (Vec<i64>, i64) {
    let mut shares: Vec<i64> = siblings.iter().map(|s| s.quota.clamp(0, s.wants())).collect();
    let given = shares.iter().fold(0_i64, |sum, share| sum.saturating_add(*share));
    let mut left = total.clamp(0, LARGEST).saturating_sub(given).max(0);
    let mut order: Vec<usize> = (0..siblings.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(siblings[*at].priority), siblings[*at].age, *at));
    for bucket in order.chunk_by(|a, b| siblings[*a].priority == siblings[*b].priority) {
        if left == 0 {
            break;
        }
        Bucket { siblings, bucket, rules }.divide(&mut shares, &mut left);
    }
    (shares, left)
}

/// Siblings of one priority, from the oldest on.
struct Bucket<'a> {
    siblings: &'a [Sibling],
    bucket: &'a [usize],
    rules: Rules,
}

impl Bucket<'_> {
    fn divide(&self, shares: &mut [i64], left: &mut i64) {
        let mut remainders = vec![0_i128; self.bucket.len()];
        while self.round(shares, left, &mut remainders) {}
        // What rounding down left goes to the largest remainders, a unit each.
        let mut by_remainder: Vec<usize> = (0..self.bucket.len()).filter(|i| remainders[*i] > 0).collect();
        by_remainder.sort_by_key(|i| std::cmp::Reverse(remainders[*i]));
        for at in by_remainder.into_iter().map(|i| self.bucket[i]) {
            let give = self.rules.unit.min(*left).min(self.siblings[at].wants() - shares[at]);
            shares[at] += give;
            *left -= give;
        }
    }

    /// Offers each its slice of what is left; whether another round has something to hand out.
    fn round(&self, shares: &mut [i64], left: &mut i64, remainders: &mut [i128]) -> bool {
        let offered = i128::from(*left);
        let weights = self.weights(shares);
        let sum: i128 = weights.iter().sum();
        if sum == 0 {
            return false;
        }
        let unit = i128::from(self.rules.unit.max(1));
        let mut again = false;
        for ((at, weight), remainder) in self.bucket.iter().zip(weights).zip(remainders) {
            let wanted = i128::from(self.siblings[*at].wants() - shares[*at]);
            let slice = offered * weight;
            let give = if wanted * sum <= slice {
                // Who needs less than it is offered leaves the rest to the others.
                again |= wanted * sum < slice;
                *remainder = 0;
                wanted
            } else {
                let whole = slice / (sum * unit) * unit;
                *remainder = slice - whole * sum;
                whole
            };
            // It is at most what was left.
            let give = give as i64;
            shares[*at] += give;
            *left -= give;
        }
        again && *left > 0
    }

    /// The weight of each against the others, as whole numbers: `w + k (w - u)` where `w` is its part of the weights of
    /// those that want more, and never below 0. Who wants nothing more has none.
    fn weights(&self, shares: &[i64]) -> Vec<i128> {
        let wants_more = |at: &usize| shares[*at] < self.siblings[*at].wants();
        let sum: i128 = self.bucket.iter().filter(|at| wants_more(at)).map(|at| self.siblings[*at].weight()).sum();
        let k = i128::from(self.rules.k.clamp(0, 10_000));
        let weight = |at: &usize| {
            let sibling = &self.siblings[*at];
            let own = sibling.weight();
            if own == 0 || !wants_more(at) {
                return 0;
            }
            let usage = i128::from(sibling.usage.clamp(0, 1_000 * USAGE_ONE));
            (own * (1_000 + k) * i128::from(USAGE_ONE) - k * usage * sum).max(0)
        };
        self.bucket.iter().map(weight).collect()
    }
}

#[cfg(test)]
#[path = "share_tests.rs"]
mod tests;
