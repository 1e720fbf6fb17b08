//! A real node: the attempts that it holds, from launch to acknowledged end.
//!
//! One task owns the state. Everything that touches processes or the spool's folders happens on a thread of its own
//! ([`launcher`]), so that a slow disk or a slow directory of users never holds up the stream to the controller.

mod adopt;
mod groups;
mod launcher;
mod order;
mod process;
mod step_order;
mod steps;

pub use launcher::{Launching, probe};

use crate::facts::now_ms;
use crate::limits::{ATTEMPTS_HELD, SIGNALS_KEPT};
use crate::nodes::{News, Nodes};
use crate::reports::Reports;
use crate::spool::{EndOrder, Limit, SignalOrder, Spool, Status};
use ephor_model::{AttemptKey, EndCause, JobId, SignalTo, StepKey};
use ephor_proto::v1;
use launcher::{Launcher, Task};
use process::Process;
use std::collections::HashMap;
use steps::{NodeSteps, StepEvent};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use v1::report::What;

/// News from the launcher's thread and from the watchers of processes. There are at most a few for each attempt held,
/// which bounds the channel they come through.
#[derive(Debug)]
enum Event {
    /// A shim runs; `began_ms` is when the attempt began.
    Started { key: AttemptKey, process: Process, began_ms: i64 },
    /// The attempt is over; `began_ms` is when it began, where that is news.
    Ended { key: AttemptKey, status: Status, began_ms: Option<i64> },
    /// News of a part of a step.
    Step(StepKey, StepEvent),
}

/// One attempt.
#[derive(Debug, Default)]
struct Held {
    /// Its shim, while it runs.
    process: Option<Process>,
    /// When it began, once it has, and the number of the report that says so.
    began: Option<(i64, u64)>,
    /// To be ended as soon as its shim is there.
    end: Option<EndOrder>,
    /// Has this time limit as soon as its shim is there.
    limit: Option<Limit>,
    /// For it as soon as its shim is there.
    signals: Vec<SignalOrder>,
    /// Number of the report of its end.
    ended: Option<u64>,
    /// The controller does not know it: nobody waits for its report.
    unknown: bool,
}

/// The attempts of one node.
#[derive(Debug)]
pub struct Node {
    introduction: v1::Register,
    spool: Spool,
    launcher: Launcher,
    events: UnboundedReceiver<Event>,
    sender: UnboundedSender<Event>,
    held: HashMap<AttemptKey, Held>,
    steps: NodeSteps,
    reports: Reports,
    gpus: Option<watch::Receiver<v1::GpuReport>>,
}

impl Node {
    /// Takes over what the spool holds: running attempts are watched again, ends that nobody acknowledged are
    /// reported. `introduction` is how the node registers. Must be called within a runtime.
    ///
    /// # Errors
    /// The spool cannot be read, or no thread can be started.
    pub fn open(
        introduction: v1::Register,
        spool: Spool,
        reports: Reports,
        launching: Launching,
    ) -> anyhow::Result<Self> {
        let (sender, events) = unbounded_channel();
        let launcher = Launcher::start(spool.clone(), launching, sender.clone())?;
        let (held, gpus) = (HashMap::new(), None);
        let (parts, last) = (spool.steps().parts()?, spool.steps().last()?);
        let steps = NodeSteps::open(&introduction.node, parts, last, &launcher);
        let mut node = Self { introduction, spool, launcher, events, sender, held, steps, reports, gpus };
        for key in node.spool.attempts()? {
            node.held.insert(key, Held::default());
            node.launcher.give(Task::Adopt(key));
        }
        Ok(node)
    }

    /// Tells the controller how the GPUs are doing, from now on.
    pub fn watch_gpus(&mut self, news: Option<watch::Receiver<v1::GpuReport>>) {
        self.gpus = news;
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Started { key, process, began_ms } => {
                let Some(held) = self.held.get_mut(&key) else { return };
                held.process = Some(process.clone());
                let (end, limit, signals) = (held.end.take(), held.limit.take(), std::mem::take(&mut held.signals));
                self.began(key, began_ms);
                self.watch(key, process);
                if let Some(limit) = limit {
                    self.limit(key, limit);
                }
                signals.into_iter().for_each(|order| self.send_signal(key, order));
                if let Some(end) = end {
                    self.end(key, end);
                }
            }
            Event::Ended { key, status, began_ms } => {
                if let Some(began_ms) = began_ms {
                    self.began(key, began_ms);
                }
                self.steps.end(key, None, &self.launcher);
                let Some(held) = self.held.get_mut(&key) else { return };
                held.process = None;
                if held.unknown {
                    self.drop_attempt(key);
                } else {
                    let ended = What::Ended(ended(&status));
                    held.ended = Some(self.reports.add(&self.introduction.node, wire(key), ended));
                }
            }
            Event::Step(key, event) => self.steps.on_event(key, event, &self.launcher),
        }
    }

    /// Reports when an attempt began, unless that was said.
    fn began(&mut self, key: AttemptKey, at: i64) {
        let Some(held) = self.held.get_mut(&key).filter(|h| h.began.is_none()) else { return };
        let began = What::Began(v1::Began { at });
        held.began = Some((at, self.reports.add(&self.introduction.node, wire(key), began)));
    }

    /// Waits for the end of a shim beside everything else.
    fn watch(&self, key: AttemptKey, process: Process) {
        let (spool, sender, launcher) = (self.spool.clone(), self.sender.clone(), self.launcher.clone());
        tokio::spawn(async move {
            process.ended().await;
            match spool.entry(key).status() {
                // Fails only when the agent stops.
                Ok(Some(status)) => drop(sender.send(Event::Ended { key, status, began_ms: None })),
                // It left no word: what remains of the attempt must be found and ended first.
                _ => launcher.give(Task::Settle(key)),
            }
        });
    }

    fn end(&mut self, key: AttemptKey, end: EndOrder) {
        let Some(held) = self.held.get_mut(&key) else { return };
        match &held.process {
            None => held.end = Some(end),
            Some(process) => {
                if let Err(e) = self.spool.entry(key).set_end_order(&end) {
                    tracing::error!(attempt = %key, "its cause of end will be reported as cancelled: {e}");
                }
                process.terminate();
            }
        }
    }

    fn limit(&mut self, key: AttemptKey, limit: Limit) {
        let Some(held) = self.held.get_mut(&key) else { return };
        let Some(process) = &held.process else {
            held.limit = Some(limit);
            return;
        };
        let entry = self.spool.entry(key);
        // Told anew after each registration, mostly what it knows.
        let known = entry.limit().ok().flatten().or_else(|| entry.order().ok().map(|o| Limit { ms: o.time_limit_ms }));
        if known == Some(limit) {
            return;
        }
        match entry.set_limit(limit) {
            Ok(()) => process.look(),
            Err(e) => tracing::error!(attempt = %key, "it keeps its old time limit: {e}"),
        }
    }

    fn send_signal(&mut self, key: AttemptKey, order: SignalOrder) {
        let Some(held) = self.held.get_mut(&key) else { return };
        match &held.process {
            None if held.signals.len() < SIGNALS_KEPT => held.signals.push(order),
            None => tracing::warn!(attempt = %key, "a signal is dropped: too many came before it began"),
            Some(process) => match self.spool.entry(key).add_signal(order) {
                Ok(()) => process.look(),
                Err(e) => tracing::error!(attempt = %key, "a signal is dropped: {e}"),
            },
        }
    }

    fn drop_attempt(&mut self, key: AttemptKey) {
        if let Some((_, number)) = self.held.remove(&key).and_then(|held| held.began) {
            self.reports.close(number);
        }
        self.launcher.give(Task::Remove(key));
    }

    /// Reports an end of which the spool knows nothing.
    fn report_end(&mut self, key: AttemptKey, cause: EndCause, message: String) {
        tracing::warn!(attempt = %key, "{message}");
        let ended = What::Ended(ended(&Status::unstarted(cause, message, now_ms())));
        let number = self.reports.add(&self.introduction.node, wire(key), ended);
        if let Some(held) = self.held.get_mut(&key) {
            held.ended = Some(number);
        }
    }

    fn is_mine(&self, node: &str) -> bool {
        if node != self.introduction.node {
            tracing::error!("refused an order for node '{node}': this is {}", self.introduction.node);
        }
        node == self.introduction.node
    }
}

impl Nodes for Node {
    fn registrations(&self) -> Vec<v1::Register> {
        // An end that was not acknowledged counts: who leaves it out says that the attempt is gone.
        let running = self.held.keys().map(|key| wire(*key)).collect();
        let mut register = v1::Register { running, ..self.introduction.clone() };
        self.steps.introduce(&mut register);
        if let Some(gpus) = &self.gpus {
            // A GPU that went bad must not be given away before the first report of it.
            for (device, state) in register.devices.iter_mut().zip(&gpus.borrow().devices) {
                device.faults.clone_from(&state.faults);
            }
        }
        vec![register]
    }

    fn gpus(&self) -> Option<watch::Receiver<v1::GpuReport>> {
        self.gpus.clone()
    }

    fn open_reports(&self, node: &str) -> Vec<v1::Report> {
        self.reports.of_node(node)
    }

    fn launch(&mut self, launch: v1::Launch) {
        let Some(key) = launch.attempt.map(key) else { return tracing::error!("a launch names no attempt") };
        if !self.is_mine(&launch.node) {
            return;
        }
        if let Some(held) = self.held.get_mut(&key) {
            held.unknown = false;
            match (held.ended, held.began.take()) {
                (Some(number), began) => {
                    held.began = began;
                    self.reports.repeat(number);
                }
                (None, Some((at, number))) => {
                    self.reports.close(number);
                    self.began(key, at);
                }
                (None, None) => {}
            }
            return;
        }
        if self.held.len() >= ATTEMPTS_HELD {
            let why = format!("the node holds {ATTEMPTS_HELD} attempts, which is as many as it takes");
            return self.report_end(key, EndCause::LaunchFailed, why);
        }
        self.held.insert(key, Held::default());
        self.launcher.give(Task::Start(key, Box::new(launch)));
    }

    fn terminate(&mut self, order: v1::Terminate) {
        let Some(key) = order.attempt.map(key) else { return tracing::error!("an order to end names no attempt") };
        if !self.is_mine(&order.node) {
            return;
        }
        let end = EndOrder { cause: cause(&order.cause), grace_ms: said(order.grace) };
        match self.held.get(&key).map(|held| held.ended) {
            // The stream keeps its order, so a launch that is not here by now is lost and will not come.
            None => self.report_end(key, end.cause, "the node does not hold this attempt".into()),
            Some(Some(number)) => self.reports.repeat(number),
            Some(None) => self.end(key, end),
        }
    }

    fn adjust(&mut self, order: v1::Adjust) {
        let Some(key) = order.attempt.map(key) else { return tracing::error!("a time limit names no attempt") };
        if self.is_mine(&order.node) && self.held.get(&key).is_some_and(|held| held.ended.is_none()) {
            self.limit(key, Limit { ms: order.time_limit.and_then(|ms| u64::try_from(ms).ok()) });
        }
    }

    fn signal(&mut self, order: v1::Signal) {
        let Some(key) = order.attempt.map(key) else { return tracing::error!("a signal names no attempt") };
        if self.is_mine(&order.node) && self.held.get(&key).is_some_and(|held| held.ended.is_none()) {
            let to = match order.to() {
                v1::SignalTo::Others => SignalTo::Others,
                v1::SignalTo::Script => SignalTo::Script,
                v1::SignalTo::All => SignalTo::All,
            };
            self.send_signal(key, SignalOrder { number: order.number, to });
        }
    }

    fn forget(&mut self, _node: &str, attempts: &[v1::AttemptRef]) {
        for key in attempts.iter().copied().map(key) {
            let Some(held) = self.held.get_mut(&key) else { continue };
            tracing::warn!(attempt = %key, "ended: the controller does not know it");
            held.unknown = true;
            match held.ended {
                Some(number) => {
                    self.reports.close(number);
                    self.drop_attempt(key);
                }
                None => self.end(key, EndOrder { cause: EndCause::Cancelled, grace_ms: None }),
            }
        }
    }

    fn launch_step(&mut self, launch: v1::StepLaunch) {
        if self.is_mine(&launch.node) {
            self.steps.launch(launch, &self.launcher);
        }
    }

    fn end_steps(&mut self, order: v1::EndSteps) {
        let Some(attempt) = order.attempt.map(key) else { return tracing::error!("an end of steps names no attempt") };
        if self.is_mine(&order.node) {
            self.steps.end(attempt, order.step, &self.launcher);
        }
    }

    fn acknowledge(&mut self, number: u64) {
        let Some(report) = self.reports.close(number) else { return };
        let Some(key) = report.attempt.map(key) else { return };
        if self.held.get(&key).is_some_and(|held| held.ended == Some(number)) {
            self.drop_attempt(key);
        }
    }

    async fn next(&mut self) -> News {
        loop {
            if let Some(step) = self.steps.take() {
                return News::Step(step);
            }
            if let Some(report) = self.reports.take() {
                return News::Report(report);
            }
            match self.events.recv().await {
                Some(event) => self.on_event(event),
                // We hold a sender ourselves.
                None => std::future::pending().await,
            }
        }
    }

    fn running(&self) -> usize {
        self.held.values().filter(|h| h.process.is_some()).count()
    }
}

/// An attempt as the wire names it.
fn wire(key: AttemptKey) -> v1::AttemptRef {
    v1::AttemptRef { job: key.job.0, attempt: key.number }
}

/// An attempt as the model names it.
fn key(attempt: v1::AttemptRef) -> AttemptKey {
    AttemptKey { job: JobId(attempt.job), number: attempt.attempt }
}

/// A span from the wire, where 0 means that nobody said.
fn said(ms: i64) -> Option<u64> {
    u64::try_from(ms).ok().filter(|ms| *ms > 0)
}

/// Causes with their names on the wire.
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

/// The cause of that name; one that is not known counts as a cancellation, which is what all orders to end are.
pub fn cause(name: &str) -> EndCause {
    CAUSES.iter().find(|(_, n)| *n == name).map_or(EndCause::Cancelled, |(c, _)| *c)
}

/// A status as the wire has it.
pub fn ended(status: &Status) -> v1::Ended {
    v1::Ended {
        at: status.ended_ms,
        exit_code: status.exit_code,
        exit_signal: status.exit_signal,
        cause: CAUSES.iter().find(|(c, _)| *c == status.cause).map_or("", |(_, n)| n).to_owned(),
        message: status.message.clone(),
        cpu_ms: status.cpu_ms,
        peak_mem_mib: status.peak_mem_mib,
    }
}
