//! An array of 5,000 elements: how soon it is acknowledged, and what it takes of the controller's memory.

use crate::figure::Figure;
use ephor_proto::v1;
use ephor_tests::{Options, TestCluster, request};
use serde_json::json;
use std::time::Instant;

/// Ten arrays; memory is the growth over all ten, divided.
pub fn run() -> anyhow::Result<Vec<Figure>> {
    const ARRAYS: usize = 10;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cluster = TestCluster::start(Options { agents: 0, simulated: 4, ..Options::default() });
    let pid = cluster.controller_pid().ok_or_else(|| anyhow::anyhow!("the controller is gone"))?;
    let times = runtime.block_on(async {
        let mut client = cluster.client().await;
        let job =
            v1::SubmitRequest { array: Some("0-4999".into()), ..request(&["/bin/sleep", "100000"], cluster.folder()) };
        // The first one pays for what every controller pays once.
        client.submit(job.clone()).await?;
        let before = resident_kib(pid)?;
        let mut times = Vec::new();
        for _ in 0..ARRAYS {
            let begun = Instant::now();
            client.submit(job.clone()).await?;
            times.push(begun.elapsed().as_secs_f64() * 1000.0);
        }
        // An answer after the scheduler has seen them all.
        client.list_queues(v1::Empty {}).await?;
        let after = resident_kib(pid)?;
        anyhow::Ok((times, after.saturating_sub(before) as f64 / ARRAYS as f64))
    })?;
    let settings = json!({"elements": 5000, "arrays": ARRAYS});
    Ok(vec![
        Figure::of("array_5000_return", "ms", times.0, settings.clone()),
        Figure::of("array_5000_memory", "KiB", vec![times.1], settings),
    ])
}

/// Resident memory of a process, in KiB.
pub fn resident_kib(pid: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let value = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse().ok());
    value.ok_or_else(|| anyhow::anyhow!("process {pid} has no resident memory"))
}
