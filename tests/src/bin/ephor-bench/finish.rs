//! From submit to the end of real processes: throughput, and one job on an idle cluster.

use crate::disk::fsyncs_per_second;
use crate::figure::Figure;
use ephor_proto::v1;
use ephor_tests::{Options, TestCluster, request};
use serde_json::json;
use std::time::{Duration, Instant};

/// `jobs` times `/bin/true` on one node with so many slots, from the first submit to the last end; three runs.
pub fn throughput(name: &str, slots: u32, jobs: u64) -> anyhow::Result<Vec<Figure>> {
    const CLIENTS: u64 = 8;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cluster = TestCluster::start(Options { cpus: slots, ..Options::default() });
    let fsyncs = fsyncs_per_second(cluster.folder())?;
    let mut rates = Vec::new();
    for _ in 0..3 {
        let rate = runtime.block_on(async {
            let job = request(&["/bin/true"], cluster.folder());
            let begun = Instant::now();
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..CLIENTS {
                let (mut client, job) = (cluster.client().await, job.clone());
                tasks.spawn(async move {
                    for _ in 0..jobs / CLIENTS {
                        client.submit(job.clone()).await?;
                    }
                    Ok::<(), tonic::Status>(())
                });
            }
            while let Some(done) = tasks.join_next().await {
                done??;
            }
            let mut client = cluster.client().await;
            loop {
                let status = client.status(v1::Empty {}).await?.into_inner();
                if status.pending + status.running == 0 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            anyhow::Ok(jobs as f64 / begun.elapsed().as_secs_f64())
        })?;
        rates.push(rate);
    }
    let settings = json!({"slots": slots, "jobs": jobs, "clients": CLIENTS, "disk_fsyncs_per_s": fsyncs});
    Ok(vec![Figure::of(name, "jobs/s", rates, settings)])
}

/// One job on an idle cluster, from submit until its end is visible; 20 runs.
pub fn idle() -> anyhow::Result<Vec<Figure>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cluster = TestCluster::start(Options::default());
    let fsyncs = fsyncs_per_second(cluster.folder())?;
    let times = runtime.block_on(async {
        let mut client = cluster.client().await;
        let job = request(&["/bin/true"], cluster.folder());
        let mut times = Vec::new();
        for _ in 0..20 {
            let begun = Instant::now();
            let id = client.submit(job.clone()).await?.into_inner().job;
            let query = v1::JobQuery {
                jobs: vec![v1::JobRef { job: id, index: None }],
                finished: true,
                ..v1::JobQuery::default()
            };
            loop {
                let list = client.list_jobs(query.clone()).await?.into_inner();
                if list.jobs.first().is_some_and(|j| j.ended.is_some()) {
                    break;
                }
                tokio::time::sleep(Duration::from_micros(500)).await;
            }
            times.push(begun.elapsed().as_secs_f64() * 1000.0);
        }
        anyhow::Ok(times)
    })?;
    Ok(vec![Figure::of("submit_to_end_idle", "ms", times, json!({"disk_fsyncs_per_s": fsyncs}))])
}
