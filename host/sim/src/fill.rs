//! A cluster that is filled: pods in list order until they ask for so much of its GPUs, none of which ever ends.

use crate::cluster::SimCluster;
use crate::driver::Outcome;
use crate::openb::{Pod, WHOLE_GPU};
use crate::workload::{Unit, Workload};
use ephor_core::{Node, State};
use ephor_model::{Device, GpuRequest, MemRequest, NodeId, Request, ResourceId};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Largest share of the cluster's GPUs that may be asked for.
pub const MOST: f64 = 10.0;

/// How it went. GPUs are whole ones, with parts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FillReport {
    /// What the pods ask for together, as a share of the cluster's GPUs.
    pub demand: f64,
    /// The same up to and with the first pod, in list order, that found no place; `None`: all found one.
    pub demand_at_first_refusal: Option<f64>,
    /// Pods that were tried.
    pub pods: u64,
    /// Pods that found no place.
    pub refused: u64,
    /// GPUs that pods hold.
    pub allocated_gpus: f64,
    /// GPUs that nobody holds.
    pub unallocated_gpus: f64,
    /// Of them what a pod of the list cannot use, in the mean over its GPU pods: on nodes that lack something that it
    /// needs all that is free, else GPUs whose free part is too small for it.
    pub fragmented_gpus: f64,
}

/// The pods to try: in list order and round again, until they ask for `share` of that capacity in milli-GPUs; the pod
/// that reaches it is the last. All arrive at once.
pub fn workload(pods: &[Pod], share: f64, capacity: i64) -> Workload {
    let mut workload = Workload { unit: Unit::MilliGpus, ..Workload::default() };
    let wanted = (capacity as f64 * share).ceil() as i64;
    let mut asked = 0;
    // A list without a GPU in it would never come to an end.
    if pods.iter().all(|pod| pod.milli_gpus() == 0) {
        return workload;
    }
    for pod in pods.iter().cycle() {
        if asked >= wanted {
            break;
        }
        asked += pod.milli_gpus();
        workload.jobs.push(pod.at_once());
    }
    workload
}

impl FillReport {
    /// The report on a run of [`workload`].
    pub fn of(workload: &Workload, cluster: &SimCluster, outcome: &Outcome) -> Self {
        let capacity = cluster.capacity().get(ResourceId::GPU);
        let size = |index: usize| Unit::MilliGpus.size(&workload.jobs[index].spec.request);
        let (mut demand, mut allocated, mut refused, mut first) = (0, 0, 0, None);
        for (index, start) in outcome.starts.iter().enumerate() {
            demand += size(index);
            match start {
                Some(_) => allocated += size(index),
                None => {
                    refused += 1;
                    first.get_or_insert(demand);
                }
            }
        }
        let share = |milli: i64| if capacity > 0 { milli as f64 / capacity as f64 } else { 0.0 };
        let whole = |milli: i64| milli as f64 / WHOLE_GPU as f64;
        Self {
            demand: share(demand),
            demand_at_first_refusal: first.map(share),
            pods: workload.jobs.len() as u64,
            refused,
            allocated_gpus: whole(allocated),
            unallocated_gpus: whole(capacity - allocated),
            fragmented_gpus: fragmented(workload, &outcome.state) / WHOLE_GPU as f64,
        }
    }
}

/// What is free of a node.
struct Free<'a> {
    cpu: i64,
    mem: i64,
    /// Of each GPU, with its kind.
    gpus: Vec<(&'a str, i64)>,
}

fn free<'a>(state: &'a State) -> Vec<Free<'a>> {
    let mut taken: BTreeMap<(NodeId, u32), i64> = BTreeMap::new();
    for part in state.attempts.values().flat_map(|attempt| &attempt.allocation.parts) {
        let each = part.amounts.get(ResourceId::GPU) / (part.devices.len() as i64).max(1);
        part.devices.iter().for_each(|device| *taken.entry((part.node, *device)).or_default() += each);
    }
    let of = |(id, node): (&NodeId, &'a Arc<Node>)| {
        let amounts = state.free(*id);
        let gpu = |(index, device): (usize, &'a Device)| {
            let held = taken.get(&(*id, index as u32)).copied().unwrap_or(0);
            (device.kind.as_str(), WHOLE_GPU - held)
        };
        Free {
            cpu: amounts.get(ResourceId::CPU),
            mem: amounts.get(ResourceId::MEM),
            gpus: node.spec.devices.iter().enumerate().map(gpu).collect(),
        }
    };
    state.nodes.iter().map(of).collect()
}

/// Milli-GPUs that are free and of no use, in the mean over the GPU requests.
fn fragmented(workload: &Workload, state: &State) -> f64 {
    let nodes: Vec<Free<'_>> = free(state).into_iter().filter(|node| node.gpus.iter().any(|(_, n)| *n > 0)).collect();
    let mut classes: Vec<(&Request, u64)> = Vec::new();
    let mut places: HashMap<&Request, usize> = HashMap::new();
    for request in workload.jobs.iter().map(|job| &job.spec.request).filter(|r| r.gpus != GpuRequest::None) {
        let place = *places.entry(request).or_insert_with(|| {
            classes.push((request, 0));
            classes.len() - 1
        });
        classes[place].1 += 1;
    }
    let all: u64 = classes.iter().map(|(_, count)| count).sum();
    let of = |(request, count): &(&Request, u64)| {
        let useless: i64 = nodes.iter().map(|node| node.useless_for(request)).sum();
        useless as f64 * *count as f64
    };
    classes.iter().map(of).sum::<f64>() / all.max(1) as f64
}

impl Free<'_> {
    fn useless_for(&self, request: &Request) -> i64 {
        let asked = request.total();
        let gpu = asked.get(ResourceId::GPU);
        let each = gpu.min(WHOLE_GPU);
        let will_do = |(kind, n): &&(&str, i64)| request.takes_gpu_type(kind) && *n >= each;
        let all: i64 = self.gpus.iter().map(|(_, n)| n).sum();
        let good = self.gpus.iter().filter(will_do);
        let fits = self.cpu >= asked.get(ResourceId::CPU)
            && self.mem >= asked.get(ResourceId::MEM)
            && good.clone().count() as i64 >= gpu / each;
        if fits { all - good.map(|(_, n)| n).sum::<i64>() } else { all }
    }
}

impl Pod {
    /// What it asks for: the pod is one task.
    pub fn request(&self) -> Request {
        let gpus = match (self.gpus, self.share) {
            (0, _) => GpuRequest::None,
            (1, share) if share < WHOLE_GPU => GpuRequest::Share(share as u32),
            (gpus, _) => GpuRequest::PerNode(gpus),
        };
        let mut request = Request { mem: MemRequest::PerNode(self.memory_mib as u64), gpus, ..Request::default() };
        // At most PROCESSORS.
        request.set_cpu_milli(self.cpu_milli.max(1) as u32);
        request.set_gpu_types(self.models.clone());
        request
    }
}
