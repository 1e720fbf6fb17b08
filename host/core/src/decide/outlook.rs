//! What will be free on nodes, worked out from the state alone: no promise may be broken by another one or by a start.
//!
//! Only nodes on which something is promised are looked at, and each once for all groups of a plan, so that a plan of a
//! cluster without promises pays nothing. Amounts count here, single devices at the start.

use super::Tx;
use super::plan::promised_end;
use crate::command::{Group, Start, expected_end};
use crate::eviction::STUCK;
use crate::promise::Promise;
use crate::records::Attempt;
use ephor_model::{Amounts, JobId, NodeId, ResourceId, Span, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// See the module. Kept up to date with the groups that were taken.
#[derive(Default)]
pub(super) struct Outlook {
    nodes: BTreeMap<NodeId, Future>,
}

/// What is free on one node from a time on, until the next: ascending, the first one is now.
struct Future(Vec<(Timestamp, Amounts)>);

/// An amount that is taken or given back on a node for a time.
struct Edit<'a> {
    node: NodeId,
    from: Timestamp,
    until: Timestamp,
    amounts: &'a Amounts,
    /// How often: negative: taken; positive: given back.
    times: i64,
    /// Until when there must be room for it.
    safe_until: Timestamp,
}

impl Outlook {
    /// Whether the group breaks no promise; if so, it is written down.
    pub fn takes(&mut self, tx: &Tx<'_>, group: &Group) -> bool {
        let promised_to = |job: &JobId| tx.state.promises.get(job);
        let evicted = group.evictions.iter().filter_map(|(key, eviction)| {
            let attempt = tx.state.attempts.get(&key.job)?;
            Some((attempt, (tx.at + eviction.grace).max(tx.at + Span(1)), release(tx, attempt)))
        });
        let evicted: Vec<_> = evicted.collect();
        let starts: Vec<&Start> = group.starts.iter().filter(|s| !is_kept_promise(tx, s)).collect();
        let mut looked_at: BTreeSet<NodeId> =
            group.promises.iter().flat_map(|kept| kept.allocation.parts.iter().map(|p| p.node)).collect();
        let of_starts = starts.iter().flat_map(|s| s.allocation.parts.iter().map(|p| p.node));
        looked_at.extend(of_starts.filter(|node| tx.state.derived.promised.contains_key(node)));
        if looked_at.is_empty() && self.nodes.is_empty() {
            return true;
        }
        self.load(tx, &looked_at);

        let lifted = group.lifts.iter().map(|(job, _)| job).chain(group.promises.iter().map(|kept| &kept.job));
        let leaving: BTreeSet<&JobId> = lifted.chain(starts.iter().map(|s| &s.job)).collect();
        let thousandth = thousandth_of_a_gpu();
        let mut edits: Vec<Edit<'_>> = Vec::new();
        for promise in leaving.into_iter().filter_map(promised_to) {
            edits.extend(holds(promise, tx.at, 1));
        }
        for (attempt, from, until) in &evicted {
            edits.extend(attempt.allocation.parts.iter().map(|p| edit(p, *from, *until, 1)));
            // Its devices out of service come to nobody. This is no wish for room: it is looked at nowhere.
            edits.extend(tx.state.out_of_service_in(attempt).map(|(node, milli)| {
                let (from, until) = (*from, *until);
                Edit { node, from, until, amounts: &thousandth, times: -milli, safe_until: from }
            }));
        }
        for kept in &group.promises {
            let (from, until) = (kept.start.max(tx.at), promised_end(tx, kept));
            let part = |p| edit(p, from, until, -1);
            edits.extend(kept.allocation.parts.iter().map(part));
        }
        for start in starts {
            let until = end_of_start(tx, start.job);
            let safe_until = self.late_until(tx, start).unwrap_or(until);
            let part = |p| Edit { safe_until, ..edit(p, tx.at, until, -1) };
            edits.extend(start.allocation.parts.iter().map(part));
        }
        edits.iter().for_each(|edit| self.apply(edit, edit.times));
        let fits = edits.iter().filter(|edit| edit.times < 0).all(|edit| self.has_room(edit));
        if !fits {
            edits.iter().for_each(|edit| self.apply(edit, -edit.times));
        }
        fits
    }

    /// A job that starts on its promised nodes later than promised may run on into what comes after it, by as much as
    /// it is late: whoever is promised its place gets it when it ends. So long must it fit.
    fn late_until(&self, tx: &Tx<'_>, start: &Start) -> Option<Timestamp> {
        let promise = tx.state.promises.get(&start.job).filter(|p| p.start <= tx.at)?;
        let promised = |node| promise.allocation.parts.iter().any(|p| p.node == node);
        start.allocation.parts.iter().all(|p| promised(p.node)).then(|| promise.until.max(tx.at + Span(1)))
    }

    fn apply(&mut self, edit: &Edit<'_>, times: i64) {
        if let Some(future) = self.nodes.get_mut(&edit.node) {
            future.change(edit.from, edit.until, edit.amounts, times);
        }
    }

    fn has_room(&self, edit: &Edit<'_>) -> bool {
        let Some(Future(steps)) = self.nodes.get(&edit.node) else { return true };
        let first = steps.partition_point(|(at, _)| *at <= edit.from).saturating_sub(1);
        let mut within = steps[first..].iter().take_while(|(at, _)| *at < edit.safe_until);
        within.all(|(_, free)| edit.amounts.iter().all(|(resource, _)| free.get(resource) >= 0))
    }

    /// Works out the nodes that are not there yet.
    fn load(&mut self, tx: &Tx<'_>, nodes: &BTreeSet<NodeId>) {
        let wanted: BTreeSet<NodeId> = nodes.iter().copied().filter(|id| !self.nodes.contains_key(id)).collect();
        let mut running = BTreeSet::new();
        let mut promised = BTreeSet::new();
        let mut changes: BTreeMap<NodeId, Vec<(Timestamp, &Amounts, i64)>> = BTreeMap::new();
        // Who holds a device that is out of service takes nothing from others.
        let thousandth = thousandth_of_a_gpu();
        for id in &wanted {
            let of_out = tx.state.held_out_of_service(*id).into_iter().flat_map(|(attempt, milli)| {
                [(tx.at, &thousandth, milli), (release(tx, attempt), &thousandth, -milli)]
            });
            changes.insert(*id, of_out.collect());
            running.extend(tx.state.derived.held.get(id).into_iter().flat_map(|held| held.jobs.iter()));
            promised.extend(tx.state.derived.promised.get(id).into_iter().flat_map(|jobs| jobs.iter()));
        }
        let attempts = running.into_iter().filter_map(|job| tx.state.attempts.get(job)).flat_map(|attempt| {
            // One that should have ended is about to.
            let until = release(tx, attempt);
            attempt.allocation.parts.iter().map(move |p| edit(p, tx.at, until, -1))
        });
        let promises = promised.into_iter().filter_map(|job| tx.state.promises.get(job));
        for hold in attempts.chain(promises.flat_map(|promise| holds(promise, tx.at, -1))) {
            if let Some(changes) = changes.get_mut(&hold.node) {
                changes.push((hold.from, hold.amounts, -1));
                changes.push((hold.until, hold.amounts, 1));
            }
        }
        for (id, mut changes) in changes {
            changes.sort_unstable_by_key(|(at, _, _)| *at);
            let mut free = tx.state.nodes.get(&id).map(|n| n.capacity_in_service()).unwrap_or_default();
            let mut steps: Vec<(Timestamp, Amounts)> = vec![(tx.at, free.clone())];
            for (at, amounts, times) in changes {
                free.add_scaled(amounts, times);
                match steps.last_mut() {
                    Some(last) if last.0 == at => last.1.clone_from(&free),
                    _ => steps.push((at, free.clone())),
                }
            }
            self.nodes.insert(id, Future(steps));
        }
    }
}

impl Future {
    /// Adds `times` times the amounts to what is free in `[from, until)`.
    fn change(&mut self, from: Timestamp, until: Timestamp, amounts: &Amounts, times: i64) {
        if from >= until {
            return;
        }
        let first = self.cut(from);
        let end = self.cut(until);
        self.0[first..end].iter_mut().for_each(|(_, free)| free.add_scaled(amounts, times));
    }

    /// The index of the step that begins at that time; makes one where there is none.
    fn cut(&mut self, time: Timestamp) -> usize {
        let next = self.0.partition_point(|(at, _)| *at < time);
        if self.0.get(next).is_some_and(|(at, _)| *at == time) {
            return next;
        }
        // The first step is now, and nothing is changed before that.
        let free = self.0[next.saturating_sub(1)].1.clone();
        self.0.insert(next, (time, free));
        next
    }
}

fn thousandth_of_a_gpu() -> Amounts {
    Amounts::new().with(ResourceId::GPU, 1)
}

fn edit(part: &ephor_model::AllocationPart, from: Timestamp, until: Timestamp, times: i64) -> Edit<'_> {
    Edit { node: part.node, from, until, amounts: &part.amounts, times, safe_until: until }
}

/// What a promise keeps from now on.
fn holds(promise: &Promise, now: Timestamp, times: i64) -> impl Iterator<Item = Edit<'_>> {
    let (from, until) = (promise.start.max(now), promise.until.max(now));
    promise.allocation.parts.iter().map(move |part| edit(part, from, until, times))
}

/// When what an attempt holds comes free. One that should have ended is about to, unless it is stuck.
fn release(tx: &Tx<'_>, attempt: &Attempt) -> Timestamp {
    let release = attempt.release();
    match attempt.told_to_end() {
        Some(_) if release + STUCK <= tx.at => Timestamp::NEVER,
        _ => release.max(tx.at + Span(1)),
    }
}

fn end_of_start(tx: &Tx<'_>, job: JobId) -> Timestamp {
    let end = tx.state.find(job).map_or(tx.at, |(entry, _)| expected_end(tx.at, &entry.job.spec));
    end.max(tx.at + Span(1))
}

/// Whether the start is what was promised to its job, at the promised time: then it takes what was kept for it, and
/// nothing changes for anybody else.
fn is_kept_promise(tx: &Tx<'_>, start: &Start) -> bool {
    tx.state.promises.get(&start.job).is_some_and(|promise| {
        let same = promise.start == tx.at && promise.until == end_of_start(tx, start.job);
        let (kept, taken) = (&promise.allocation.parts, &start.allocation.parts);
        let alike = || kept.iter().zip(taken).all(|(a, b)| a.node == b.node && a.amounts == b.amounts);
        same && kept.len() == taken.len() && alike()
    })
}
