//! Cases about the division of GPUs among queues alone: nothing runs, and the policy says what each is due.

use super::build::{QUEUE_PRIORITY, job, milli};
use super::file::{Case, Class, JobEntry, ShareEntry};
use crate::cluster::SimCluster;
use crate::driver::{self, Observer, Running, SimError};
use crate::openb::{WHOLE_GPU, devices};
use crate::policies::Policies;
use crate::workload::{Unit, Workload};
use ephor_core::scheduler::Scheduler;
use ephor_model::{AllocationPart, Amounts, NodeId, NodeSpec, Queue, ResourceId, Span};
use std::collections::BTreeMap;

/// What such a case is called.
pub(super) const ACTION: &str = "fair_share";
/// GPUs of a node; a division does not look at nodes.
const NODE_GPUS: i64 = 8;
/// How long the past of a case is: the cycles after it are nothing beside it.
const PAST: Span = Span(30 * 86_400_000);
/// Cores and MiB of a node: more than any of these jobs asks for.
const PLENTY: i64 = 10_000_000;

/// Cycles, and what was not as expected.
pub(super) fn run(case: &Case, policies: &mut Policies, observer: &mut dyn Observer) -> (u64, Vec<String>) {
    let missing = missing(case);
    if !missing.is_empty() {
        return (0, missing);
    }
    match shares(case, policies, observer) {
        Ok(wrong) => (1, wrong),
        Err(error) => (0, vec![error.to_string()]),
    }
}

/// What the model has no words for.
fn missing(case: &Case) -> Vec<String> {
    let mut missing = Vec::new();
    match case.total {
        Some(total) if total >= 0.0 && total.fract() == 0.0 => {}
        _ => missing.push("only whole GPUs can be divided".to_owned()),
    }
    if case.shares.is_empty() {
        missing.push("nothing is expected of it that could be looked at".to_owned());
    }
    let used: f64 = case.shares.iter().map(|share| share.usage).sum();
    if case.shares.iter().any(|share| share.usage < 0.0) || used > 1.0 {
        missing.push(format!("the queues cannot have used {used} of the cluster together; 0 to 1 is possible"));
    }
    missing
}

/// What is not as expected once the policy has looked at the queues.
fn shares(case: &Case, policies: &mut Policies, observer: &mut dyn Observer) -> Result<Vec<String>, SimError> {
    let total = case.total.map_or(0, milli);
    let cluster = SimCluster { nodes: nodes(total / WHOLE_GPU), queues: case.shares.iter().map(queue).collect() };
    let (entries, past) = history(case, total, &cluster.nodes);
    let asking = case.shares.iter().flat_map(|share| jobs_of(share, milli(share.request)));
    let jobs = entries.into_iter().chain(asking).map(|entry| job(&entry)).collect();
    let workload = Workload { unit: Unit::MilliGpus, jobs, ..Workload::default() };
    let state = driver::settle(&workload, &cluster, &past, policies, observer, (1, 1))?.outcome.state;
    let now = state.meta.now + Span::seconds(1);
    let cycle = Scheduler::new(&state).cycle(&state, now, policies.work, &mut *policies.scheduling);
    let plan = cycle.map_err(|fault| SimError::Policy { at: now, fault })?;
    let mut wrong = Vec::new();
    let (mut sum, mut silent) = (0, false);
    for share in &case.shares {
        let id = state.queue_by_name(&share.q).map(|(id, _)| id);
        let found = id.and_then(|id| plan.reports.fair_shares.get(&(id, ResourceId::GPU)).copied());
        let Some(found) = found else {
            silent = true;
            continue;
        };
        sum += found;
        if let Some(wanted) = share.expect.filter(|wanted| milli(*wanted) != found) {
            wrong.push(format!("{} is due {} GPUs, not {wanted}", share.q, found as f64 / WHOLE_GPU as f64));
        }
    }
    if silent {
        wrong.push("the policy does not say what each queue is due".to_owned());
    }
    let left = (total - sum).max(0);
    if let Some(wanted) = case.expect_remaining.filter(|wanted| !silent && milli(*wanted) != left) {
        wrong.push(format!("{} GPUs are nobody's, not {wanted}", left as f64 / WHOLE_GPU as f64));
    }
    Ok(wrong)
}

fn nodes(gpus: i64) -> Vec<NodeSpec> {
    let node = |n: i64| {
        let gpus = NODE_GPUS.min(gpus - n * NODE_GPUS);
        let name = format!("n{n}");
        NodeSpec {
            capacity: Amounts::new()
                .with(ResourceId::CPU, PLENTY)
                .with(ResourceId::MEM, PLENTY)
                .with(ResourceId::GPU, gpus * WHOLE_GPU),
            devices: devices(&name, "gpu", gpus),
            name,
            ..NodeSpec::default()
        }
    };
    (0..(gpus + NODE_GPUS - 1) / NODE_GPUS).map(node).collect()
}

fn queue(share: &ShareEntry) -> (Queue, Option<String>) {
    let gpus = |n: Option<f64>| n.map_or_else(Amounts::new, |n| Amounts::new().with(ResourceId::GPU, milli(n)));
    let queue = Queue {
        name: share.q.clone(),
        quota: gpus(share.quota),
        limit: gpus(share.limit),
        weight: share.weight.unwrap_or(1),
        priority: share.priority.unwrap_or(QUEUE_PRIORITY),
        ..Queue::default()
    };
    (queue, share.parent.clone())
}

/// Jobs that held for long what each queue used lately, side by side, and where.
fn history(case: &Case, total: i64, nodes: &[NodeSpec]) -> (Vec<JobEntry>, Vec<Running>) {
    let (mut entries, mut past) = (Vec::new(), Vec::new());
    let gpus = |node: &NodeSpec| 0..(node.capacity.get(ResourceId::GPU) / WHOLE_GPU) as u32;
    let mut free = nodes.iter().flat_map(|node| gpus(node).map(|gpu| (node.name.clone(), gpu)));
    for share in case.shares.iter().filter(|share| share.usage > 0.0) {
        for entry in jobs_of(share, (share.usage * total as f64).round() as i64) {
            let each = milli(entry.gpu);
            let mut by_node: BTreeMap<String, Vec<u32>> = BTreeMap::new();
            for (node, gpu) in free.by_ref().take(entry.pods.unwrap_or(1) as usize) {
                by_node.entry(node).or_default().push(gpu);
            }
            let part = |(name, devices): (String, Vec<u32>)| {
                let tasks = devices.len() as u32;
                let amounts = Amounts::new()
                    .with(ResourceId::CPU, i64::from(tasks) * 1_000)
                    .with(ResourceId::GPU, i64::from(tasks) * each);
                (name, AllocationPart { node: NodeId(0), tasks, amounts, devices: devices.into() })
            };
            let parts = by_node.into_iter().map(part).collect();
            past.push(Running { job: entries.len(), parts, stuck: false, ended: Some(PAST) });
            entries.push(entry);
        }
    }
    (entries, past)
}

/// Jobs that hold together so many thousandths of GPUs: one for whole ones, one for the part of one that is left.
fn jobs_of(share: &ShareEntry, asks: i64) -> Vec<JobEntry> {
    let entry = |pods: i64, gpu: f64| JobEntry {
        job: format!("of-{}", share.q),
        queue: share.q.clone(),
        class: Class::Train,
        gpu,
        pods: u32::try_from(pods).ok(),
        min: None,
        at: Vec::new(),
        device: None,
        state: None,
        required: None,
        preferred: None,
        pod_mig: Vec::new(),
    };
    let (whole, part) = (asks / WHOLE_GPU, asks % WHOLE_GPU);
    let mut entries = Vec::new();
    entries.extend((whole > 0).then(|| entry(whole, 1.0)));
    entries.extend((part > 0).then(|| entry(1, part as f64 / WHOLE_GPU as f64)));
    entries
}
