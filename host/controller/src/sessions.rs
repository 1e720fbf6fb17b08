//! The agents' sessions: registrations, launches and terminations going out, reports coming in.

mod blobs;
mod steps;

use crate::counters::add;
use crate::devices::{self, DeviceReports};
use crate::handle::{Handle, Pending};
use crate::launch::{self, Parts, blobs_of, resource_name};
use crate::steps::Steps;
use blobs::BlobCache;
use ephor_core::command::NodeReport;
use ephor_core::{AttemptPhase, Command, Event, OnFault, Reply, Stamped, State};
use ephor_model::{Amounts, AttemptKey, EndCause, Exit, JobId, NodeId, NodeSpec, ResourceId, Span, Usage, limits};
use ephor_proto::v1;
use ephor_proto::v1::{agent_message, controller_message, report};
use ephor_store::Reader;
use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use steps::Registered;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Status, Streaming};

/// Messages waiting for one session; an agent that falls behind further is disconnected and told everything anew when
/// it comes back.
const OUTBOX: usize = 65_536;
/// Nodes of one session: a simulator's.
const NODES_PER_SESSION: usize = limits::NODES as usize;

/// What a session stream sends.
pub type Outgoing = Pin<Box<dyn Stream<Item = Result<v1::ControllerMessage, Status>> + Send>>;

/// Settings of sessions.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// Name of the cluster, for the environment of jobs.
    pub cluster: String,
    /// SIGTERM to SIGKILL.
    pub grace: Duration,
    /// A node that says nothing for so long is down.
    pub silence: Duration,
    /// What becomes of jobs on a GPU that goes bad.
    pub on_gpu_fault: OnFault,
}

/// See the module.
pub struct Sessions {
    settings: SessionSettings,
    blobs: Arc<dyn Reader>,
    links: Mutex<Links>,
    /// How the nodes' devices are doing.
    pub devices: DeviceReports,
    /// The steps of running attempts.
    pub steps: Steps,
    effects: std::sync::mpsc::Sender<Effects>,
}

#[derive(Default)]
struct Links {
    next: u64,
    by_node: HashMap<NodeId, Link>,
    sessions: HashMap<u64, Session>,
}

#[derive(Clone)]
struct Link {
    session: u64,
    outbox: mpsc::Sender<Result<v1::ControllerMessage, Status>>,
}

struct Session {
    nodes: HashSet<NodeId>,
    seen: Instant,
    open: bool,
    outbox: mpsc::Sender<Result<v1::ControllerMessage, Status>>,
}

impl Session {
    fn new(outbox: mpsc::Sender<Result<v1::ControllerMessage, Status>>) -> Self {
        Self { nodes: HashSet::new(), seen: Instant::now(), open: true, outbox }
    }
}

/// An attempt that is to end, why, and how long it has where that was said.
type Ending = (AttemptKey, EndCause, Option<Span>);

/// What a commit asks of agents, with the state that it asks it in.
struct Effects {
    launches: Vec<JobId>,
    ends: Vec<Ending>,
    /// Attempts whose time limit may be another one now.
    adjusts: Vec<JobId>,
    /// Attempts that are over, whose steps end with them, and the nodes that had any.
    over: Vec<(AttemptKey, Vec<NodeId>)>,
    state: State,
}

impl Sessions {
    /// Sessions and the thread that loads blobs for their launches. The thread ends with the last `Arc`.
    pub fn start(
        settings: SessionSettings,
        blobs: Arc<dyn Reader>,
        counters: Arc<crate::counters::Counters>,
    ) -> Arc<Self> {
        let (effects, mail) = std::sync::mpsc::channel::<Effects>();
        let sessions = Self {
            settings,
            blobs,
            links: Mutex::default(),
            devices: DeviceReports::default(),
            steps: Steps::default(),
            effects,
        };
        let sessions = Arc::new(sessions);
        let weak = Arc::downgrade(&sessions);
        let spawned = std::thread::Builder::new().name("launcher".into()).spawn(move || {
            let mut cache = BlobCache::default();
            while let Ok(effects) = mail.recv() {
                let Some(sessions) = weak.upgrade() else { return };
                sessions.carry_out(&effects, &mut cache, &counters);
            }
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "no thread for launches could be started");
        }
        sessions
    }

    fn links(&self) -> std::sync::MutexGuard<'_, Links> {
        // The links are consistent after every statement, so that a panicked holder leaves nothing broken.
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a commit: what it started must be launched, what it ended must be ended.
    pub(crate) fn committed(&self, events: &[Stamped], state: &State) {
        let mut launches = Vec::new();
        let mut ends = Vec::new();
        let mut adjusts = Vec::new();
        let mut over = Vec::new();
        for stamped in events {
            match &stamped.event {
                Event::Started { key, .. } => launches.push(key.job),
                Event::EndOrdered { key, cause } => ends.push((*key, *cause, None)),
                Event::Ended { key, .. } => {
                    let nodes = self.steps.over(*key);
                    over.extend((!nodes.is_empty()).then_some((*key, nodes)));
                }
                Event::Evicted { key, eviction } => ends.push((*key, EndCause::Preempted, Some(eviction.grace))),
                Event::Modified { job, .. } => {
                    let count = state.jobs.get(job).map_or(0, |entry| entry.elements.len() as u64);
                    let elements = (0..count).map(|i| JobId(job.0 + i));
                    adjusts.extend(elements.filter(|id| state.attempts.contains_key(id)));
                }
                _ => {}
            }
        }
        if launches.is_empty() && ends.is_empty() && adjusts.is_empty() && over.is_empty() {
            return;
        }
        // The thread lives as long as `self`.
        let _ = self.effects.send(Effects { launches, ends, adjusts, over, state: state.clone() });
    }

    fn carry_out(&self, effects: &Effects, cache: &mut BlobCache, counters: &crate::counters::Counters) {
        let state = &effects.state;
        for job in &effects.launches {
            if self.launch(state, *job, cache) {
                add(&counters.launches, 1);
            }
        }
        for job in &effects.adjusts {
            self.adjust(state, *job);
        }
        for ending in &effects.ends {
            self.terminate(state, *ending);
        }
        for (key, nodes) in &effects.over {
            self.end_steps(state, *key, None, nodes);
        }
    }

    fn adjust(&self, state: &State, job: JobId) {
        let Some(attempt) = state.attempts.get(&job) else { return };
        let (Some(first), Some((entry, _))) = (attempt.allocation.parts.first(), state.find(job)) else { return };
        let Some(link) = self.links().by_node.get(&first.node).cloned() else { return };
        let message = v1::Adjust {
            node: state.node_name(first.node),
            attempt: Some(attempt_ref(attempt.key)),
            time_limit: entry.job.spec.time_limit.map(|t| t.0),
        };
        self.post(&link, state, controller_message::Body::Adjust(message));
    }

    fn launch(&self, state: &State, job: JobId, cache: &mut BlobCache) -> bool {
        let Some(attempt) = state.attempts.get(&job) else { return false };
        let Some(first) = attempt.allocation.parts.first() else { return false };
        // A node without a session gets the launch when it registers.
        let Some(link) = self.links().by_node.get(&first.node).cloned() else { return false };
        let Some((entry, _)) = state.find(job) else { return false };
        let (script, environment) = blobs_of(&entry.job);
        let loaded = cache.get(&*self.blobs, environment).zip(match script {
            None => Some(None),
            Some(digest) => cache.get(&*self.blobs, digest).map(Some),
        });
        let Some((environment, script)) = loaded else {
            tracing::error!(%job, "the job's script or environment cannot be read; it is not launched");
            return false;
        };
        let parts = Parts {
            script: script.map(|s| s.to_vec()),
            environment: environment.to_vec(),
            cluster: self.settings.cluster.clone(),
            grace_ms: self.settings.grace.as_millis() as i64,
        };
        let Some(message) = launch::message(state, attempt, parts) else { return false };
        self.post(&link, state, controller_message::Body::Launch(message))
    }

    fn terminate(&self, state: &State, (key, cause, grace): Ending) {
        let Some(attempt) = state.attempts.get(&key.job).filter(|a| a.key == key) else { return };
        let Some(first) = attempt.allocation.parts.first() else { return };
        let Some(link) = self.links().by_node.get(&first.node).cloned() else { return };
        let message = v1::Terminate {
            node: state.node_name(first.node),
            attempt: Some(attempt_ref(key)),
            cause: cause_name(cause).into(),
            // Nothing said is the agent's own grace, so that no grace at all is the shortest one.
            grace: grace.map_or(self.settings.grace.as_millis() as i64, |grace| grace.0.max(1)),
        };
        self.post(&link, state, controller_message::Body::Terminate(message));
    }

    fn post(&self, link: &Link, state: &State, body: controller_message::Body) -> bool {
        let message = v1::ControllerMessage { epoch: state.meta.epoch.0, body: Some(body) };
        let sent = link.outbox.try_send(Ok(message)).is_ok();
        if !sent {
            self.close(link.session);
        }
        sent
    }

    fn close(&self, session: u64) {
        let mut links = self.links();
        links.by_node.retain(|_, link| link.session != session);
        if let Some(session) = links.sessions.get_mut(&session)
            && std::mem::replace(&mut session.open, false)
        {
            // Where the outbox is full the agent is told by the end of its stream.
            let _ = session.outbox.try_send(Err(Status::unavailable("the session ended; register again")));
        }
    }

    /// Serves one session stream. `host` is the name in the certificate; a simulator may register any nodes.
    ///
    /// # Errors
    /// None now; the stream itself ends with an error where the agent breaks the protocol.
    pub fn session(
        self: &Arc<Self>,
        handle: &Handle,
        host: String,
        simulator: bool,
        incoming: Streaming<v1::AgentMessage>,
    ) -> Result<Outgoing, Status> {
        let (outbox, outgoing) = mpsc::channel(OUTBOX);
        let number = {
            let mut links = self.links();
            links.next += 1;
            let number = links.next;
            links.sessions.insert(number, Session::new(outbox.clone()));
            number
        };
        let reader = Incoming { sessions: self.clone(), handle: handle.clone(), host, simulator, number, outbox };
        tokio::spawn(reader.run(incoming));
        Ok(Box::pin(ReceiverStream::new(outgoing)))
    }

    /// Watches for silence; runs until the controller stops.
    pub async fn watch(self: Arc<Self>, handle: Handle) {
        let mut ticks =
            tokio::time::interval((self.settings.silence / 4).clamp(Duration::from_millis(50), Duration::from_secs(5)));
        // After a start, nodes that are up in the state but have no session yet get one silence time to come back.
        let begun = Instant::now();
        loop {
            ticks.tick().await;
            for (node, reason) in self.silent(&handle, begun) {
                // Should its agent only have been slow, it must register again to be up again.
                let session = self.links().by_node.get(&node).map(|link| link.session);
                session.into_iter().for_each(|session| self.close(session));
                let report = Command::NodeReport(NodeReport::Silent { node, reason });
                if let Err(error) = handle.run(report).await {
                    tracing::warn!(%error, %node, "a silent node could not be marked down");
                }
            }
        }
    }

    fn silent(&self, handle: &Handle, begun: Instant) -> Vec<(NodeId, String)> {
        let snapshot = handle.snapshot();
        let silence = self.settings.silence;
        let mut links = self.links();
        links.sessions.retain(|_, s| s.open || s.seen.elapsed() < silence * 2);
        let mut seen: HashMap<NodeId, Instant> = HashMap::new();
        for session in links.sessions.values() {
            for node in &session.nodes {
                let at = seen.entry(*node).or_insert(session.seen);
                *at = session.seen.max(*at);
            }
        }
        drop(links);
        let up = snapshot.state.nodes.values().filter(|n| n.health == ephor_core::NodeHealth::Up);
        up.filter_map(|node| {
            let since = seen.get(&node.id).copied().unwrap_or(begun);
            let quiet = since.elapsed();
            (quiet > silence).then(|| (node.id, format!("its agent has said nothing for {} s", quiet.as_secs())))
        })
        .collect()
    }

    /// When a node was last heard, for lists: milliseconds ago.
    pub fn heard(&self, node: NodeId) -> Option<Duration> {
        let links = self.links();
        let session = links.by_node.get(&node)?.session;
        links.sessions.get(&session).map(|s| s.seen.elapsed())
    }
}

/// The incoming half of a session.
struct Incoming {
    sessions: Arc<Sessions>,
    handle: Handle,
    host: String,
    simulator: bool,
    number: u64,
    outbox: mpsc::Sender<Result<v1::ControllerMessage, Status>>,
}

impl Incoming {
    async fn run(self, mut incoming: Streaming<v1::AgentMessage>) {
        // Reports are acknowledged in order, each after its commit; the next ones are read meanwhile.
        let (acks, mut waiting) = mpsc::channel::<(u64, Pending)>(limits::COMMANDS_PER_COMMIT);
        let (outbox, handle) = (self.outbox.clone(), self.handle.clone());
        tokio::spawn(async move {
            while let Some((number, pending)) = waiting.recv().await {
                if pending.reply().await.is_err() {
                    return;
                }
                let epoch = handle.snapshot().state.meta.epoch.0;
                let body = controller_message::Body::Acknowledge(v1::Acknowledge { number });
                if outbox.send(Ok(v1::ControllerMessage { epoch, body: Some(body) })).await.is_err() {
                    return;
                }
            }
        });
        while let Some(message) = incoming.next().await {
            let Ok(v1::AgentMessage { body: Some(body) }) = message else { break };
            self.heard();
            let going_on = match body {
                agent_message::Body::Register(register) => self.register(register).await,
                agent_message::Body::Heartbeat(_) => true,
                agent_message::Body::Report(report) => self.report(report, &acks).await,
                agent_message::Body::Gpus(report) => self.devices(report).await,
                agent_message::Body::Step(report) => self.step(report).await,
            };
            if !going_on {
                break;
            }
        }
        self.sessions.close(self.number);
    }

    fn heard(&self) {
        if let Some(session) = self.sessions.links().sessions.get_mut(&self.number) {
            session.seen = Instant::now();
        }
    }

    async fn refuse(&self, reason: String) -> bool {
        tracing::warn!(host = self.host, reason, "an agent's session is refused");
        // An agent that is gone needs no reason.
        let _ = self.outbox.send(Err(Status::failed_precondition(reason))).await;
        false
    }

    async fn register(&self, mut register: v1::Register) -> bool {
        let epoch = self.handle.snapshot().state.meta.epoch.0;
        if register.epoch > epoch {
            let text = format!(
                "node {} has obeyed epoch {} and this controller is at {epoch}: it runs on an older copy of the state; \
                 start it with --recover",
                register.node, register.epoch
            );
            return self.refuse(text).await;
        }
        if !self.simulator && register.node != self.host {
            return self.refuse(format!("the certificate is for node {}, not {}", self.host, register.node)).await;
        }
        let holds: Vec<AttemptKey> = register.running.iter().map(key_of).collect();
        let steps = Registered::read(&mut register, &self.handle.snapshot().state);
        let faults = devices::faults_of(&register.devices, self.sessions.settings.on_gpu_fault);
        let spec = match node_spec(register) {
            Ok(spec) => spec,
            Err(text) => return self.refuse(text).await,
        };
        let name = spec.name.clone();
        let reply = self.handle.run(Command::NodeReport(NodeReport::Register { spec, holds, faults })).await;
        let (id, unknown) = match reply {
            Ok(Reply::Node { id, unknown }) => (id, unknown),
            Ok(_) => return false,
            Err(error) => return self.refuse(error.to_string()).await,
        };
        let welcome = v1::Welcome {
            node: name,
            heartbeat_ms: (self.sessions.settings.silence.as_millis() / 4).clamp(50, 15_000) as i64,
            unknown: unknown.into_iter().map(attempt_ref).collect(),
            over: steps.over.iter().copied().map(attempt_ref).collect(),
        };
        let body = Some(controller_message::Body::Welcome(welcome));
        if self.outbox.send(Ok(v1::ControllerMessage { epoch, body })).await.is_err() {
            return false;
        }
        // Before anybody can reach the node: no step is planned on it in ignorance of those that it holds.
        steps.apply(&self.sessions, id);
        {
            let mut links = self.sessions.links();
            links.by_node.insert(id, Link { session: self.number, outbox: self.outbox.clone() });
            if let Some(session) = links.sessions.get_mut(&self.number)
                && session.nodes.len() < NODES_PER_SESSION
            {
                session.nodes.insert(id);
            }
        }
        self.catch_up(id);
        true
    }

    /// Tells a node that came (back) what was decided while it was away. Launches are idempotent.
    fn catch_up(&self, node: NodeId) {
        let state = self.handle.snapshot().state.clone();
        let mut launches = Vec::new();
        let mut ends = Vec::new();
        let mut adjusts = Vec::new();
        for job in state.derived.held.get(&node).into_iter().flat_map(|h| h.jobs.iter()) {
            let Some(attempt) = state.attempts.get(job) else { continue };
            if attempt.allocation.parts.first().is_none_or(|p| p.node != node) {
                continue;
            }
            match &attempt.phase {
                AttemptPhase::Launching => launches.push(*job),
                // Its time limit may have changed meanwhile.
                AttemptPhase::Running => adjusts.push(*job),
                AttemptPhase::Ending { cause, eviction, .. } => {
                    ends.push((attempt.key, *cause, eviction.as_ref().map(|e| e.grace)));
                }
            }
        }
        if !launches.is_empty() || !ends.is_empty() || !adjusts.is_empty() {
            // The thread lives as long as the sessions.
            let _ = self.sessions.effects.send(Effects { launches, ends, adjusts, over: Vec::new(), state });
        }
    }

    /// Only the node that runs an attempt may say what became of it. Of one that is over, anything may be said: it
    /// changes nothing.
    fn may_speak_of(&self, key: AttemptKey) -> bool {
        let snapshot = self.handle.snapshot();
        let Some(attempt) = snapshot.state.attempts.get(&key.job) else { return true };
        let Some(first) = attempt.allocation.parts.first() else { return true };
        let links = self.sessions.links();
        links.sessions.get(&self.number).is_some_and(|s| s.nodes.contains(&first.node))
    }

    async fn devices(&self, report: v1::GpuReport) -> bool {
        let snapshot = self.handle.snapshot();
        let node = snapshot.state.node_by_name(&report.node).map(|node| node.id);
        let mine = |id: &NodeId| self.sessions.links().sessions.get(&self.number).is_some_and(|s| s.nodes.contains(id));
        let Some(node) = node.filter(mine) else {
            return self.refuse(format!("node '{}' is none of this session", report.node)).await;
        };
        let news = devices::news(&snapshot.state, node, &report, self.sessions.settings.on_gpu_fault);
        self.sessions.devices.take(&snapshot.state, node, report);
        let Some(faults) = news else { return true };
        // The agent says it again with its next report, so that a failure only delays it.
        self.handle.run(Command::NodeReport(NodeReport::Devices { node, faults })).await.is_ok()
    }

    async fn report(&self, report: v1::Report, acks: &mpsc::Sender<(u64, Pending)>) -> bool {
        self.handle.counters().reports.fetch_add(1, Ordering::Relaxed);
        let (Some(attempt), Some(what)) = (&report.attempt, report.what) else { return false };
        let key = key_of(attempt);
        if !self.may_speak_of(key) {
            return self.refuse(format!("attempt {key} does not run on a node of this session")).await;
        }
        let said = match what {
            report::What::Began(_) => NodeReport::Began { key },
            report::What::Ended(ended) => {
                let Some(cause) = cause_of(&ended.cause) else {
                    return self.refuse(format!("'{}' is no cause of an end", ended.cause)).await;
                };
                NodeReport::Ended {
                    key,
                    exit: Exit { code: ended.exit_code, signal: ended.exit_signal },
                    cause,
                    message: ended.message,
                    usage: Usage {
                        cpu_ms: ended.cpu_ms.max(0),
                        peak_mem_mib: ended.peak_mem_mib.max(0),
                        held: Amounts::new(),
                    },
                }
            }
        };
        match self.handle.enqueue(Command::NodeReport(said)).await {
            Ok(pending) => acks.send((report.number, pending)).await.is_ok(),
            Err(_) => false,
        }
    }
}

fn attempt_ref(key: AttemptKey) -> v1::AttemptRef {
    v1::AttemptRef { job: key.job.0, attempt: key.number }
}

fn key_of(attempt: &v1::AttemptRef) -> AttemptKey {
    AttemptKey { job: JobId(attempt.job), number: attempt.attempt }
}

const CAUSES: [(EndCause, &str); 8] = [
    (EndCause::Exited, "exited"),
    (EndCause::Cancelled, "cancelled"),
    (EndCause::TimeLimit, "time-limit"),
    (EndCause::OutOfMemory, "out-of-memory"),
    (EndCause::Preempted, "preempted"),
    (EndCause::Requeued, "requeued"),
    (EndCause::LaunchFailed, "launch-failed"),
    (EndCause::NodeFailed, "node-failed"),
];

fn cause_name(cause: EndCause) -> &'static str {
    CAUSES.iter().find(|(c, _)| *c == cause).map_or("cancelled", |(_, name)| name)
}

fn cause_of(name: &str) -> Option<EndCause> {
    CAUSES.iter().find(|(_, n)| *n == name).map(|(cause, _)| *cause)
}

fn node_spec(register: v1::Register) -> Result<NodeSpec, String> {
    let good = !register.node.is_empty() && register.node.len() <= limits::NAME_BYTES;
    if !good || register.devices.len() > limits::DEVICES_PER_NODE as usize {
        return Err(format!("'{}' cannot register: its name or number of GPUs is out of bounds", register.node));
    }
    let capacity = ephor_proto::convert::amounts_from_wire(&register.capacity, ResourceId::from_well_known_name)
        .map_err(|e| format!("node {}: {e}", register.node))?;
    let mut features = register.features;
    features.sort();
    features.dedup();
    Ok(NodeSpec {
        name: register.node,
        address: register.address,
        capacity,
        features,
        devices: register.devices.into_iter().map(devices::device).collect(),
        boot_id: register.boot_id,
        agent_version: register.agent_version,
    })
}

/// Name of a resource on the wire, for other services of this crate.
pub fn name_of_resource(id: ResourceId) -> String {
    resource_name(id)
}
