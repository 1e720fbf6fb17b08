//! What the jobs of each queue held over time, faded as the ledger is: kept at each change of what they hold, so that it
//! is known at any moment without a look at the jobs.

use crate::fold::boundary_before;
use crate::records::Fading;
use crate::rows::RowKey;
use crate::state::State;
use ephor_model::{Amounts, QueueId, Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Past use by the jobs of one queue; those of the queues below it count there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastUse {
    /// Amounts times seconds up to `at`, faded.
    pub held_s: Amounts,
    /// What its jobs hold since.
    pub holds: Amounts,
    /// The last change.
    pub at: Timestamp,
}

/// How much time past use is about, faded likewise: what a mean is divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastTime {
    /// Milliseconds up to `at`, faded.
    pub ms: i64,
    /// When that was, at first the first start of all; `None`: nothing ever started.
    pub at: Option<Timestamp>,
}

impl PastUse {
    /// Amounts times seconds up to now. Parts of a unit's second are lost at each change.
    fn until(&self, now: Timestamp, fading: Fading) -> Amounts {
        let mut named = self.holds.clone();
        self.held_s.iter().filter(|(id, _)| self.holds.get(*id) == 0).for_each(|(id, n)| named.set(id, n));
        let value = |id| fading.grown(self.held_s.get(id), self.holds.get(id), self.at, now);
        named.iter().map(|(id, _)| (id, value(id))).collect()
    }
}

impl PastTime {
    fn until(&self, now: Timestamp, fading: Fading) -> i64 {
        self.at.map_or(0, |at| fading.grown(self.ms, 1_000, at, now))
    }
}

impl Fading {
    /// What a value has become that grew by so much a second and faded at the boundaries on the way. They lie at the
    /// multiples of the period, so that it does not matter how often one looks.
    fn grown(self, value: i64, each_second: i64, from: Timestamp, now: Timestamp) -> i64 {
        let period = self.period.0;
        let passed = if self.fades() { now.0.div_euclid(period) - from.0.div_euclid(period) } else { 0 };
        if passed <= 0 {
            return value.saturating_add(seconds_of(each_second, now - from));
        }
        let first = Timestamp((from.0.div_euclid(period) + 1) * period);
        let last = boundary_before(now, period);
        let at_first = faded(value.saturating_add(seconds_of(each_second, first - from)), self.factor);
        let (factor, sum) = power(self.factor, (passed - 1) as u64);
        let between = faded(seconds_of(each_second, self.period), sum);
        faded(at_first, factor).saturating_add(between).saturating_add(seconds_of(each_second, now - last))
    }
}

/// So much for so long, in its unit times seconds.
fn seconds_of(amount: i64, time: Span) -> i64 {
    i64::try_from(i128::from(amount) * i128::from(time.0.max(0)) / 1_000).unwrap_or(i64::MAX)
}

/// What remains of past use after it faded by that factor, in parts of 2^32.
pub(crate) fn faded(past: i64, factor: u64) -> i64 {
    i64::try_from((i128::from(past) * i128::from(factor)) >> 32).unwrap_or(i64::MAX)
}

/// A factor to a power, and the sum of its powers from the first to that one, all in parts of 2^32; rounds down at each
/// step.
pub(crate) fn power(factor: u64, exponent: u64) -> (u64, u64) {
    const ONE: u64 = 1 << 32;
    let times = |a: u64, b: u64| u64::try_from((u128::from(a) * u128::from(b)) >> 32).unwrap_or(u64::MAX);
    let (mut power, mut sum) = (ONE, 0_u64);
    // From the highest bit on: twice as far, and one further where the bit is set.
    for bit in (0..u64::BITS - exponent.leading_zeros()).rev() {
        sum = sum.saturating_add(times(power, sum));
        power = times(power, power);
        if exponent >> bit & 1 == 1 {
            sum = times(factor, ONE.saturating_add(sum));
            power = times(power, factor);
        }
    }
    (power, sum)
}

impl State {
    /// Notes that the jobs of a queue hold so much more (`times` 1) or less (-1) from now on.
    pub(crate) fn note_use(
        &mut self,
        queue: QueueId,
        held: &Amounts,
        times: i64,
        now: Timestamp,
        touched: &mut BTreeSet<RowKey>,
    ) {
        touched.insert(RowKey::PastUse(queue));
        self.meta.past_time.at.get_or_insert(now);
        let fading = self.meta.fading;
        let past = self.past_use.entry(queue).or_default();
        past.held_s = past.until(now, fading);
        past.holds.add_scaled(held, times);
        past.at = now;
    }

    /// Brings past use up to now, before it fades in another way.
    pub(crate) fn settle_use(&mut self, now: Timestamp, touched: &mut BTreeSet<RowKey>) {
        let fading = self.meta.fading;
        let time = &mut self.meta.past_time;
        *time = PastTime { ms: time.until(now, fading), at: time.at.map(|_| now) };
        let queues: Vec<QueueId> = self.past_use.keys().copied().collect();
        for queue in queues {
            touched.insert(RowKey::PastUse(queue));
            if let Some(past) = self.past_use.get_mut(&queue) {
                past.held_s = past.until(now, fading);
                past.at = now;
            }
        }
    }

    /// What the jobs of a queue held in the mean over the faded past, in the unit of each resource; those of queues below
    /// it not.
    pub fn mean_use(&self, queue: QueueId, now: Timestamp) -> Amounts {
        let fading = self.meta.fading;
        let ms = self.meta.past_time.until(now, fading);
        let Some(past) = self.past_use.get(&queue).filter(|_| ms > 0) else { return Amounts::new() };
        let mean = |n: i64| i64::try_from(i128::from(n) * 1_000 / i128::from(ms)).unwrap_or(i64::MAX);
        past.until(now, fading).iter().map(|(id, n)| (id, mean(n))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: u64 = 1 << 32;

    #[test]
    fn powers_and_their_sum() {
        assert_eq!(power(ONE / 2, 0), (ONE, 0));
        assert_eq!(power(ONE / 2, 1), (ONE / 2, ONE / 2));
        assert_eq!(power(ONE / 2, 3), (ONE / 8, ONE / 2 + ONE / 4 + ONE / 8));
        assert_eq!(power(ONE, 1_000), (ONE, 1_000 * ONE));
        assert_eq!(power(0, 5), (0, 0));
    }

    proptest! {
        /// However often one looks on the way, the same is left (but for what rounding takes).
        #[test]
        fn growing_at_once_is_growing_step_by_step(
            value in 0_i64..1_000_000_000_000, rate in 0_i64..1_000_000, from in 0_i64..30_000,
            steps in proptest::collection::vec(0_i64..50_000, 0..40), factor in ONE / 2..=ONE,
        ) {
            let fading = Fading { period: Span(10_000), factor };
            let (mut step, mut at) = (value, Timestamp(from));
            for more in &steps {
                let next = at + Span(*more);
                step = fading.grown(step, rate, at, next);
                at = next;
            }
            let at_once = fading.grown(value, rate, Timestamp(from), at);
            // A factor is known to a part of 2^32, and each step rounds once or twice.
            let periods = (at.0 - from) / 10_000 + 1;
            let most = 4 + 3 * (periods + steps.len() as i64) * (1 + ((value + periods * 10 * rate) >> 31));
            prop_assert!((at_once - step).abs() <= most, "{at_once} and {step}");
        }
    }
}
