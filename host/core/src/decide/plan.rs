//! Commits the groups of a plan, each whole or not at all, against the state as it is now (laws 4 and 7).

use super::Tx;
use super::outlook::Outlook;
use crate::command::{Group, Kept, Reply, Start, expected_end};
use crate::event::Event;
use crate::eviction::Eviction;
use crate::pools::{Book, Draw};
use crate::promise::Promise;
use crate::reservations;
use ephor_model::{Allocation, Amounts, AttemptKey, JobId, JobState, NodeId, Span, Timestamp, limits};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) fn commit(tx: &mut Tx<'_>, groups: &[Group]) -> Reply {
    let mut taken = Vec::with_capacity(groups.len());
    let mut outlook = Outlook::default();
    for group in groups {
        let good = fits(tx, group) && outlook.takes(tx, group);
        if good {
            enact(tx, group);
        }
        taken.push(good);
    }
    Reply::Groups(taken)
}

fn enact(tx: &mut Tx<'_>, group: &Group) {
    for (key, eviction) in &group.evictions {
        tx.emit(Event::Evicted { key: *key, eviction: eviction.clone() });
    }
    for (job, why) in &group.lifts {
        if tx.state.promises.contains_key(job) {
            tx.emit(Event::PromiseLifted { job: *job, why: *why });
        }
    }
    for kept in &group.promises {
        let until = promised_end(tx, kept);
        let promise = Promise { start: kept.start, until, allocation: kept.allocation.clone(), claim: kept.claim };
        tx.emit(Event::Promised { job: kept.job, promise: Arc::new(promise) });
    }
    for start in &group.starts {
        begin(tx, start);
    }
}

fn begin(tx: &mut Tx<'_>, start: &Start) {
    let Some((entry, element)) = tx.state.element(start.job) else { return };
    let key = AttemptKey { job: start.job, number: element.attempts + 1 };
    let expected_end = expected_end(tx.at, &entry.job.spec);
    tx.emit(Event::Started { key, allocation: start.allocation.clone(), expected_end });
    tx.settle_dependents(start.job);
}

/// When the attempt would end at the latest, were it to start as promised.
pub(super) fn promised_end(tx: &Tx<'_>, kept: &Kept) -> Timestamp {
    tx.state.find(kept.job).map_or(kept.start, |(entry, _)| expected_end(kept.start, &entry.job.spec))
}

/// Whether every start of the group may happen now and every promise may be given, all of them together; what else is
/// promised is not looked at here.
fn fits(tx: &Tx<'_>, group: &Group) -> bool {
    let mut jobs = BTreeSet::new();
    let mut arrays: BTreeMap<JobId, u32> = BTreeMap::new();
    let mut asked: BTreeMap<NodeId, (Amounts, BTreeMap<u32, i64>)> = BTreeMap::new();
    let mut book = Book::default();
    for start in &group.starts {
        let good = jobs.insert(start.job) && may_start(tx, start.job, &mut arrays) && is_sound(&start.allocation);
        if !good {
            return false;
        }
        if !within_limits(tx, start, &mut book) || !keeps_to_reservations(tx, start) {
            return false;
        }
        for part in &start.allocation.parts {
            let on_node = asked.entry(part.node).or_default();
            on_node.0.add(&part.amounts);
            for device in &part.devices {
                *on_node.1.entry(*device).or_default() += part.milli_per_device();
            }
        }
    }
    let more = tx.state.promises.len() + group.promises.len() <= limits::PROMISES;
    let evictable = |(key, eviction): &(AttemptKey, Arc<Eviction>)| {
        let attempt = tx.state.attempts.get(&key.job).filter(|a| a.key == *key);
        let sound = (0..=limits::EVICTION_GRACE_MS).contains(&eviction.grace.0) && !eviction.why.is_empty();
        sound && attempt.is_some_and(|a| a.told_to_end().is_none())
    };
    let evicted: BTreeSet<AttemptKey> = group.evictions.iter().map(|(key, _)| *key).collect();
    let good = evicted.len() == group.evictions.len() && group.evictions.iter().all(evictable);
    if !good {
        return false;
    }
    // A job that moves to another place waits again once its attempt has ended.
    let moves = |job: JobId| {
        let of_job = group.evictions.iter().find(|(key, _)| key.job == job);
        of_job.is_some_and(|(_, eviction)| tx.state.would_run_again(job, eviction))
    };
    let may_have = |kept: &Kept| {
        (is_waiting(tx, kept.job) || kept.claim && moves(kept.job))
            && is_sound(&kept.allocation)
            && takes_jobs(tx, kept)
            && tx.state.find(kept.job).is_some_and(|(entry, _)| {
                reservations::allow(tx.state, &entry.job, &kept.allocation, kept.start, promised_end(tx, kept))
            })
    };
    (more || group.promises.is_empty())
        && group.promises.iter().all(|kept| jobs.insert(kept.job) && may_have(kept))
        && asked.iter().all(|(node, (amounts, devices))| node_has(tx, *node, amounts, devices))
}

/// Whether a start runs into no reservation, and inside its own where it has one.
fn keeps_to_reservations(tx: &Tx<'_>, start: &Start) -> bool {
    let Some((entry, _)) = tx.state.element(start.job) else { return false };
    let until = expected_end(tx.at, &entry.job.spec);
    reservations::allow(tx.state, &entry.job, &start.allocation, tx.at, until)
}

/// Whether the pools of a job have what it takes, beside the starts of its group that went before.
fn within_limits(tx: &Tx<'_>, start: &Start, book: &mut Book) -> bool {
    let Some((entry, _)) = tx.state.element(start.job) else { return false };
    let rows = book.rows_of_job(tx.state, &entry.job);
    if rows.is_empty() {
        return true;
    }
    let Timestamp(end) = expected_end(tx.at, &entry.job.spec);
    let granted = Span(end.saturating_sub(tx.at.0));
    book.take(&rows, &Draw::held(&entry.job, &start.allocation, granted)).is_ok()
}

/// Some nodes, each once, and something positive on each.
fn is_sound(allocation: &Allocation) -> bool {
    let mut nodes = BTreeSet::new();
    let positive = allocation.parts.iter().all(|p| p.tasks > 0 && p.amounts.iter().all(|(_, n)| n > 0));
    positive && !allocation.parts.is_empty() && allocation.parts.iter().all(|p| nodes.insert(p.node))
}

fn takes_jobs(tx: &Tx<'_>, kept: &Kept) -> bool {
    kept.allocation.parts.iter().all(|p| tx.state.nodes.get(&p.node).is_some_and(|n| n.takes_jobs()))
}

/// Whether nothing but room keeps the job from starting.
fn is_waiting(tx: &Tx<'_>, id: JobId) -> bool {
    let Some((entry, element)) = tx.state.element(id) else { return false };
    let eligible = element.state == JobState::Pending && element.eligible.is_some_and(|since| since <= tx.at);
    let queue_starts = tx.state.queues.get(&entry.job.queue).is_some_and(|q| q.state.starts());
    eligible && queue_starts && !tx.state.attempts.contains_key(&id)
}

fn may_start(tx: &Tx<'_>, id: JobId, arrays: &mut BTreeMap<JobId, u32>) -> bool {
    let Some((entry, _)) = tx.state.find(id) else { return false };
    let more = arrays.entry(entry.job.id).or_default();
    *more += 1;
    let throttle = entry.job.spec.array.as_ref().and_then(|a| a.throttle);
    let below_throttle = throttle.is_none_or(|most| entry.running + *more <= most);
    let in_time = entry.job.spec.latest_start().is_none_or(|latest| tx.at <= latest);
    in_time && below_throttle && is_waiting(tx, id)
}

fn node_has(tx: &Tx<'_>, id: NodeId, amounts: &Amounts, devices: &BTreeMap<u32, i64>) -> bool {
    let Some(node) = tx.state.nodes.get(&id) else { return false };
    let held = tx.state.derived.held.get(&id);
    let taken = |device: &u32| held.and_then(|h| h.devices.get(device)).copied().unwrap_or(0);
    let devices_free = devices
        .iter()
        .all(|(device, milli)| (*device as usize) < node.spec.devices.len() && taken(device) + milli <= 1000);
    let devices_free = devices_free && devices.keys().all(|device| node.device_out(*device).is_none());
    node.takes_jobs() && devices_free && tx.state.free(id).covers(amounts)
}
