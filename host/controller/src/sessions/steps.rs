//! Steps over the sessions: launches of their parts going out, what becomes of them coming in.

use super::{Incoming, Sessions, attempt_ref, key_of};
use crate::steps::Part;
use ephor_core::{Attempt, State};
use ephor_model::{AttemptKey, NodeId, StepKey, limits};
use ephor_proto::v1;
use ephor_proto::v1::controller_message::Body;

/// A part as its node registered it, with what it takes from other steps.
type Held = (StepKey, i64, Vec<u32>);

impl Sessions {
    /// Whether all these nodes have a session, and so have said which steps they hold.
    pub(crate) fn are_connected(&self, nodes: impl IntoIterator<Item = NodeId>) -> bool {
        let links = self.links();
        nodes.into_iter().all(|node| links.by_node.contains_key(&node))
    }

    /// Sends each node its part of a step.
    ///
    /// # Errors
    /// A node that has no session, with its name.
    pub(crate) fn start_step(
        &self,
        state: &State,
        key: StepKey,
        common: &v1::StepLaunch,
        parts: Vec<(NodeId, Part)>,
    ) -> Result<(), String> {
        for (node, part) in parts {
            let name = part.part.node.clone();
            let launch = v1::StepLaunch {
                node: name.clone(),
                attempt: Some(attempt_ref(key.attempt)),
                step: key.step,
                cpu_milli: part.cpu_milli,
                own_devices: part.own_devices,
                part: Some(part.part),
                ..common.clone()
            };
            let link = self.links().by_node.get(&node).cloned();
            if !link.is_some_and(|link| self.post(&link, state, Body::Step(launch))) {
                return Err(format!("{name}: its agent is not connected"));
            }
        }
        Ok(())
    }

    /// Passes a signal on to the node on which an attempt's script runs; `srun` there passes it on to its steps.
    ///
    /// # Errors
    /// That node has no session.
    pub(crate) fn signal(&self, state: &State, attempt: &Attempt, number: i32, to: v1::SignalTo) -> Result<(), String> {
        let Some(first) = attempt.allocation.parts.first() else { return Err("it has no node".into()) };
        let node = state.node_name(first.node);
        let key = Some(attempt_ref(attempt.key));
        let order = v1::Signal { node: node.clone(), attempt: key, number, to: to.into() };
        let link = self.links().by_node.get(&first.node).cloned();
        match link.is_some_and(|link| self.post(&link, state, Body::Signal(order))) {
            true => Ok(()),
            false => Err(format!("the agent of {node} is not connected, so that nothing got the signal")),
        }
    }

    /// Tells nodes to end a step, or all of an attempt that is over. One without a session is told when it registers.
    pub(crate) fn end_steps(&self, state: &State, key: AttemptKey, step: Option<u32>, nodes: &[NodeId]) {
        for node in nodes {
            let Some(link) = self.links().by_node.get(node).cloned() else { continue };
            let order = v1::EndSteps { node: state.node_name(*node), attempt: Some(attempt_ref(key)), step };
            self.post(&link, state, Body::EndSteps(order));
        }
    }
}

impl Incoming {
    /// A node's word about a part. `false`: the session is refused.
    pub(super) async fn step(&self, report: v1::StepReport) -> bool {
        let node = self.handle.snapshot().state.node_by_name(&report.node).map(|node| node.id);
        let mine = |id: &NodeId| self.sessions.links().sessions.get(&self.number).is_some_and(|s| s.nodes.contains(id));
        let Some(node) = node.filter(mine) else {
            return self.refuse(format!("node '{}' is none of this session", report.node)).await;
        };
        let Some(attempt) = report.attempt.as_ref().map(key_of) else { return false };
        let key = StepKey { attempt, step: report.step };
        let mut message = report.message;
        message.truncate(message.floor_char_boundary(limits::TEXT_BYTES));
        self.sessions.steps.reported(node, key, report.over, &message);
        true
    }
}

/// What a registration says of steps: the parts that run, the highest numbers, and the attempts among all of them that
/// are over.
pub(super) struct Registered {
    held: Vec<Held>,
    last: Vec<StepKey>,
    pub(super) over: Vec<AttemptKey>,
}

impl Registered {
    /// Reads it out of the registration.
    pub(super) fn read(register: &mut v1::Register, state: &State) -> Self {
        let key = |held: &v1::StepHeld| Some(StepKey { attempt: held.attempt.as_ref().map(key_of)?, step: held.step });
        let is_live = |key: AttemptKey| state.attempts.get(&key.job).is_some_and(|attempt| attempt.key == key);
        let take = |held: v1::StepHeld| Some((key(&held)?, held.cpu_milli.clamp(0, limits::AMOUNT), held.devices));
        let (steps, last) = (std::mem::take(&mut register.steps), std::mem::take(&mut register.last_steps));
        let mut held: Vec<Held> = steps.into_iter().filter_map(take).collect();
        let mut last: Vec<StepKey> = last.iter().filter_map(key).collect();
        let all = held.iter().map(|(key, ..)| key.attempt).chain(last.iter().map(|key| key.attempt));
        let mut over: Vec<AttemptKey> = all.filter(|key| !is_live(*key)).collect();
        over.sort_unstable();
        over.dedup();
        held.retain(|(key, ..)| is_live(key.attempt));
        last.retain(|key| is_live(key.attempt));
        Self { held, last, over }
    }

    /// Takes it into account.
    pub(super) fn apply(&self, sessions: &Sessions, node: NodeId) {
        sessions.steps.registered(node, &self.held, &self.last);
    }
}
