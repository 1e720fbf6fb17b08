//! Small random changes of a trace's times, the same for the same seed: what a schedule would be on a day like it.

use ephor_model::{Span, Timestamp};

/// A submit time moves by at most this many seconds, both ways.
pub const SUBMIT_SECONDS: i64 = 60;
/// A run time changes by at most this many thousandths, both ways.
pub const RUN_THOUSANDTHS: i64 = 20;

/// A stream of changes. The generator is SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Shake(u64);

impl Shake {
    /// The changes of a seed.
    pub fn new(seed: u64) -> Self {
        // Seeds that differ by one give streams that have nothing in common.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// The changed times of the next job, in whole seconds where they were; never before 0, at least a second of run.
    pub fn times(&mut self, submit: Timestamp, run: Span) -> (Timestamp, Span) {
        let moved = submit.0 + self.within(SUBMIT_SECONDS) * 1000;
        let seconds = run.0 / 1000;
        let changed = seconds + (seconds * self.within(RUN_THOUSANDTHS)) / 1000;
        (Timestamp(moved.max(0)), Span(changed.max(1) * 1000))
    }

    /// A whole number within -bound and bound.
    fn within(&mut self, bound: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        // Below 2^32, and the range far below that: the bias is below one in ten million.
        ((z >> 32) as i64) % (2 * bound + 1) - bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_small_repeat_and_differ_by_seed() {
        let times = |seed| {
            let mut shake = Shake::new(seed);
            (0..1000).map(|n| shake.times(Timestamp(n * 100_000), Span(1_000_000))).collect::<Vec<_>>()
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
        for (n, (submit, run)) in times(3).into_iter().enumerate() {
            assert!((submit.0 - n as i64 * 100_000).abs() <= SUBMIT_SECONDS * 1000 && submit.0 >= 0);
            assert!((980_000..=1_020_000).contains(&run.0));
        }
        let mean = times(4).iter().map(|(_, run)| run.0).sum::<i64>() / 1000;
        assert!((998_000..1_002_000).contains(&mean), "{mean}");
    }
}
