//! Queues with what goes on in them, and how the controller is.

use super::{Answer, Services, busy, objects};
use crate::sessions::name_of_resource;
use ephor_core::cycle::Reports;
use ephor_core::roles::{Permission, Target};
use ephor_core::{NodeHealth, State};
use ephor_model::{Amounts, QueueId, Timestamp};
use ephor_proto::convert::amounts_to_wire;
use ephor_proto::v1;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tonic::{Request, Response};

#[derive(Default)]
struct InQueue {
    pending: u32,
    running: u32,
    allocated: Amounts,
    wanted: Amounts,
}

pub(super) async fn queues(services: &Arc<Services>, request: Request<v1::Empty>) -> Answer<v1::QueueList> {
    let caller = services.access.caller(&request).await?;
    services.access.allow(&caller, Permission::ClusterRead, Target::default()).await?;
    let snapshot = services.handle.snapshot();
    let reports = services.handle.reports();
    let now = services.handle.now();
    let list = move || queue_list(&snapshot.state, &reports, now);
    let queues = services.queries.run(caller.peer.uid.0, list).await.map_err(busy)?;
    Ok(Response::new(v1::QueueList { queues }))
}

fn queue_list(state: &State, reports: &Reports, now: Timestamp) -> Vec<v1::QueueView> {
    let mut inside: BTreeMap<QueueId, InQueue> = BTreeMap::new();
    for entry in state.jobs.values().filter(|e| e.unfinished > 0) {
        let queue = inside.entry(entry.job.queue).or_default();
        queue.running += entry.running;
        let pending = entry.unfinished.saturating_sub(entry.running);
        queue.pending += pending;
        if pending > 0 {
            queue.wanted.add_scaled(&entry.job.spec.request.total(), i64::from(pending));
        }
    }
    for attempt in state.attempts.values() {
        if let Some((entry, _)) = state.find(attempt.key.job) {
            inside.entry(entry.job.queue).or_default().allocated.add(&attempt.allocation.total());
        }
    }
    let mut fair: BTreeMap<QueueId, Amounts> = BTreeMap::new();
    for ((queue, resource), share) in &reports.fair_shares {
        fair.entry(*queue).or_default().set(*resource, *share);
    }
    let view = |(id, queue): (&QueueId, &Arc<ephor_model::Queue>)| {
        let inside = inside.remove(id).unwrap_or_default();
        v1::QueueView {
            queue: Some(objects::queue_to_wire(state, queue)),
            pending: inside.pending,
            running: inside.running,
            allocated: amounts_to_wire(&inside.allocated, name_of_resource),
            wanted: amounts_to_wire(&inside.wanted, name_of_resource),
            fair: amounts_to_wire(&fair.remove(id).unwrap_or_default(), name_of_resource),
            used: amounts_to_wire(&state.mean_use(*id, now), name_of_resource),
        }
    };
    state.queues.iter().map(view).collect()
}

pub(super) async fn status(services: &Arc<Services>, request: Request<v1::Empty>) -> Answer<v1::StatusReply> {
    let caller = services.access.caller(&request).await?;
    services.access.allow(&caller, Permission::ClusterRead, Target::default()).await?;
    let snapshot = services.handle.snapshot();
    let state = &snapshot.state;
    let running = state.attempts.len() as u64;
    Ok(Response::new(v1::StatusReply {
        version: env!("CARGO_PKG_VERSION").into(),
        epoch: state.meta.epoch.0,
        started: services.started.0,
        pending: state.derived.unfinished.saturating_sub(running),
        running,
        nodes_up: state.nodes.values().filter(|n| n.health == NodeHealth::Up).count() as u64,
        nodes: state.nodes.len() as u64,
        events: state.meta.events,
        cycles: services.handle.counters().cycles.load(Ordering::Relaxed),
        data_folder: services.data_folder.display().to_string(),
        cluster: services.cluster.clone(),
    }))
}
