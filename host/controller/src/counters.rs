//! Counters of the controller's inner threads, read by the metrics page and `ephor status`.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// See the module. All count from the start of the process.
        #[derive(Debug, Default)]
        pub struct Counters { $($(#[$doc])* pub $name: AtomicU64,)* }
        impl Counters {
            /// Every counter by name.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.load(Ordering::Relaxed))),*]
            }
        }
    };
}

counters! {
    /// Commands carried out or refused.
    commands,
    /// Commands refused.
    refusals,
    /// Transactions committed.
    commits,
    /// Time spent in commits, in microseconds.
    commit_us,
    /// Events committed.
    events,
    /// Scheduling cycles.
    cycles,
    /// Time spent in cycles, in microseconds.
    cycle_us,
    /// Longest cycle, in microseconds.
    cycle_us_max,
    /// Cycles whose policy failed.
    cycle_faults,
    /// Groups of plans that were committed.
    groups_taken,
    /// Groups of plans that no longer fitted.
    groups_dropped,
    /// Launch messages sent.
    launches,
    /// Reports received from agents.
    reports,
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// Raises a counter to a new maximum.
pub(crate) fn raise(counter: &AtomicU64, n: u64) {
    counter.fetch_max(n, Ordering::Relaxed);
}
