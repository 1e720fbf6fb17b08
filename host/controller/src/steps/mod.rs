//! The steps of running attempts: their numbers, and what they take from each other.
//!
//! Kept in memory alone, since a step is nobody's promise: nodes say at each registration which parts of steps they hold,
//! and from these a controller that was restarted knows what is in use. A step itself does not notice.

pub mod layout;

use ephor_model::{AttemptKey, NodeId, StepKey, limits};
use ephor_proto::v1;
use layout::{Ask, Refused, Room, lay_out};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Answers when every node has started its part of a step, or one could not.
pub type Outcome = oneshot::Receiver<Result<(), String>>;

/// See the module.
#[derive(Default)]
pub struct Steps {
    attempts: Mutex<BTreeMap<AttemptKey, OfAttempt>>,
}

#[derive(Default)]
struct OfAttempt {
    /// The next number.
    next: u32,
    /// Nodes that had a part of any step: they are told when the attempt is over.
    nodes: BTreeSet<NodeId>,
    steps: BTreeMap<u32, Step>,
}

struct Step {
    parts: BTreeMap<NodeId, Part>,
    phase: Phase,
}

enum Phase {
    /// Since when it waits for its start.
    Planned(Instant),
    /// Nodes that have not begun, and who waits for them.
    Starting(BTreeSet<NodeId>, oneshot::Sender<Result<(), String>>),
    Running,
}

/// What one node has of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Thousandths of cores that it takes from other steps.
    pub cpu_milli: i64,
    /// Whether its GPUs are its own.
    pub own_devices: bool,
    /// The part as nodes and whoever starts the step know it.
    pub part: v1::StepPart,
}

impl Steps {
    fn attempts(&self) -> MutexGuard<'_, BTreeMap<AttemptKey, OfAttempt>> {
        // What is in it is right after every statement, so that a panicked holder leaves nothing broken.
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lays a step out over `rooms`, whose use by other steps is filled in here, and gives it a number. `parts` makes the
    /// part of a node: its room, its place in the step and what it was given.
    ///
    /// # Errors
    /// Why it cannot be, now or ever.
    pub fn plan(
        &self,
        key: AttemptKey,
        mut rooms: Vec<Room>,
        ask: &Ask,
    ) -> Result<(u32, Vec<(NodeId, Part)>), Refused> {
        let mut attempts = self.attempts();
        let attempt = attempts.entry(key).or_default();
        let kept = Duration::from_millis(limits::STEP_PLAN_MS);
        attempt.steps.retain(|_, step| !matches!(step.phase, Phase::Planned(since) if since.elapsed() > kept));
        if attempt.steps.len() >= limits::STEPS_RUNNING {
            return Err(Refused::Busy);
        }
        for room in &mut rooms {
            for part in attempt.steps.values().filter_map(|step| step.parts.get(&room.node)) {
                room.used_milli += part.cpu_milli;
                if part.own_devices {
                    room.used_devices.extend(&part.part.devices);
                }
            }
        }
        let places = lay_out(&rooms, ask)?;
        let parts = (0..).zip(places).map(|(place, given)| {
            let room = &rooms[given.room];
            let part = v1::StepPart {
                node: room.name.clone(),
                address: String::new(),
                place,
                tasks: given.tasks,
                // A node's cores, at most some thousands.
                cpus: (room.cpu_milli / 1000) as u32,
                devices: given.devices,
            };
            let own_devices = ask.gpus.is_some() && !ask.overlap;
            (room.node, Part { cpu_milli: given.cpu_milli, own_devices, part })
        });
        let parts: Vec<(NodeId, Part)> = parts.collect();
        let number = attempt.next;
        attempt.next += 1;
        let step = Step { parts: parts.iter().cloned().collect(), phase: Phase::Planned(Instant::now()) };
        attempt.steps.insert(number, step);
        Ok((number, parts))
    }

    /// A planned step is being started: its parts, and what will answer.
    ///
    /// # Errors
    /// It is not planned, or not any more.
    pub fn start(&self, key: StepKey) -> Result<(Vec<(NodeId, Part)>, Outcome), String> {
        let mut attempts = self.attempts();
        let attempt = attempts.get_mut(&key.attempt);
        let step = attempt.and_then(|attempt| {
            let step = attempt.steps.get_mut(&key.step).filter(|step| matches!(step.phase, Phase::Planned(_)))?;
            attempt.nodes.extend(step.parts.keys());
            Some(step)
        });
        let step = step.ok_or_else(|| {
            format!("step {} of job {} is not planned, or no more: plan it anew", key.step, key.attempt.job)
        })?;
        let (answer, outcome) = oneshot::channel();
        step.phase = Phase::Starting(step.parts.keys().copied().collect(), answer);
        Ok((step.parts.iter().map(|(node, part)| (*node, part.clone())).collect(), outcome))
    }

    /// A node's word about its part.
    pub fn reported(&self, node: NodeId, key: StepKey, over: bool, message: &str) {
        let mut attempts = self.attempts();
        let Some(attempt) = attempts.get_mut(&key.attempt) else { return };
        let Some(step) = attempt.steps.get_mut(&key.step).filter(|step| step.parts.contains_key(&node)) else { return };
        match (&mut step.phase, over) {
            (Phase::Starting(left, _), false) => {
                left.remove(&node);
            }
            (Phase::Starting(left, _), true) if left.contains(&node) => {
                let why = if message.is_empty() { "it ended at once" } else { message };
                let name = step.parts.get(&node).map_or("", |part| &part.part.node);
                step.fail(format!("{name}: {why}"));
            }
            _ => {}
        }
        if over {
            step.parts.remove(&node);
        }
        step.answer_if_begun();
        if step.parts.is_empty() {
            attempt.steps.remove(&key.step);
        }
    }

    /// What a node holds, as it registered: what it does not name is gone.
    pub fn registered(&self, node: NodeId, held: &[(StepKey, i64, Vec<u32>)], last: &[StepKey]) {
        let mut attempts = self.attempts();
        for (key, attempt) in attempts.iter_mut() {
            for (number, step) in &mut attempt.steps {
                let this = StepKey { attempt: *key, step: *number };
                let gone = !matches!(step.phase, Phase::Planned(_)) && !held.iter().any(|(key, ..)| *key == this);
                if gone && let Some(part) = step.parts.remove(&node) {
                    step.fail(format!("{}: its agent was restarted", part.part.node));
                }
            }
            attempt.steps.retain(|_, step| !step.parts.is_empty());
        }
        for (key, cpu_milli, devices) in held {
            let attempt = attempts.entry(key.attempt).or_default();
            let step =
                attempt.steps.entry(key.step).or_insert_with(|| Step { parts: BTreeMap::new(), phase: Phase::Running });
            step.parts.entry(node).or_insert_with(|| Part {
                cpu_milli: *cpu_milli,
                own_devices: !devices.is_empty(),
                part: v1::StepPart { devices: devices.clone(), ..v1::StepPart::default() },
            });
        }
        for key in held.iter().map(|(key, ..)| key).chain(last) {
            let attempt = attempts.entry(key.attempt).or_default();
            attempt.next = attempt.next.max(key.step.saturating_add(1));
            attempt.nodes.insert(node);
        }
    }

    /// A step is given up: the nodes that may have started a part of it.
    pub fn give_up(&self, key: StepKey) -> Vec<NodeId> {
        let mut attempts = self.attempts();
        let step = attempts.get_mut(&key.attempt).and_then(|attempt| attempt.steps.remove(&key.step));
        step.map(|step| step.parts.into_keys().collect()).unwrap_or_default()
    }

    /// An attempt is over: the nodes that had steps of it.
    pub fn over(&self, key: AttemptKey) -> Vec<NodeId> {
        self.attempts().remove(&key).map(|attempt| attempt.nodes.into_iter().collect()).unwrap_or_default()
    }

    /// How many steps run or are about to.
    pub fn count(&self) -> usize {
        self.attempts().values().map(|attempt| attempt.steps.len()).sum()
    }
}

impl Step {
    fn fail(&mut self, why: String) {
        if let Phase::Starting(_, answer) = std::mem::replace(&mut self.phase, Phase::Running) {
            // Who waited may have gone.
            let _ = answer.send(Err(why));
        }
    }

    fn answer_if_begun(&mut self) {
        if matches!(&self.phase, Phase::Starting(left, _) if left.is_empty())
            && let Phase::Starting(_, answer) = std::mem::replace(&mut self.phase, Phase::Running)
        {
            let _ = answer.send(Ok(()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ephor_model::JobId;

    const ATTEMPT: AttemptKey = AttemptKey { job: JobId(5), number: 1 };

    fn rooms() -> Vec<Room> {
        let room = |n: u32| Room { node: NodeId(n), name: format!("n{n}"), cpu_milli: 2000, ..Room::default() };
        vec![room(1), room(2)]
    }

    fn ask(tasks: u32) -> Ask {
        Ask::read(&v1::StepRequest { tasks: Some(tasks), ..v1::StepRequest::default() }).unwrap()
    }

    fn key(step: u32) -> StepKey {
        StepKey { attempt: ATTEMPT, step }
    }

    #[test]
    fn a_step_holds_its_cores_until_each_node_says_that_it_is_over() {
        let steps = Steps::default();
        let (first, parts) = steps.plan(ATTEMPT, rooms(), &ask(4)).unwrap();
        assert_eq!((first, parts.len()), (0, 2));
        assert_eq!(steps.plan(ATTEMPT, rooms(), &ask(1)), Err(Refused::Busy));
        let (_, mut outcome) = steps.start(key(0)).unwrap();
        assert!(steps.start(key(0)).is_err(), "it starts once");
        steps.reported(NodeId(1), key(0), false, "");
        assert!(outcome.try_recv().is_err());
        steps.reported(NodeId(2), key(0), false, "");
        assert_eq!(outcome.try_recv().unwrap(), Ok(()));
        steps.reported(NodeId(1), key(0), true, "");
        let (second, parts) = steps.plan(ATTEMPT, rooms(), &ask(2)).unwrap();
        assert_eq!((second, parts[0].0, parts.len()), (1, NodeId(1), 1));
        steps.reported(NodeId(2), key(0), true, "");
        assert_eq!(steps.count(), 1);
        assert_eq!(steps.over(ATTEMPT), [NodeId(1), NodeId(2)]);
        assert_eq!(steps.over(ATTEMPT), []);
    }

    #[test]
    fn a_node_that_cannot_start_its_part_says_why() {
        let steps = Steps::default();
        steps.plan(ATTEMPT, rooms(), &ask(2)).unwrap();
        let (_, mut outcome) = steps.start(key(0)).unwrap();
        steps.reported(NodeId(3), key(0), true, "a node that has no part has no say");
        steps.reported(NodeId(2), key(0), true, "user 7 is not known on this node");
        assert_eq!(outcome.try_recv().unwrap(), Err("n2: user 7 is not known on this node".into()));
        assert_eq!(steps.give_up(key(0)), [NodeId(1)]);

        steps.plan(ATTEMPT, rooms(), &ask(2)).unwrap();
        let (_, mut outcome) = steps.start(key(1)).unwrap();
        steps.registered(NodeId(1), &[], &[]);
        assert!(outcome.try_recv().unwrap().unwrap_err().contains("n1: its agent was restarted"));
    }

    #[test]
    fn registrations_tell_a_new_controller_what_is_in_use() {
        let steps = Steps::default();
        steps.registered(NodeId(1), &[(key(4), 2000, vec![])], &[key(8)]);
        let (number, parts) = steps.plan(ATTEMPT, rooms(), &ask(1)).unwrap();
        assert_eq!((number, parts[0].0), (9, NodeId(2)));
        assert_eq!(steps.plan(ATTEMPT, rooms(), &ask(4)), Err(Refused::Busy));
        steps.registered(NodeId(1), &[], &[]);
        assert_eq!(steps.plan(ATTEMPT, rooms(), &ask(3)).unwrap().0, 10);
    }
}
