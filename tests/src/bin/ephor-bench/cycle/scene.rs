//! The cluster that cycles are measured on: every node has eight GPUs, nine of ten are in use, and a long queue waits.
//!
//! Everything follows from the two sizes, so that a run can be repeated anywhere. States are made by the core's own
//! commands, as in a controller.

use ephor_core::command::{Group, NodeReport, Objects, Start};
use ephor_core::decide::{Batch, execute};
use ephor_core::{Command, Reply, State};
use ephor_model::node::Device;
use ephor_model::{
    Account, Allocation, AllocationPart, Amounts, Digest, GpuRequest, JobId, JobSpec, MemRequest, NodeId, NodeSpec,
    Payload, Queue, Request, ResourceId, Span, Timestamp,
};
use std::sync::Arc;

/// GPUs of a node.
pub const GPUS: u32 = 8;
/// When everything that runs has started.
pub const NOW: Timestamp = Timestamp(1_000_000);
/// Different needs among those that wait.
pub const CLASSES: u32 = 1_000;

/// Sizes of a scene.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Nodes.
    pub nodes: u32,
    /// Jobs that wait.
    pub pending: u32,
}

/// A state, changed by commands only.
pub struct Scene {
    /// The state.
    pub state: State,
    batch: Batch,
}

impl Scene {
    /// A cluster of that size with its running and waiting jobs.
    pub fn of(size: Size) -> anyhow::Result<Self> {
        let mut scene = Self { state: State::default(), batch: Batch::default() };
        let queue = Queue { name: "default".into(), default: true, weight: 1, ..Queue::default() };
        let account = Account { name: "default".into(), shares: 1, ..Account::default() };
        scene.run(Command::BeginEpoch { at_least: 1 })?;
        scene.run(Command::Apply(Objects {
            queues: vec![(queue, None)],
            accounts: vec![account],
            ..Objects::default()
        }))?;
        for number in 0..size.nodes {
            scene.run(Command::NodeReport(NodeReport::Register {
                spec: node(number),
                holds: Vec::new(),
                faults: Default::default(),
            }))?;
        }
        scene.fill(size.nodes)?;
        for number in 0..size.pending {
            scene.submit(waiting(number))?;
        }
        Ok(scene)
    }

    /// Submits one job.
    pub fn submit(&mut self, spec: JobSpec) -> anyhow::Result<JobId> {
        let spec = Arc::new(spec);
        let command = Command::Submit { spec, script: None, environment: Digest::default(), known_ends: Vec::new() };
        match self.run(command)? {
            Reply::Job(id) => Ok(id),
            other => anyhow::bail!("a submit was answered by {other:?}"),
        }
    }

    /// Carries out a command at [`NOW`]; its events are then in [`Self::take_events`].
    pub fn run(&mut self, command: Command) -> anyhow::Result<Reply> {
        Ok(execute(&mut self.state, NOW, command, &mut self.batch)?)
    }

    /// The events since the last time.
    pub fn take_events(&mut self) -> Vec<ephor_core::Stamped> {
        self.batch.touched.clear();
        std::mem::take(&mut self.batch.events)
    }

    /// Puts running jobs on the nodes: of a hundred nodes five stay idle and ten are half in use.
    fn fill(&mut self, nodes: u32) -> anyhow::Result<()> {
        // Nodes and GPUs of each of twenty jobs in turn: 14.4 GPUs on average, on 38 nodes.
        const SHAPES: [(u32, u32); 20] = [
            (1, 8),
            (2, 8),
            (1, 4),
            (1, 8),
            (4, 8),
            (1, 8),
            (1, 4),
            (2, 8),
            (1, 8),
            (6, 8),
            (1, 4),
            (1, 8),
            (4, 8),
            (2, 8),
            (1, 8),
            (1, 4),
            (1, 8),
            (2, 8),
            (1, 8),
            (4, 8),
        ];
        let busy = nodes - nodes / 20;
        let (mut next, mut job) = (0, 0_u32);
        loop {
            let (count, gpus) = SHAPES[job as usize % SHAPES.len()];
            if next + count > busy {
                return Ok(());
            }
            let request = Request { nodes_min: count, gpus: GpuRequest::PerNode(gpus), ..base_request(gpus) };
            // Ends are spread over a day, each at its own time.
            let limit = Span::seconds(600 + i64::from(job.wrapping_mul(2_654_435_761) % 86_400));
            let id = self.submit(spec(request, limit))?;
            let parts = (next..next + count).map(|i| part(NodeId(i), gpus));
            let allocation = Arc::new(Allocation { parts: parts.collect() });
            let groups = vec![Group { starts: vec![Start { job: id, allocation }], ..Group::default() }];
            let reply = self.run(Command::Plan { groups })?;
            anyhow::ensure!(
                matches!(&reply, Reply::Groups(taken) if taken == &[true]),
                "a start was not taken: {reply:?}"
            );
            next += count;
            job += 1;
        }
    }
}

fn node(number: u32) -> NodeSpec {
    let capacity = [(ResourceId::CPU, 64_000), (ResourceId::MEM, 512 << 10), (ResourceId::GPU, i64::from(GPUS) * 1000)];
    let device = |index| Device {
        kind: "h100".into(),
        uuid: format!("{number}-{index}"),
        mem_mib: 81_920,
        numa: -1,
        ..Device::default()
    };
    NodeSpec {
        name: format!("n{number:06}"),
        capacity: capacity.into_iter().collect(),
        devices: (0..GPUS).map(device).collect(),
        boot_id: "bench".into(),
        ..NodeSpec::default()
    }
}

/// Seven cores and 48 GiB go with each GPU.
fn base_request(gpus: u32) -> Request {
    let mem = MemRequest::PerNode(u64::from(gpus) * (48 << 10));
    Request { cpus_per_task: gpus * 7, mem, ..Request::default() }
}

fn part(node: NodeId, gpus: u32) -> AllocationPart {
    let request = base_request(gpus);
    let mut amounts: Amounts = request.per_task();
    amounts.add(&request.per_node());
    amounts.set(ResourceId::GPU, i64::from(gpus) * 1000);
    AllocationPart { node, tasks: 1, amounts, devices: (0..gpus).collect() }
}

/// The job that waits at that place: one of [`CLASSES`] needs, most of them for whole nodes.
pub fn waiting(number: u32) -> JobSpec {
    let class = number.wrapping_mul(2_654_435_761) % CLASSES;
    // Of twenty needs one is for a part of a node, four for one node, the others for gangs.
    let (nodes, gpus) = match class % 20 {
        0 => (1, 1 + class / 20 % 4),
        1..=4 => (1, 8),
        5..=10 => (2, 8),
        11..=15 => (4, 8),
        16..=18 => (16, 8),
        _ => (64, 8),
    };
    let mut request = Request { nodes_min: nodes, gpus: GpuRequest::PerNode(gpus), ..base_request(gpus) };
    request.mem = MemRequest::PerNode(u64::from(gpus) * (48 << 10) - u64::from(class));
    spec(request, Span::seconds(3_600 * (1 + i64::from(class % 23))))
}

/// A gang of ten parts of eight GPUs, which only empty nodes have room for.
pub fn gang() -> JobSpec {
    let request = Request { nodes_min: 10, gpus: GpuRequest::PerNode(GPUS), ..base_request(GPUS) };
    spec(request, Span::seconds(3_600))
}

/// A job for a whole node, for as long as the bench lasts.
pub fn whole_node() -> JobSpec {
    spec(base_request(GPUS), Span::seconds(86_400))
}

fn spec(request: Request, limit: Span) -> JobSpec {
    let mut spec = JobSpec::new("bench", Payload::Argv(vec!["true".into()]));
    spec.queue = "default".into();
    spec.account = "default".into();
    spec.time_limit = Some(limit);
    spec.request = request.into();
    spec
}
