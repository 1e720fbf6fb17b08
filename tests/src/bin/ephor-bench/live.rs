//! How soon a controller answers queries while jobs stream in and cycles run over a large cluster of simulated nodes.

use crate::figure::Figure;
use ephor_proto::v1;
use ephor_tests::{Options, TestCluster, request};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const NODES: usize = 20_000;
const SUBMITS_PER_S: u64 = 100;
const SECONDS: u64 = 30;
/// Clients that ask one query after the other.
const CLIENTS: usize = 4;

/// Median, 99th percentile and worst answer of each kind of query.
pub fn run() -> anyhow::Result<Vec<Figure>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let options = Options { agents: 0, simulated: 64, simulated_nodes: NODES, ..Options::default() };
    let cluster = TestCluster::start(options);
    runtime.block_on(measure(&cluster))
}

async fn measure(cluster: &TestCluster) -> anyhow::Result<Vec<Figure>> {
    let before = cluster.client().await.status(v1::Empty {}).await?.into_inner();
    let newest = Arc::new(AtomicU64::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let mut queries = JoinSet::new();
    for _ in 0..CLIENTS {
        let (mut client, newest, over) = (cluster.client().await, newest.clone(), over.clone());
        queries.spawn(async move {
            let mut took: [Vec<f64>; 3] = Default::default();
            while !over.load(Ordering::Relaxed) {
                for (kind, took) in took.iter_mut().enumerate() {
                    let begun = Instant::now();
                    match kind {
                        0 => drop(client.status(v1::Empty {}).await?),
                        1 => {
                            let job = v1::JobRef { job: newest.load(Ordering::Relaxed), ..v1::JobRef::default() };
                            drop(client.list_jobs(v1::JobQuery { jobs: vec![job], ..v1::JobQuery::default() }).await?);
                        }
                        _ => drop(client.list_jobs(v1::JobQuery { limit: 100, ..v1::JobQuery::default() }).await?),
                    }
                    took.push(begun.elapsed().as_secs_f64() * 1e3);
                }
                // A person or a script asks a few times a second, not without a pause.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok::<_, tonic::Status>(took)
        });
    }
    let mut client = cluster.client().await;
    let mut tick = tokio::time::interval(Duration::from_micros(1_000_000 / SUBMITS_PER_S));
    for number in 0..SUBMITS_PER_S * SECONDS {
        tick.tick().await;
        let reply = client.submit(job(cluster, number)).await?.into_inner();
        newest.store(reply.job, Ordering::Relaxed);
    }
    over.store(true, Ordering::Relaxed);
    let mut all: [Vec<f64>; 3] = Default::default();
    while let Some(took) = queries.join_next().await {
        let took: [Vec<f64>; 3] = took??;
        all.iter_mut().zip(took).for_each(|(all, took)| all.extend(took));
    }
    let after = cluster.client().await.status(v1::Empty {}).await?.into_inner();
    let names = ["live_status", "live_one_job", "live_100_jobs"];
    Ok(names.into_iter().zip(all).map(|(name, took)| figure(name, took, &before, &after)).collect())
}

/// Jobs of one to sixteen nodes, for 5 to 60 seconds.
fn job(cluster: &TestCluster, number: u64) -> v1::SubmitRequest {
    let seconds = (5 + number * 7 % 56).to_string();
    let mut job = request(&["/bin/sleep", &seconds], cluster.folder());
    let nodes_min = 1 << (number % 5);
    job.request = Some(v1::Request { nodes_min, cpus_per_task: 64, ..v1::Request::default() });
    job
}

fn figure(name: &str, mut took: Vec<f64>, before: &v1::StatusReply, after: &v1::StatusReply) -> Figure {
    took.sort_by(f64::total_cmp);
    let p99 = took[took.len() * 99 / 100];
    let settings = json!({"nodes": NODES, "submits_per_s": SUBMITS_PER_S, "seconds": SECONDS, "clients": CLIENTS,
        "p99_ms": (p99 * 1000.0).round() / 1000.0, "cycles": after.cycles - before.cycles});
    Figure::of(name, "ms", took, settings)
}
