//! Virtual nodes: any number in one process, whose jobs sleep instead of run. One list of what ends when serves all.

mod scene;

pub use scene::{Scene, VirtualNode};

use crate::facts::now_ms;
use crate::limits::SIMULATED_ATTEMPTS;
use crate::node::{cause, ended};
use crate::nodes::{News, Nodes};
use crate::reports::Reports;
use crate::spool::Status;
use ephor_model::EndCause;
use ephor_proto::v1;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use v1::report::What;

/// (node, job, attempt)
type Key = (u32, u64, u32);

/// One attempt that sleeps, or whose end was not acknowledged.
#[derive(Debug)]
struct Sleeper {
    /// What is reported when its time is over.
    cause: EndCause,
    /// When its time is over; earlier timers of it mean nothing. `None`: only an order ends it.
    due: Option<Instant>,
    /// How long it sleeps if its time limit lets it.
    asked: Duration,
    began: Instant,
    began_ms: i64,
    /// Number of the report of its end.
    ended: Option<u64>,
    unknown: bool,
}

/// All virtual nodes of this process.
#[derive(Debug)]
pub struct Simulation {
    nodes: Vec<VirtualNode>,
    by_name: HashMap<String, u32>,
    /// Differs at every start, as a machine's does at every boot: what slept here before is gone.
    boot_id: String,
    host: String,
    held: HashMap<Key, Sleeper>,
    timers: BinaryHeap<Reverse<(Instant, Key)>>,
    reports: Reports,
    /// Steps that were refused, and nobody was told.
    steps: VecDeque<v1::StepReport>,
    running: usize,
}

impl Simulation {
    /// The nodes of a scene, hosted by the agent of that name.
    pub fn new(scene: Scene, host: &str, reports: Reports) -> Self {
        let nodes = scene.into_nodes();
        let by_name = (0..).zip(&nodes).map(|(i, n)| (n.name.clone(), i)).collect();
        let boot_id = format!("{:032x}", rand::random::<u128>());
        let (held, timers, steps) = (HashMap::new(), BinaryHeap::new(), VecDeque::new());
        Self { nodes, by_name, boot_id, host: host.to_owned(), held, timers, reports, steps, running: 0 }
    }

    fn key(&self, node: &str, attempt: Option<v1::AttemptRef>) -> Option<Key> {
        let key = self.by_name.get(node).zip(attempt).map(|(node, a)| (*node, a.job, a.attempt));
        if key.is_none() {
            tracing::error!("refused an order for node '{node}', which is none of this process, or without an attempt");
        }
        key
    }

    fn report(&mut self, (node, job, attempt): Key, what: What) -> u64 {
        self.reports.add(&self.nodes[node as usize].name, v1::AttemptRef { job, attempt }, what)
    }

    fn end(&mut self, key: Key, cause: EndCause, exit_signal: i32) {
        let Some(sleeper) = self.held.get(&key).filter(|s| s.ended.is_none()) else { return };
        self.running -= 1;
        if sleeper.unknown {
            self.held.remove(&key);
            return;
        }
        let status = Status { exit_signal, ..Status::unstarted(cause, "", now_ms()) };
        let number = self.report(key, What::Ended(ended(&status)));
        if let Some(sleeper) = self.held.get_mut(&key) {
            sleeper.ended = Some(number);
        }
    }

    /// Sets what ends an attempt, and when: its own length or its time limit in milliseconds, whichever is shorter.
    fn limit(&mut self, key: Key, limit_ms: Option<i64>) {
        let Some(sleeper) = self.held.get_mut(&key).filter(|s| s.ended.is_none()) else { return };
        let limit = limit_ms.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
        let cut = limit.filter(|limit| *limit < sleeper.asked);
        sleeper.cause = if cut.is_some() { EndCause::TimeLimit } else { EndCause::Exited };
        // One too far away to be told never comes.
        let due = sleeper.began.checked_add(cut.unwrap_or(sleeper.asked));
        if due != sleeper.due {
            sleeper.due = due;
            due.into_iter().for_each(|at| self.timers.push(Reverse((at, key))));
        }
    }

    fn end_due(&mut self) {
        let now = Instant::now();
        while self.timers.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            let Some(Reverse((_, key))) = self.timers.pop() else { return };
            if let Some(cause) = self.held.get(&key).filter(|s| s.due.is_some_and(|due| due <= now)).map(|s| s.cause) {
                let signal = if cause == EndCause::TimeLimit { libc::SIGTERM } else { 0 };
                self.end(key, cause, signal);
            }
        }
    }
}

/// How long a virtual node keeps an attempt: as told, else the number after `sleep` in its command, else no time.
fn length(launch: &v1::Launch) -> Duration {
    if let Some(ms) = launch.simulated_ms {
        return Duration::from_millis(u64::try_from(ms).unwrap_or(0));
    }
    let is_sleep = |word: &String| word == "sleep" || word.ends_with("/sleep");
    let after = launch.argv.iter().position(is_sleep).and_then(|at| launch.argv.get(at + 1));
    let seconds = after.and_then(|s| s.parse::<f64>().ok()).unwrap_or(0.0);
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

impl Nodes for Simulation {
    fn registrations(&self) -> Vec<v1::Register> {
        let mut running = vec![Vec::new(); self.nodes.len()];
        for (node, job, attempt) in self.held.keys() {
            running[*node as usize].push(v1::AttemptRef { job: *job, attempt: *attempt });
        }
        let introduce = |(node, running): (&VirtualNode, Vec<v1::AttemptRef>)| v1::Register {
            node: node.name.clone(),
            boot_id: self.boot_id.clone(),
            agent_version: env!("CARGO_PKG_VERSION").into(),
            address: self.host.clone(),
            capacity: node.capacity(),
            features: node.features.clone(),
            devices: node.devices(),
            running,
            ..v1::Register::default()
        };
        self.nodes.iter().zip(running).map(introduce).collect()
    }

    fn open_reports(&self, node: &str) -> Vec<v1::Report> {
        self.reports.of_node(node)
    }

    fn launch(&mut self, launch: v1::Launch) {
        let Some(key) = self.key(&launch.node, launch.attempt) else { return };
        if let Some(sleeper) = self.held.get_mut(&key) {
            sleeper.unknown = false;
            match (sleeper.ended, sleeper.began_ms) {
                (Some(number), _) => self.reports.repeat(number),
                (None, at) => drop(self.report(key, What::Began(v1::Began { at }))),
            }
            return;
        }
        if self.held.len() >= SIMULATED_ATTEMPTS {
            let why = format!("this process holds {SIMULATED_ATTEMPTS} attempts, which is as many as it takes");
            let status = Status::unstarted(EndCause::LaunchFailed, why, now_ms());
            self.report(key, What::Ended(ended(&status)));
            return;
        }
        let (asked, began, began_ms) = (length(&launch), Instant::now(), now_ms());
        let cause = EndCause::Exited;
        self.held.insert(key, Sleeper { cause, due: None, asked, began, began_ms, ended: None, unknown: false });
        self.running += 1;
        self.report(key, What::Began(v1::Began { at: began_ms }));
        self.limit(key, launch.time_limit);
    }

    fn adjust(&mut self, order: v1::Adjust) {
        if let Some(key) = self.key(&order.node, order.attempt) {
            self.limit(key, order.time_limit);
        }
    }

    fn terminate(&mut self, order: v1::Terminate) {
        let Some(key) = self.key(&order.node, order.attempt) else { return };
        match self.held.get(&key).map(|s| s.ended) {
            Some(Some(number)) => self.reports.repeat(number),
            Some(None) => self.end(key, cause(&order.cause), libc::SIGTERM),
            None => {
                let why = "the node does not hold this attempt";
                let status = Status::unstarted(cause(&order.cause), why, now_ms());
                self.report(key, What::Ended(ended(&status)));
            }
        }
    }

    fn forget(&mut self, node: &str, attempts: &[v1::AttemptRef]) {
        for attempt in attempts {
            let Some(key) = self.key(node, Some(*attempt)) else { continue };
            let Some(sleeper) = self.held.get_mut(&key) else { continue };
            sleeper.unknown = true;
            match sleeper.ended {
                Some(number) => {
                    self.reports.close(number);
                    self.held.remove(&key);
                }
                None => self.end(key, EndCause::Cancelled, libc::SIGTERM),
            }
        }
    }

    // What sleeps instead of running minds none.
    fn signal(&mut self, _: v1::Signal) {}

    fn launch_step(&mut self, launch: v1::StepLaunch) {
        let message = "this node is simulated: its jobs sleep instead of run, and have no steps".into();
        let v1::StepLaunch { node, attempt, step, .. } = launch;
        self.steps.push_back(v1::StepReport { node, attempt, step, over: true, message });
    }

    // There are none.
    fn end_steps(&mut self, _: v1::EndSteps) {}

    fn acknowledge(&mut self, number: u64) {
        let Some(report) = self.reports.close(number) else { return };
        let Some(key) = self.by_name.get(&report.node).zip(report.attempt).map(|(n, a)| (*n, a.job, a.attempt)) else {
            return;
        };
        if self.held.get(&key).is_some_and(|s| s.ended == Some(number)) {
            self.held.remove(&key);
        }
    }

    async fn next(&mut self) -> News {
        loop {
            self.end_due();
            if let Some(step) = self.steps.pop_front() {
                return News::Step(step);
            }
            if let Some(report) = self.reports.take() {
                return News::Report(report);
            }
            match self.timers.peek() {
                Some(Reverse((at, _))) => sleep_until(*at).await,
                None => std::future::pending().await,
            }
        }
    }

    fn running(&self) -> usize {
        self.running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_lasts_as_told_or_as_its_command_says() {
        let launch = |ms, argv: &[&str]| v1::Launch {
            simulated_ms: ms,
            argv: argv.iter().map(|a| (*a).to_owned()).collect(),
            ..v1::Launch::default()
        };
        assert_eq!(length(&launch(Some(70), &["sleep", "9"])), Duration::from_millis(70));
        assert_eq!(length(&launch(None, &["/bin/sleep", "0.5"])), Duration::from_millis(500));
        assert_eq!(length(&launch(None, &["env", "sleep", "2"])), Duration::from_secs(2));
        for other in [&["sleep"][..], &["sleep", "x"], &["sleep", "-1"], &["true"], &[]] {
            assert_eq!(length(&launch(None, other)), Duration::ZERO, "{other:?}");
        }
    }
}
