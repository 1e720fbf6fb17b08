//! What crosses crates: end to end, attack, fault and architecture tests, and the benchmarks.
