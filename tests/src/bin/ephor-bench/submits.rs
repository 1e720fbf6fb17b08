//! Durable submits per second: authentication and admission policies included, each acknowledged after its commit.

use crate::disk::fsyncs_per_second;
use crate::figure::Figure;
use ephor_tests::{Options, TestCluster, request};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

/// `clients` connections with `outstanding` requests each, until `jobs` are acknowledged; three runs.
pub fn run(name: &str, clients: usize, outstanding: usize, jobs: i64) -> anyhow::Result<Vec<Figure>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cluster = TestCluster::start(Options { agents: 0, simulated: 4, ..Options::default() });
    let fsyncs = fsyncs_per_second(cluster.folder())?;
    let mut rates = Vec::new();
    for _ in 0..3 {
        rates.push(runtime.block_on(one(&cluster, clients, outstanding, jobs))?);
    }
    let settings = json!({"clients": clients, "outstanding": outstanding, "jobs": jobs, "disk_fsyncs_per_s": fsyncs});
    Ok(vec![Figure::of(name, "submits/s", rates, settings)])
}

/// Submits and counts; the rate.
pub async fn one(cluster: &TestCluster, clients: usize, outstanding: usize, jobs: i64) -> anyhow::Result<f64> {
    let left = Arc::new(AtomicI64::new(jobs));
    let job = request(&["/bin/sleep", "100000"], cluster.folder());
    let mut connections = Vec::new();
    for _ in 0..clients {
        connections.push(cluster.client().await);
    }
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for client in connections {
        for _ in 0..outstanding {
            let (mut client, job, left) = (client.clone(), job.clone(), left.clone());
            tasks.spawn(async move {
                while left.fetch_sub(1, Ordering::Relaxed) > 0 {
                    client.submit(job.clone()).await?;
                }
                Ok::<(), tonic::Status>(())
            });
        }
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(jobs as f64 / begun.elapsed().as_secs_f64())
}
