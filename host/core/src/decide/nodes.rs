//! What agents report of their nodes and attempts, and draining.

use super::{Tx, devices};
use crate::command::{NodeReport, Refusal, RefusalKind, Reply};
use crate::event::Event;
use crate::promise::LiftCause;
use crate::records::{AttemptPhase, Node, NodeHealth};
use ephor_model::{AttemptKey, EndCause, Exit, Hold, JobId, JobState, NodeId, NodeSpec, ReasonCode, Usage};
use std::sync::Arc;

pub(super) fn report(tx: &mut Tx<'_>, report: NodeReport) -> Result<Reply, Refusal> {
    match report {
        NodeReport::Register { spec, holds, faults } => {
            let reply = register(tx, spec, &holds);
            if let Reply::Node { id, .. } = &reply {
                devices::faults(tx, *id, &faults);
            }
            Ok(reply)
        }
        NodeReport::Devices { node, faults } => {
            devices::faults(tx, node, &faults);
            Ok(Reply::Done)
        }
        NodeReport::Silent { node, reason } => {
            silent(tx, node, reason);
            Ok(Reply::Done)
        }
        NodeReport::Began { key } => {
            let launching =
                tx.state.attempts.get(&key.job).is_some_and(|a| a.key == key && a.phase == AttemptPhase::Launching);
            if launching {
                tx.emit(Event::Began { key });
                tx.settle_dependents(key.job);
            }
            Ok(Reply::Done)
        }
        NodeReport::Ended { key, exit, cause, message, usage } => {
            ended(tx, key, exit, cause, &message, usage);
            Ok(Reply::Done)
        }
    }
}

fn register(tx: &mut Tx<'_>, spec: NodeSpec, holds: &[AttemptKey]) -> Reply {
    let known = tx.state.node_by_name(&spec.name).cloned();
    let id = known.as_ref().map_or(NodeId(tx.state.meta.next_node), |n| n.id);
    let rebooted = known.as_ref().is_some_and(|n| !n.spec.boot_id.is_empty() && n.spec.boot_id != spec.boot_id);
    if known.as_ref().is_none_or(|n| n.spec != spec || n.health != NodeHealth::Up) {
        tx.emit(Event::NodeRegistered { node: id, spec: Arc::new(spec) });
        tx.break_promises_if_less(id, known.as_deref());
    }
    let here: Vec<JobId> = tx.state.derived.held.get(&id).map(|h| h.jobs.iter().copied().collect()).unwrap_or_default();
    for job in here {
        let Some(attempt) = tx.state.attempts.get(&job).cloned() else { continue };
        // The batch script runs on the first node; the others only lend their resources.
        let leads = attempt.allocation.parts.first().is_some_and(|p| p.node == id);
        let held = holds.contains(&attempt.key);
        if rebooted && leads || (attempt.phase != AttemptPhase::Launching && leads && !held) {
            // Law 8: a new boot, or the agent's own word that it holds no such attempt, confirms the end.
            let text = if rebooted { "the node rebooted" } else { "the node no longer holds the job" };
            ended(tx, attempt.key, Exit::default(), EndCause::NodeFailed, text, Usage::default());
            continue;
        }
        if attempt.lost {
            let all_answer = attempt
                .allocation
                .parts
                .iter()
                .all(|p| tx.state.nodes.get(&p.node).is_some_and(|n| n.health == NodeHealth::Up));
            if all_answer {
                tx.emit(Event::LostSet { key: attempt.key, lost: false });
            }
        }
    }
    let unknown = holds.iter().copied().filter(|key| tx.state.attempts.get(&key.job).is_none_or(|a| a.key != *key));
    Reply::Node { id, unknown: unknown.collect() }
}

fn silent(tx: &mut Tx<'_>, node: NodeId, reason: String) {
    if tx.state.nodes.get(&node).is_none_or(|n| n.health == NodeHealth::Down) {
        return;
    }
    tx.emit(Event::NodeDown { node, reason });
    tx.break_promises(node);
    let here: Vec<JobId> =
        tx.state.derived.held.get(&node).map(|h| h.jobs.iter().copied().collect()).unwrap_or_default();
    for job in here {
        if let Some(key) = tx.state.attempts.get(&job).filter(|a| !a.lost).map(|a| a.key) {
            tx.emit(Event::LostSet { key, lost: true });
        }
    }
}

/// An attempt ended. A report of one that is not live is late or repeated, and changes nothing.
fn ended(tx: &mut Tx<'_>, key: AttemptKey, exit: Exit, cause: EndCause, message: &str, usage: Usage) {
    let Some(attempt) = tx.state.attempts.get(&key.job).filter(|a| a.key == key) else { return };
    let cause = match (&attempt.phase, cause) {
        // What the controller ordered is why it ended, unless its own limit or the kernel came first.
        (
            AttemptPhase::Ending { cause: ordered, .. },
            EndCause::Exited | EndCause::Cancelled | EndCause::NodeFailed,
        ) => *ordered,
        (_, reported) => reported,
    };
    // Whose end was ordered because of a device learns which one it was.
    let ordered = matches!(attempt.phase, AttemptPhase::Ending { .. });
    let device = ordered.then(|| tx.state.device_out_of(&attempt.allocation)).flatten();
    let wants_requeue = tx.state.find(key.job).is_some_and(|(entry, _)| entry.job.spec.requeue.unwrap_or(false));
    let eviction = attempt.eviction().filter(|_| cause == EndCause::Preempted).cloned();
    let to_wait = eviction.as_ref().is_none_or(|eviction| eviction.requeue);
    let (state, reason) = match cause {
        EndCause::Exited if exit == Exit::default() => (JobState::Completed, ReasonCode::None),
        EndCause::Exited => (JobState::Failed, ReasonCode::NonZeroExitCode),
        EndCause::Cancelled => (JobState::Cancelled, ReasonCode::None),
        EndCause::TimeLimit => (JobState::Timeout, ReasonCode::TimeLimit),
        EndCause::OutOfMemory => (JobState::OutOfMemory, ReasonCode::OutOfMemory),
        EndCause::Requeued => (JobState::Pending, ReasonCode::None),
        EndCause::Preempted if wants_requeue && to_wait => (JobState::Pending, ReasonCode::None),
        EndCause::Preempted => (JobState::Preempted, ReasonCode::None),
        EndCause::NodeFailed if wants_requeue => (JobState::Pending, ReasonCode::NodeDown),
        EndCause::NodeFailed => (JobState::NodeFail, ReasonCode::NodeDown),
        EndCause::LaunchFailed => (JobState::Failed, ReasonCode::JobLaunchFailure),
    };
    let message = eviction.as_ref().map_or(message, |eviction| &eviction.why);
    let said = (!message.is_empty()).then(|| message.chars().take(1024).collect::<String>());
    let detail = said.or(device).map(Into::into);
    tx.emit(Event::Ended { key, state, exit, reason, detail, usage, hold: Hold::None });
    tx.settle_dependents(key.job);
}

pub(super) fn drain(tx: &mut Tx<'_>, node: NodeId, reason: Option<String>, by: String) -> Result<Reply, Refusal> {
    let Some(found) = tx.state.nodes.get(&node) else {
        return Err(Refusal::new(RefusalKind::NotFound, format!("there is no node {node}")));
    };
    match reason {
        Some(reason) if reason.trim().is_empty() => {
            return Err(Refusal::new(RefusalKind::Invalid, "a node is drained for a reason; give one"));
        }
        Some(reason) => {
            tx.emit(Event::NodeDrained { node, reason, by });
            tx.break_promises(node);
        }
        None if found.drain.is_some() => tx.emit(Event::NodeResumed { node }),
        None => {}
    }
    Ok(Reply::Done)
}

impl Tx<'_> {
    /// Lifts what is promised on a node that can no longer be counted on; the policy promises anew.
    pub(super) fn break_promises(&mut self, node: NodeId) {
        let jobs = self.state.derived.promised.get(&node).cloned().unwrap_or_default();
        for job in jobs {
            self.emit(Event::PromiseLifted { job, why: LiftCause::Node(node) });
        }
    }

    /// The same where a node offers less than before.
    pub(super) fn break_promises_if_less(&mut self, node: NodeId, before: Option<&Node>) {
        let (Some(before), Some(now)) = (before, self.state.nodes.get(&node)) else { return };
        let features = now.features();
        let lost = before.features().iter().any(|feature| !features.contains(feature));
        if lost || !now.capacity().covers(&before.capacity()) {
            self.break_promises(node);
        }
    }
}
