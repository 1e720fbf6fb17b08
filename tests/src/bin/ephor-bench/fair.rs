//! What sharing a cluster among queues costs: the cases of KAI Scheduler's own scale tests (its
//! `docs/scale-tests/example-results.json`), in the simulator, through the WebAssembly policy.
//!
//! Theirs are times from submit to placed in a simulated Kubernetes cluster of 500 nodes with eight GPUs each; ours are what
//! the cycles took in all, policy and core together, until everything asked for is placed. Nothing else is the same, so
//! that only the order of magnitude says something.

use crate::figure::Figure;
use ephor_core::state::State;
use ephor_model::node::Device;
use ephor_model::{
    AllocationPart, Amounts, EndCause, GpuRequest, JobId, JobSpec, JobState, NodeId, NodeSpec, Payload, Queue, Request,
    ResourceId, Span, Timestamp, Topology,
};
use ephor_sim::cluster::SimCluster;
use ephor_sim::driver::{Running, Settled, settle};
use ephor_sim::policies::Policies;
use ephor_sim::settings::Settings;
use ephor_sim::simulate::Choice;
use ephor_sim::workload::{SimJob, Workload};
use serde_json::json;
use std::sync::Arc;

/// GPUs of a node.
const GPUS: u32 = 8;
/// Nodes of most cases.
const NODES: u32 = 500;
/// Nodes of a rack, the level that a gang prefers.
const RACK: u32 = 32;
/// No job ends by itself.
const RUN: Span = Span(365 * 86_400_000);
/// Cycles without a change after which a case is over, and cycles after which it has failed.
const CYCLES: (u32, u32) = (2, 64);

/// Every case.
pub fn run() -> anyhow::Result<Vec<Figure>> {
    let all = NODES * GPUS;
    Ok(vec![
        Case::new(NODES).pending("b", all, 1, 1).measure("kai_fill_4000", 398.0)?,
        Case::new(NODES).running("a", GPUS, 1).pending("b", all, 1, 1).measure("kai_reclaim_4000", 694.0)?,
        Case::new(NODES).running("a", GPUS, 1).pending("b", 1, 1, 1).measure("kai_reclaim_one", 13.9)?,
        Case::new(NODES).running("a", GPUS, 1).pending("b", 1, 250, GPUS).measure("kai_reclaim_gang_2000", 102.0)?,
        Case::new(NODES).running("a", GPUS, 1).pending("b", 1, 500, GPUS).measure("kai_reclaim_gang_4000", 85.0)?,
        Case::new(512).pending("b", 1, 512, GPUS).near().measure("kai_gang_512_preferred", 48.7)?,
        Case::new(NODES)
            .running("b", 1, GPUS - 1)
            .pending("b", 1, 10, GPUS)
            .hopeless()
            .measure("kai_impossible_80", 249.5)?,
        Case::new(NODES).running("b", 1, 1).pending("b", 41, 10, GPUS).measure("kai_consolidate_41", 456.0)?,
    ])
}

/// A cluster in which queue `b` is due everything and `a` nothing, with what runs and what waits.
struct Case {
    nodes: u32,
    running: Vec<Running>,
    jobs: Vec<SimJob>,
    /// Jobs from this one on wait at first.
    waiting: usize,
    /// What waits cannot be placed.
    hopeless: bool,
}

impl Case {
    fn new(nodes: u32) -> Self {
        Self { nodes, running: Vec::new(), jobs: Vec::new(), waiting: 0, hopeless: false }
    }

    /// So many jobs of a queue on each node, with so many GPUs each.
    fn running(mut self, queue: &str, each: u32, gpus: u32) -> Self {
        for node in 0..self.nodes {
            for at in 0..each {
                let amounts = Amounts::new().with(ResourceId::CPU, 1000);
                let amounts = amounts.with(ResourceId::GPU, i64::from(gpus) * 1000);
                let devices = (at * gpus..(at + 1) * gpus).collect();
                let part = AllocationPart { node: NodeId(node), tasks: 1, amounts, devices };
                self.running.push(Running {
                    job: self.jobs.len(),
                    parts: vec![(name(node), part)],
                    stuck: false,
                    ended: None,
                });
                self.jobs.push(job(queue, 1, gpus, self.jobs.len()));
            }
        }
        self.waiting = self.jobs.len();
        self
    }

    /// So many jobs that wait, of so many tasks with so many GPUs each.
    fn pending(mut self, queue: &str, jobs: u32, tasks: u32, gpus: u32) -> Self {
        self.jobs.extend((0..jobs).map(|n| job(queue, tasks, gpus, self.waiting + n as usize)));
        self
    }

    /// What waits would rather have its nodes in one rack.
    fn near(mut self) -> Self {
        for job in &mut self.jobs[self.waiting..] {
            let spec = Arc::make_mut(&mut job.spec);
            let topology = Topology::read("rack", false).ok();
            spec.request = Request { topology, ..(*spec.request).clone() }.into();
        }
        self
    }

    fn hopeless(mut self) -> Self {
        self.hopeless = true;
        self
    }

    /// Seconds that the cycles take in all, beside KAI's.
    fn measure(&self, name: &str, kai: f64) -> anyhow::Result<Figure> {
        let mut settings = Settings::default();
        // Who gives way is gone in the next cycle, and any number may move: those of KAI's tests do.
        settings.set("grace_s=0")?;
        settings.set("consolidation_limit=-1")?;
        let (mut policies, _) =
            Policies::load(&Choice { scheduling: "fairshare".into(), settings, ..Choice::default() })?;
        let workload = Workload { jobs: self.jobs.clone(), ..Workload::default() };
        let cluster = self.cluster();
        let (mut runs, mut cycles, mut evictions) = (Vec::new(), 0, 0);
        for _ in 0..3 {
            let settled = settle(&workload, &cluster, &self.running, &mut policies, &mut (), CYCLES)?;
            self.check(&settled)?;
            // The last ones found nothing left to do.
            cycles = settled.outcome.decisions.len() - CYCLES.0 as usize;
            evictions = settled.outcome.evictions;
            let counted = if self.hopeless { 1 } else { cycles };
            runs.push(settled.outcome.decisions[..counted].iter().map(std::time::Duration::as_secs_f64).sum());
        }
        let median = Figure::of(name, "s", runs.clone(), json!(null)).value;
        let settings = json!({"nodes": self.nodes, "gpus": self.nodes * GPUS, "running": self.running.len(),
            "pending": self.jobs.len() - self.waiting, "cycles": cycles, "evictions": evictions,
            "kai_s": kai, "times_faster": (kai / median.max(1e-3)).round()});
        Ok(Figure::of(name, "s", runs, settings))
    }

    fn check(&self, settled: &Settled) -> anyhow::Result<()> {
        anyhow::ensure!(settled.settled, "still not at rest after {} cycles", CYCLES.1);
        let state: &State = &settled.outcome.state;
        let runs = |id: &JobId| state.element(*id).is_some_and(|(_, element)| element.state != JobState::Pending);
        let placed = settled.jobs[self.waiting..].iter().filter(|id| runs(id)).count();
        let wanted = if self.hopeless { 0 } else { self.jobs.len() - self.waiting };
        anyhow::ensure!(placed == wanted, "{placed} of {wanted} jobs were placed");
        Ok(())
    }

    fn cluster(&self) -> SimCluster {
        let all = i64::from(self.nodes * GPUS) * 1000;
        let queue = |name: &str, quota: i64| {
            let quota = Amounts::new().with(ResourceId::GPU, quota);
            (Queue { name: name.into(), quota, weight: 1, ..Queue::default() }, None)
        };
        SimCluster { nodes: (0..self.nodes).map(node).collect(), queues: vec![queue("a", 0), queue("b", all)] }
    }
}

fn name(node: u32) -> String {
    format!("n{node:04}")
}

fn node(number: u32) -> NodeSpec {
    let device = |index| Device {
        kind: "h100".into(),
        uuid: format!("{number}-{index}"),
        mem_mib: 81_920,
        numa: -1,
        ..Device::default()
    };
    let capacity = [(ResourceId::CPU, 64_000), (ResourceId::MEM, 512 << 10), (ResourceId::GPU, i64::from(GPUS) * 1000)];
    NodeSpec {
        name: name(number),
        capacity: capacity.into_iter().collect(),
        devices: (0..GPUS).map(device).collect(),
        features: vec![format!("rack=r{:02}", number / RACK)],
        ..NodeSpec::default()
    }
}

/// A job that may be moved and evicted.
fn job(queue: &str, tasks: u32, gpus: u32, number: usize) -> SimJob {
    let mut spec = JobSpec::new(&format!("job-{number}"), Payload::Argv(vec!["true".into()]));
    spec.queue = queue.into();
    spec.account = "default".into();
    spec.requeue = Some(true);
    spec.time_limit = Some(RUN);
    spec.request = Request { tasks: Some(tasks), gpus: GpuRequest::PerTask(gpus), ..Request::default() }.into();
    SimJob { submit: Timestamp(0), run: RUN, ends: EndCause::Exited, spec: Arc::new(spec) }
}
