//! Commits the groups of a plan, each whole or not at all, against the state as it is now (laws 4 and 7).

use super::Tx;
use crate::command::{Group, Reply, Start, expected_end};
use crate::event::Event;
use ephor_model::{Amounts, AttemptKey, JobId, JobState, NodeId};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn commit(tx: &mut Tx<'_>, groups: &[Group]) -> Reply {
    let mut taken = Vec::with_capacity(groups.len());
    for group in groups {
        let good = fits(tx, group);
        if good {
            for start in &group.starts {
                begin(tx, start);
            }
        }
        taken.push(good);
    }
    Reply::Groups(taken)
}

fn begin(tx: &mut Tx<'_>, start: &Start) {
    let Some((entry, element)) = tx.state.element(start.job) else { return };
    let key = AttemptKey { job: start.job, number: element.attempts + 1 };
    let expected_end = expected_end(tx.at, &entry.job.spec);
    tx.emit(Event::Started { key, allocation: start.allocation.clone(), expected_end });
    tx.settle_dependents(start.job);
}

/// Whether every start of the group may happen now, all of them together.
fn fits(tx: &Tx<'_>, group: &Group) -> bool {
    let mut jobs = BTreeSet::new();
    let mut arrays: BTreeMap<JobId, u32> = BTreeMap::new();
    let mut asked: BTreeMap<NodeId, (Amounts, BTreeMap<u32, i64>)> = BTreeMap::new();
    for start in &group.starts {
        if !jobs.insert(start.job) || !may_start(tx, start.job, &mut arrays) || start.allocation.parts.is_empty() {
            return false;
        }
        let mut nodes = BTreeSet::new();
        for part in &start.allocation.parts {
            let positive = part.tasks > 0 && part.amounts.iter().all(|(_, n)| n > 0);
            if !positive || !nodes.insert(part.node) {
                return false;
            }
            let on_node = asked.entry(part.node).or_default();
            on_node.0.add(&part.amounts);
            for device in &part.devices {
                *on_node.1.entry(*device).or_default() += part.milli_per_device();
            }
        }
    }
    asked.iter().all(|(node, (amounts, devices))| node_has(tx, *node, amounts, devices))
}

fn may_start(tx: &Tx<'_>, id: JobId, arrays: &mut BTreeMap<JobId, u32>) -> bool {
    let Some((entry, element)) = tx.state.element(id) else { return false };
    let eligible = element.state == JobState::Pending && element.eligible.is_some_and(|since| since <= tx.at);
    let queue_starts = tx.state.queues.get(&entry.job.queue).is_some_and(|q| q.state.starts());
    let more = arrays.entry(entry.job.id).or_default();
    *more += 1;
    let throttle = entry.job.spec.array.as_ref().and_then(|a| a.throttle);
    let below_throttle = throttle.is_none_or(|most| entry.running + *more <= most);
    let in_time = entry.job.spec.latest_start().is_none_or(|latest| tx.at <= latest);
    eligible && in_time && queue_starts && below_throttle && !tx.state.attempts.contains_key(&id)
}

fn node_has(tx: &Tx<'_>, id: NodeId, amounts: &Amounts, devices: &BTreeMap<u32, i64>) -> bool {
    let Some(node) = tx.state.nodes.get(&id) else { return false };
    let held = tx.state.derived.held.get(&id);
    let taken = |device: &u32| held.and_then(|h| h.devices.get(device)).copied().unwrap_or(0);
    let devices_free = devices
        .iter()
        .all(|(device, milli)| (*device as usize) < node.spec.devices.len() && taken(device) + milli <= 1000);
    node.takes_jobs() && devices_free && tx.state.free(id).covers(amounts)
}
