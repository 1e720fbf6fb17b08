//! How long single operations take on a large, nearly full cluster. Prints one JSON object a line.
//!
//! `cargo run --release -p ephor-placement --example scale -- NODES`

use ephor_model::id::{JobId, NodeId};
use ephor_model::request::{GpuRequest, Request};
use ephor_model::resource::{Amounts, ResourceId};
use ephor_model::time::{Span, Timestamp};
use ephor_placement::{ClassId, Cluster, Need, NodeView, Placing, Work};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nodes: u32 = std::env::args().nth(1).unwrap_or_else(|| "10000".to_owned()).parse()?;
    let mut cluster = Cluster::new();
    let now = Timestamp(0);
    let capacity = [(ResourceId::CPU, 64_000), (ResourceId::MEM, 1 << 19), (ResourceId::GPU, 8000)];
    let capacity: Amounts = capacity.into_iter().collect();
    let how = Placing::default();
    let class = |cluster: &mut Cluster, nodes_min, gpus| {
        let request =
            Request { nodes_min, cpus_per_task: 7 * gpus, gpus: GpuRequest::PerNode(gpus), ..Request::default() };
        cluster.intern(&Need { request: request.into(), queue_features: Vec::new() })
    };
    let (two, six, gang) = (class(&mut cluster, 1, 2), class(&mut cluster, 1, 6), class(&mut cluster, 10, 8));
    timed("set_node", nodes, || {
        for id in 0..nodes {
            let devices = vec!["h100".to_owned(); 8];
            let view = NodeView {
                name: format!("n{id}"),
                capacity: capacity.clone(),
                features: Vec::new(),
                devices,
                out: Vec::new(),
                up: true,
            };
            cluster.set_node(NodeId(id), view);
        }
    });
    // Six of eight GPUs of every node, each job to end at its own time; facts, so that filling is not what is timed.
    for id in 0..nodes {
        let only = Placing { only: Some(vec![NodeId(id)]), ..Placing::default() };
        let limit = Span(1000 + i64::from(id * 7919 % nodes) * 10);
        cluster.try_start(JobId(id.into()), six, now, limit, &only, &mut Work::UNLIMITED.clone())?;
    }
    cluster.forget_undo();
    let start = |cluster: &mut Cluster, class: ClassId, job: u64| {
        cluster.try_start(JobId(job), class, now, Span(1000), &how, &mut Work::UNLIMITED.clone()).is_ok()
    };
    let mark = cluster.savepoint();
    let tries = 200;
    timed("try_start_that_fits", tries, || {
        (0..tries).for_each(|i| assert!(start(&mut cluster, two, (1 << 32) + u64::from(i))))
    });
    timed("rollback", tries, || cluster.rollback(mark));
    timed("try_start_refused", tries, || {
        (0..tries).for_each(|i| assert!(!start(&mut cluster, gang, (1 << 33) + u64::from(i))))
    });
    let mut slots = Vec::new();
    timed("earliest_start_of_a_gang", 10, || {
        for _ in 0..10 {
            slots.extend(cluster.earliest_start(gang, now, Span(100_000), &how, &mut Work::UNLIMITED.clone()));
            slots.last().into_iter().for_each(|slot| _ = cluster.reserve(slot));
        }
    });
    timed("explain", 1, || drop(cluster.explain(gang)));
    timed("copy", 1, || drop(cluster.clone()));
    Ok(())
}

fn timed(name: &str, times: u32, act: impl FnOnce()) {
    let begun = Instant::now();
    act();
    let each = begun.elapsed().as_secs_f64() * 1e6 / f64::from(times);
    println!("{{\"name\":\"{name}\",\"value\":{each:.2},\"unit\":\"us\",\"runs\":{times}}}");
}
