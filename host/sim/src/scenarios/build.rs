//! From a case to a cluster, queues and jobs in Ephor's words, or what cannot be said in them.

use super::file::{Case, Class, JobEntry};
use crate::cluster::SimCluster;
use crate::driver::Running;
use crate::openb::{WHOLE_GPU, devices};
use crate::workload::{DEFAULT_NAME, SimJob, Unit, Workload};
use ephor_model::{
    AllocationPart, Amounts, EndCause, GpuRequest, JobSpec, NodeId, NodeSpec, Payload, Queue, Request, ResourceId,
    Span, Timestamp, Topology,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Cores of a node of which nothing is said, and MiB of every node: more than any case asks for.
const PLENTY: u32 = 10_000;
/// No job ends while a case runs.
const RUN: Span = Span(365 * 86_400_000);
/// Priority of a queue of which nothing is said.
pub(super) const QUEUE_PRIORITY: i64 = 100;
/// What a job is that was told to end long ago and does not.
pub(super) const STUCK: &str = "stuck_terminating";

/// A case in Ephor's words. Running jobs come first.
#[derive(Debug)]
pub(super) struct Built {
    pub cluster: SimCluster,
    pub workload: Workload,
    pub running: Vec<Running>,
    /// Place of each job in the workload.
    pub places: BTreeMap<String, usize>,
    /// Nodes by name, in the order in which they register.
    pub nodes: Vec<String>,
}

impl Built {
    /// Says the case in Ephor's words.
    ///
    /// # Errors
    /// Everything that cannot be said.
    pub fn of(case: &Case) -> Result<Self, Vec<String>> {
        let missing = missing(case);
        if !missing.is_empty() {
            return Err(missing);
        }
        let mut built = Self {
            cluster: cluster(case),
            workload: Workload { unit: Unit::MilliGpus, ..Workload::default() },
            running: Vec::new(),
            places: BTreeMap::new(),
            nodes: case.cluster.keys().cloned().collect(),
        };
        for entry in case.running.iter().chain(&case.pending) {
            let place = built.workload.jobs.len();
            if built.places.insert(entry.job.clone(), place).is_some() {
                return Err(vec![format!("two jobs are called '{}'", entry.job)]);
            }
            built.workload.jobs.push(job(entry));
        }
        built.running = built.place_running(case).map_err(|why| vec![why])?;
        Ok(built)
    }

    /// Where the running jobs are: those whose device is named first, then the others on whatever is free, by index.
    fn place_running(&self, case: &Case) -> Result<Vec<Running>, String> {
        // Thousandths that are taken, by node and device.
        let mut taken: BTreeMap<(&str, u32), i64> = BTreeMap::new();
        let mut running: BTreeMap<usize, Running> = BTreeMap::new();
        let (named, others): (Vec<_>, Vec<_>) = case.running.iter().partition(|entry| entry.device.is_some());
        for entry in named.into_iter().chain(others) {
            let place = self.places[&entry.job];
            let mut by_node: BTreeMap<&str, u32> = BTreeMap::new();
            entry.at.iter().for_each(|node| *by_node.entry(node.as_str()).or_default() += 1);
            if entry.at.len() != entry.pods.unwrap_or(1) as usize {
                return Err(format!("job '{}' says where {} of its pods run", entry.job, entry.at.len()));
            }
            let mut parts = Vec::new();
            for (node, pods) in by_node {
                let Some(index) = self.nodes.iter().position(|name| name == node) else {
                    return Err(format!("job '{}' runs on node '{node}', which is not there", entry.job));
                };
                let each = milli(entry.gpu);
                let (count, share) =
                    if each < WHOLE_GPU { (1, each) } else { (each / WHOLE_GPU * i64::from(pods), WHOLE_GPU) };
                let mut devices = Vec::new();
                let wanted = if each == 0 { 0 } else { count };
                for device in entry.device.map_or(0..case.cluster[node].gpus, |device| device..device + 1) {
                    let held = taken.entry((node, device)).or_default();
                    if (devices.len() as i64) < wanted && *held + share <= WHOLE_GPU {
                        *held += share;
                        devices.push(device);
                    }
                }
                if (devices.len() as i64) < wanted {
                    return Err(format!("job '{}' finds no free GPU on node '{node}' to run on", entry.job));
                }
                let amounts =
                    Amounts::new().with(ResourceId::CPU, i64::from(pods) * 1000).with(ResourceId::GPU, wanted * share);
                // Nodes register in this order and are numbered by it; the driver looks the name up.
                let part = AllocationPart { node: NodeId(index as u32), tasks: pods, amounts, devices: devices.into() };
                parts.push((node.to_owned(), part));
            }
            running.insert(place, Running { job: place, parts, stuck: entry.state.is_some(), ended: None });
        }
        Ok(running.into_values().collect())
    }
}

/// What the model has no words for.
fn missing(case: &Case) -> Vec<String> {
    let mut missing = Vec::new();
    match case.action.as_deref() {
        None | Some("allocate" | "reclaim" | "preempt" | "consolidation") => {}
        Some(action) => missing.push(format!("the step '{action}' cannot be said yet")),
    }
    if case.cluster.values().any(|node| !node.mig.is_empty()) {
        missing.push("MIG profiles cannot be said yet".to_owned());
    }
    for entry in case.running.iter().chain(&case.pending) {
        let job = &entry.job;
        if entry.min.is_some_and(|min| min != entry.pods.unwrap_or(1)) {
            missing.push(format!("job '{job}' may run with fewer pods than it has, which cannot be said yet"));
        }
        for level in [&entry.required, &entry.preferred].into_iter().flatten() {
            missing.extend(Topology::read(level, true).err());
        }
        if entry.state.as_deref().is_some_and(|state| state != STUCK) {
            missing.push(format!("job '{job}' begins in a state that cannot be brought about; {STUCK} can"));
        }
        if !entry.pod_mig.is_empty() {
            missing.push(format!("job '{job}' asks for MIG profiles, which cannot be said yet"));
        }
        if entry.pods.unwrap_or(1) > 1 && entry.gpu > 0.0 && entry.gpu.fract() != 0.0 {
            missing.push(format!("job '{job}' has several pods that each ask for a part of a GPU"));
        }
        if entry.gpu > 1.0 && entry.gpu.fract() != 0.0 {
            missing.push(format!("job '{job}' asks for {} GPUs; only parts of one can be shared", entry.gpu));
        }
    }
    if case.compare.as_ref().is_some_and(|c| c.iter().any(|(key, value)| key != "placement" || value != "free")) {
        missing.push("only 'placement: free' can be compared in another way".to_owned());
    }
    missing
}

pub(super) fn milli(gpus: f64) -> i64 {
    (gpus * WHOLE_GPU as f64).round() as i64
}

fn cluster(case: &Case) -> SimCluster {
    let node = |(name, entry): (&String, &super::file::NodeEntry)| NodeSpec {
        name: name.clone(),
        capacity: Amounts::new()
            .with(ResourceId::CPU, i64::from(entry.cpu.unwrap_or(PLENTY)) * 1000)
            .with(ResourceId::MEM, i64::from(PLENTY) << 10)
            .with(ResourceId::GPU, i64::from(entry.gpus) * WHOLE_GPU),
        features: entry.labels.iter().map(|(key, value)| format!("{key}={value}")).collect(),
        devices: devices(name, "gpu", i64::from(entry.gpus)),
        ..NodeSpec::default()
    };
    let gpus = |n: Option<f64>| n.map_or_else(Amounts::new, |n| Amounts::new().with(ResourceId::GPU, milli(n)));
    let queue = |entry: &super::file::QueueEntry| {
        let queue = Queue {
            name: entry.name.clone(),
            quota: gpus(entry.quota),
            limit: gpus(entry.limit),
            weight: entry.weight.unwrap_or(1),
            priority: entry.priority.unwrap_or(QUEUE_PRIORITY),
            ..Queue::default()
        };
        (queue, entry.parent.clone())
    };
    SimCluster { nodes: case.cluster.iter().map(node).collect(), queues: case.queues.iter().map(queue).collect() }
}

/// A job that may be requeued gives way; its priority is said as a nice value.
pub(super) fn job(entry: &JobEntry) -> SimJob {
    let mut spec = JobSpec::new(&entry.job, Payload::Argv(vec!["true".into()]));
    (spec.queue, spec.account) = (entry.queue.clone(), DEFAULT_NAME.into());
    (spec.nice, spec.requeue) = match entry.class {
        Class::Train => (-50, Some(true)),
        Class::Build => (-100, Some(false)),
    };
    let each = milli(entry.gpu);
    let gpus = match each {
        0 => GpuRequest::None,
        share if share < WHOLE_GPU => GpuRequest::Share(share as u32),
        whole => GpuRequest::PerTask((whole / WHOLE_GPU) as u32),
    };
    // Where both are said the demand stands: a request names one level, and a wish below it binds nobody.
    let required = entry.required.as_ref().map(|level| (level, true));
    let level = required.or_else(|| entry.preferred.as_ref().map(|level| (level, false)));
    let topology = level.and_then(|(level, required)| Topology::read(level, required).ok());
    spec.request = Request { tasks: Some(entry.pods.unwrap_or(1)), gpus, topology, ..Request::default() }.into();
    spec.time_limit = Some(RUN);
    SimJob { submit: Timestamp(0), run: RUN, ends: EndCause::Exited, spec: Arc::new(spec) }
}
