//! What crosses crates: end to end, attack, fault and architecture tests, and the benchmarks.
//!
//! [`TestCluster`] runs the real binaries in a temporary folder on free ports, and ends them by process id.

mod cluster;
pub mod gpus;
mod process;
mod wait;

pub use cluster::{Options, TestCluster, request};
pub use process::{Process, binary, hostile, plugin, repository};
pub use wait::{DEADLINE, wait_for};
