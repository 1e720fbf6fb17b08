//! How soon a controller with 100,000 live jobs answers after SIGKILL.

use crate::array::resident_kib;
use crate::figure::Figure;
use crate::submits;
use ephor_tests::{Options, TestCluster};
use serde_json::json;
use std::time::Instant;

/// Three restarts.
pub fn run() -> anyhow::Result<Vec<Figure>> {
    const JOBS: i64 = 100_000;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut cluster = TestCluster::start(Options { agents: 0, simulated: 4, ..Options::default() });
    runtime.block_on(submits::one(&cluster, 64, 8, JOBS))?;
    let mut times = Vec::new();
    for _ in 0..3 {
        cluster.kill_controller();
        let begun = Instant::now();
        cluster.start_controller();
        times.push(begun.elapsed().as_secs_f64());
    }
    let memory = cluster.controller_pid().map_or(Ok(0), resident_kib)?;
    let size = std::fs::metadata(cluster.data().join("live.redb")).map_or(0, |m| m.len()) >> 20;
    let settings = json!({"jobs": JOBS, "resident_kib": memory, "live_file_mib": size});
    Ok(vec![Figure::of("restart_100k", "s", times, settings)])
}
