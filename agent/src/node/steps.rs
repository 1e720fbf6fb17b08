//! The parts of steps that a node holds, from launch to end.
//!
//! A part ends with its tasks, when whoever started the step is gone, by an order of the controller, and with its attempt.
//! What becomes of parts is told, not reported: a registration says which there are, so that nothing hangs on a message.

use super::launcher::{Launcher, Task};
use super::process::Process;
use super::{key, wire};
use crate::limits::ATTEMPTS_HELD;
use ephor_model::{AttemptKey, StepKey};
use ephor_proto::v1;
use std::collections::{BTreeMap, VecDeque};

/// What became of a part.
#[derive(Debug)]
pub enum StepEvent {
    /// Its shim runs; with what the step takes from others.
    Started {
        /// The shim.
        process: Process,
        /// Thousandths of cores.
        cpu_milli: i64,
        /// GPUs.
        devices: Vec<u32>,
    },
    /// It is over, for this reason where it is none of its tasks'.
    Ended(String),
}

/// One part.
#[derive(Debug, Default)]
struct Part {
    /// Its shim, while it runs.
    process: Option<Process>,
    cpu_milli: i64,
    devices: Vec<u32>,
    /// To be ended as soon as its shim is there.
    end: bool,
}

/// The parts of one node.
#[derive(Debug, Default)]
pub struct NodeSteps {
    node: String,
    held: BTreeMap<StepKey, Part>,
    /// Of each attempt the highest number of a step.
    last: BTreeMap<AttemptKey, u32>,
    news: VecDeque<v1::StepReport>,
}

impl NodeSteps {
    /// Takes over the parts that have an entry.
    pub fn open(node: &str, parts: Vec<StepKey>, last: Vec<StepKey>, launcher: &Launcher) -> Self {
        let mut steps = Self { node: node.to_owned(), ..Self::default() };
        for key in last.iter().chain(&parts) {
            steps.saw(*key);
        }
        for key in parts {
            steps.held.insert(key, Part::default());
            launcher.give(Task::AdoptStep(key));
        }
        steps
    }

    fn saw(&mut self, key: StepKey) {
        let last = self.last.entry(key.attempt).or_insert(key.step);
        *last = key.step.max(*last);
    }

    /// What a registration says of them.
    pub fn introduce(&self, register: &mut v1::Register) {
        let held = |attempt: AttemptKey, step, cpu_milli, devices| v1::StepHeld {
            attempt: Some(wire(attempt)),
            step,
            cpu_milli,
            devices,
        };
        let parts = self.held.iter().map(|(key, p)| held(key.attempt, key.step, p.cpu_milli, p.devices.clone()));
        register.steps = parts.collect();
        register.last_steps = self.last.iter().map(|(attempt, step)| held(*attempt, *step, 0, Vec::new())).collect();
    }

    /// Starts a part, once.
    pub fn launch(&mut self, launch: v1::StepLaunch, launcher: &Launcher) {
        let Some(attempt) = launch.attempt.map(key) else { return tracing::error!("a step names no attempt") };
        let key = StepKey { attempt, step: launch.step };
        if self.held.contains_key(&key) {
            return;
        }
        if self.held.len() >= ATTEMPTS_HELD {
            let why = format!("the node holds {ATTEMPTS_HELD} steps, which is as many as it takes");
            return self.tell(key, true, why);
        }
        self.saw(key);
        let devices = launch.part.iter().filter(|_| launch.own_devices).flat_map(|part| part.devices.clone());
        let part = Part { cpu_milli: launch.cpu_milli, devices: devices.collect(), ..Part::default() };
        self.held.insert(key, part);
        launcher.give(Task::StartStep(key, Box::new(launch)));
    }

    /// Ends one part, or all of an attempt that is over.
    pub fn end(&mut self, attempt: AttemptKey, step: Option<u32>, launcher: &Launcher) {
        for (key, part) in &mut self.held {
            if key.attempt == attempt && step.is_none_or(|step| step == key.step) {
                part.end = true;
                part.process.iter().for_each(Process::terminate);
            }
        }
        if step.is_none() && self.last.remove(&attempt).is_some() {
            launcher.give(Task::ForgetSteps(attempt));
        }
    }

    /// Takes news of a part.
    pub fn on_event(&mut self, key: StepKey, event: StepEvent, launcher: &Launcher) {
        match event {
            StepEvent::Started { process, cpu_milli, devices } => {
                let Some(part) = self.held.get_mut(&key) else { return };
                if part.end {
                    process.terminate();
                }
                *part = Part { process: Some(process.clone()), cpu_milli, devices, end: part.end };
                self.tell(key, false, String::new());
                let launcher = launcher.clone();
                tokio::spawn(async move {
                    process.ended().await;
                    launcher.give(Task::SettleStep(key));
                });
            }
            StepEvent::Ended(why) => {
                if !why.is_empty() {
                    tracing::warn!(step = %key, "{why}");
                }
                self.held.remove(&key);
                self.tell(key, true, why);
            }
        }
    }

    fn tell(&mut self, key: StepKey, over: bool, message: String) {
        let (node, attempt) = (self.node.clone(), Some(wire(key.attempt)));
        self.news.push_back(v1::StepReport { node, attempt, step: key.step, over, message });
    }

    /// News that nobody was told.
    pub fn take(&mut self) -> Option<v1::StepReport> {
        self.news.pop_front()
    }
}
