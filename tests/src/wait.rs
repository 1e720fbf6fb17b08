//! Waiting for conditions, since sleeping for luck is no test.

use std::time::{Duration, Instant};

/// How long a condition may take before a test fails: generous, since CI machines are slow and shared.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Asks until there is an answer.
///
/// # Panics
/// When [`DEADLINE`] has passed, with what was waited for.
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < DEADLINE, "waited {} s for {what}", DEADLINE.as_secs());
        std::thread::sleep(Duration::from_millis(10));
    }
}
