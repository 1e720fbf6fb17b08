//! Tests of the simulator: the right answers, laws 3, 7 and 11, and policies against their native twins.

mod auditor;
mod common;
mod kinds;
mod kth;
mod preemption;
mod random;
mod scenarios;
mod shares;
mod simulate;
mod small;
