//! What the tests of the policy host share: built components, a host, and a small cluster.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may its helpers")]

use ephor_core::command::{NodeReport, Objects};
use ephor_core::cycle::{Cause, Cycle};
use ephor_core::decide::{Batch, execute};
use ephor_core::records::Uncharged;
use ephor_core::replica::Replica;
use ephor_core::roles::{ClusterView, PriorityBatch, PriorityRow};
use ephor_core::{Command, State};
use ephor_model::{
    Account, AccountId, Amounts, AttemptKey, Blobs, Digest, Draft, Identity, JobId, JobSpec, JobState, NodeSpec,
    Payload, PolicyLimits, Queue, QueueId, ResourceId, Role, Span, Timestamp, Uid, Usage,
};
use ephor_policy::bounds::site_maxima;
use ephor_policy::{Host, LoadError, Loaded, Prepared, Request, Services};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The time of every call here.
pub const NOW: Timestamp = Timestamp(1_000_000);

fn target(folder: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(folder).join(format!("{name}.wasm"))
}

/// A component that the build made; `None`, with a line that says so, where it did not.
pub fn component(folder: &str, name: &str) -> Option<Vec<u8>> {
    let path = target(folder, name);
    match std::fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(_) => {
            println!("skipped: {} is not built (make build makes it)", path.display());
            None
        }
    }
}

/// A component that misbehaves as its configuration says.
pub fn hostile(name: &str) -> Option<Vec<u8>> {
    component("hostile", &format!("hostile-{name}"))
}

/// A built-in policy.
pub fn plugin(name: &str) -> Option<Vec<u8>> {
    component("plugins", name)
}

/// A host without a cache.
pub fn host() -> Host {
    Host::new(Services::default()).unwrap()
}

/// Maxima with room for a flood, so that the output limit is what it meets.
pub fn roomy(role: Role) -> PolicyLimits {
    PolicyLimits { memory_bytes: 256 << 20, fuel_base: 1_000_000_000, ..site_maxima(role) }
}

/// Maxima with little memory, so that a bomb meets its limit before it has burned its fuel.
pub fn tight(role: Role) -> PolicyLimits {
    PolicyLimits { memory_bytes: 8 << 20, ..site_maxima(role) }
}

/// Prepares a component with all that a site can grant, within the usual maxima.
pub fn prepare(role: Role, component: &[u8], config: &str) -> Result<Prepared, LoadError> {
    prepare_within(site_maxima(role), role, component, config)
}

/// Prepares a component with all that a site can grant.
pub fn prepare_within(maxima: PolicyLimits, role: Role, component: &[u8], config: &str) -> Result<Prepared, LoadError> {
    let grants = vec!["ephor:host/directory".to_owned()];
    host().prepare(&Request { role, component, config, grants: &grants, maxima })
}

/// Generation 7 of a component, within the usual maxima.
pub fn load(role: Role, component: &[u8], config: &str) -> Arc<Loaded> {
    load_within(site_maxima(role), role, component, config)
}

/// Generation 7 of a component.
pub fn load_within(maxima: PolicyLimits, role: Role, component: &[u8], config: &str) -> Arc<Loaded> {
    prepare_within(maxima, role, component, config).unwrap_or_else(|e| panic!("{e}")).activate(7)
}

/// Somebody.
pub fn alice() -> Identity {
    Identity { uid: Uid(1000), gid: 1000, name: "alice".into(), roles: Vec::new() }
}

/// A job with a script.
pub fn draft() -> Draft {
    let mut spec = JobSpec::new("test", Payload::Script { args: Vec::new() });
    spec.queue = "main".into();
    spec.account = "default".into();
    spec.owner.uid = Uid(1000);
    let blobs = Blobs { script: Some(b"#!/bin/sh\ntrue\n".to_vec()), environment: b"HOME=/home/alice\0".to_vec() };
    Draft { spec, blobs }
}

/// What admission sees: [`cluster`], where anything with up to two nodes could run.
pub fn view() -> Arc<ClusterView> {
    let never_runs = |_: &State, draft: &Draft| {
        (draft.spec.request.nodes_min > 2).then(|| format!("{} nodes, there are 2", draft.spec.request.nodes_min))
    };
    Arc::new(ClusterView { state: cluster(0), never_runs: Box::new(never_runs) })
}

/// Two nodes of four cores, queue `main`, account `default`, and so many pending jobs of one core.
pub fn cluster(jobs: u32) -> State {
    let mut state = State::default();
    let mut run = |command| execute(&mut state, Timestamp(1_000), command, &mut Batch::default()).unwrap();
    run(Command::BeginEpoch { at_least: 1 });
    let queue = Queue { name: "main".into(), default: true, ..Queue::default() };
    let account = Account { name: "default".into(), ..Account::default() };
    run(Command::Apply(Objects { queues: vec![(queue, None)], accounts: vec![account], ..Objects::default() }));
    for name in ["n1", "n2"] {
        let capacity = Amounts::new().with(ResourceId::CPU, 4_000).with(ResourceId::MEM, 8_192);
        let spec = NodeSpec { name: name.into(), capacity, boot_id: "boot".into(), ..NodeSpec::default() };
        run(Command::NodeReport(NodeReport::Register { spec, holds: Vec::new(), faults: Default::default() }));
    }
    for i in 0..jobs {
        let mut spec = draft().spec;
        spec.name = format!("job{i}");
        spec.time_limit = Some(Span::minutes(10));
        let script = Some(Digest::default());
        let environment = Digest::default();
        run(Command::Submit { spec: Arc::new(spec), script, environment, known_ends: Vec::new() });
    }
    state
}

/// A cycle over that state.
pub fn cycle(state: &State) -> Box<Cycle> {
    cycle_with_work(state, site_maxima(Role::Scheduling).work_units)
}

/// A cycle over that state with so many work units.
pub fn cycle_with_work(state: &State, work: u64) -> Box<Cycle> {
    let causes = vec![Cause::Settings, Cause::Arrived(JobId(1))];
    Cycle::begin(Box::new(Replica::of(state)), state.clone(), NOW, work, causes, Vec::new())
}

/// So many jobs to be ordered.
pub fn batch(rows: u32) -> Arc<PriorityBatch> {
    let row = |i: u32| PriorityRow {
        job: JobId(u64::from(i) + 1),
        submitted: Timestamp(0),
        eligible: Timestamp(i64::from(i) * 1_000),
        queue: QueueId(1),
        account: AccountId(1),
        user: Uid(1000),
        nice: i64::from(i % 3),
        cpus: 1_000 * i64::from(1 + i % 8),
        mem: 1_024,
        gpus: 0,
        nodes: 1,
        time_limit: 3_600_000,
        requeues: 0,
        queue_priority: 10,
        usage: 5,
    };
    let totals =
        vec![("cpus", 8_000), ("mem", 16_384), ("gpus", 0), ("nodes", 2), ("max-queue-priority", 10), ("usage", 9)];
    Arc::new(PriorityBatch { now: NOW, rows: (0..rows).map(row).collect(), totals })
}

/// So many ended attempts.
pub fn ended(rows: u32) -> Arc<Vec<Uncharged>> {
    let row = |i: u32| Uncharged {
        key: AttemptKey { job: JobId(u64::from(i) + 1), number: 1 },
        queue: QueueId(1),
        account: AccountId(1),
        user: Uid(1000),
        started: Timestamp(0),
        ended: Timestamp(3_600_000),
        held: Amounts::new().with(ResourceId::CPU, 2_000).with(ResourceId::NODE, 1),
        usage: Usage { cpu_ms: 1_000, ..Usage::default() },
        state: JobState::Completed,
    };
    Arc::new((0..rows).map(row).collect())
}

/// Resident memory of this process in MiB.
pub fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}
