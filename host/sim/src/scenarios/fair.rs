//! Cases about the division of GPUs among queues alone: nothing runs, and the policy says what each is due.

use super::build::{QUEUE_PRIORITY, job, milli};
use super::file::{Case, Class, JobEntry, ShareEntry};
use crate::cluster::SimCluster;
use crate::driver::{self, Observer, SimError};
use crate::openb::{WHOLE_GPU, devices};
use crate::policies::Policies;
use crate::workload::{Unit, Workload};
use ephor_core::scheduler::Scheduler;
use ephor_model::{Amounts, NodeSpec, Queue, ResourceId, Span, Timestamp};

/// What such a case is called.
pub(super) const ACTION: &str = "fair_share";
/// GPUs of a node; a division does not look at nodes.
const NODE_GPUS: i64 = 8;
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
    for share in &case.shares {
        if share.usage != 0.0 {
            missing.push(format!("that queue '{}' used something lately cannot be said yet", share.q));
        }
    }
    missing
}

/// What is not as expected once the policy has looked at the queues.
fn shares(case: &Case, policies: &mut Policies, observer: &mut dyn Observer) -> Result<Vec<String>, SimError> {
    let total = case.total.map_or(0, milli);
    let cluster = SimCluster { nodes: nodes(total / WHOLE_GPU), queues: case.shares.iter().map(queue).collect() };
    let jobs = case.shares.iter().flat_map(asking).map(|entry| job(&entry)).collect();
    let workload = Workload { unit: Unit::MilliGpus, jobs, ..Workload::default() };
    let state = driver::settle(&workload, &cluster, &[], policies, observer, (1, 1))?.outcome.state;
    let now = Timestamp(0) + Span::seconds(2);
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

/// Jobs that ask together for what a queue requests: one for whole GPUs, one for the part of one that is left.
fn asking(share: &ShareEntry) -> Vec<JobEntry> {
    let asks = milli(share.request);
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
