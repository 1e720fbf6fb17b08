//! How long to wait before connecting again: doubling, with jitter, so that a returning controller is not stormed.

use crate::limits::{BACKOFF_LEAST, BACKOFF_MOST};
use std::time::Duration;

/// The waits between attempts to reach the controller.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The next wait: between half and all of 0.2 s, 0.4 s, ... up to [`BACKOFF_MOST`].
    pub fn wait(&mut self) -> Duration {
        self.failures = (self.failures + 1).min(16);
        let most = (BACKOFF_LEAST * 2u32.pow(self.failures)).min(BACKOFF_MOST);
        most.mul_f64(rand::random_range(0.5..=1.0)).max(BACKOFF_LEAST)
    }

    /// It worked: the next wait is short again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_start_over() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..20).map(|_| backoff.wait()).collect();
        assert!(waits.iter().all(|w| (BACKOFF_LEAST..=BACKOFF_MOST).contains(w)));
        assert!(waits[0] <= BACKOFF_LEAST * 2 && waits[19] >= BACKOFF_MOST / 2);
        backoff.reset();
        assert!(backoff.wait() <= BACKOFF_LEAST * 2);
    }
}
