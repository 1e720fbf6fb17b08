//! The twin: lists of facts, and answers by trying every millisecond, every node and every set of nodes.

use super::brute::{self, Choice, Offer};
use super::sharing::Groups;
use ephor_model::allocation::{Allocation, AllocationPart};
use ephor_model::constraint::{Constraint, Features};
use ephor_model::id::{JobId, NodeId};
use ephor_model::request::{GpuRequest, Request};
use ephor_model::resource::{Amounts, ResourceId};
use ephor_model::time::{Span, Timestamp};
use ephor_placement::{Need, NodeView, Placing};
use std::collections::BTreeMap;

/// A part of a node held in `[from, until)`.
#[derive(Clone, Debug)]
struct Hold {
    from: i64,
    until: i64,
    part: AllocationPart,
}

#[derive(Clone, Debug, Default)]
pub struct Twin {
    pub now: i64,
    pub nodes: BTreeMap<NodeId, NodeView>,
    pub running: BTreeMap<JobId, (Allocation, i64)>,
    pub reservations: BTreeMap<u64, (Allocation, i64, i64)>,
    /// Who shares GPUs with whom.
    pub groups: Groups,
}

/// Amounts, with GPUs counted for each kind beside.
#[derive(Clone, Debug)]
struct Free {
    amounts: Amounts,
    kinds: BTreeMap<String, i64>,
}

impl Twin {
    pub fn start(&mut self, job: JobId, allocation: &Allocation, until: i64) {
        self.running.insert(job, (allocation.clone(), until));
    }

    /// The choice for a start now.
    pub fn place(&self, need: &Need, start: i64, limit: Span, how: &Placing) -> Option<Choice> {
        let until = start.saturating_add(limit.0.max(1));
        let nodes = self.nodes.iter().filter(|(id, view)| {
            view.up && how.only.as_ref().is_none_or(|only| only.contains(id)) && suits(need, view)
        });
        let offers = nodes.filter_map(|(id, view)| self.offer(need, *id, view, start, until, how));
        let offers: Vec<Offer> = offers.collect();
        let request = &need.request;
        let (mut required, mut preferred) = (Vec::new(), Vec::new());
        required.extend(how.require_level.clone());
        preferred.extend(how.prefer_level.clone());
        // A single node is below one domain of the level of the request in any case.
        let most =
            request.tasks.map_or(fewest(request), |tasks| request.nodes_max.unwrap_or(tasks).min(tasks) as usize);
        if let Some(topology) = request.topology.as_ref().filter(|_| most > 1) {
            if topology.required { &mut required } else { &mut preferred }.push(topology.level.clone());
        }
        let least =
            request.tasks.map_or(request.tasks_per_node.unwrap_or(1), |tasks| if most == 1 { tasks } else { 1 });
        let serves = |offer: &Offer| may_serve(request, &self.nodes[&offer.node].features);
        let useful = offers.into_iter().filter(|offer| offer.tasks >= least && serves(offer));
        let useful: Vec<Offer> = useful.collect();
        for levels in [[required.clone(), preferred.clone()].concat(), required] {
            if levels.is_empty() {
                return self.among(need, useful);
            }
            let mut domains: BTreeMap<Vec<String>, Vec<Offer>> = BTreeMap::new();
            for offer in &useful {
                let features = &self.nodes[&offer.node].features;
                let at = |level: &String| {
                    features.iter().find_map(|f| f.strip_prefix(&format!("{level}="))).map(str::to_owned)
                };
                if let Some(domain) = levels.iter().map(at).collect() {
                    domains.entry(domain).or_default().push(offer.clone());
                }
            }
            let gpus = |offer: &Offer| if request.gpus == GpuRequest::None { 0 } else { offer.gpus };
            let tasks = |offer: &Offer| offer.tasks.min(request.tasks.unwrap_or(u32::MAX));
            let room = |offers: &[Offer]| (offers.iter().map(tasks).sum::<u32>(), offers.iter().map(gpus).sum::<u32>());
            let mut all: Vec<(Vec<String>, Vec<Offer>)> = domains.into_iter().collect();
            all.sort_by_key(|(name, offers)| (room(offers), name.clone()));
            if let Some(choice) = all.into_iter().find_map(|(_, offers)| self.among(need, offers)) {
                return Some(choice);
            }
            if preferred.is_empty() {
                return None;
            }
        }
        None
    }

    /// The choice among offers under the constraint.
    fn among(&self, need: &Need, offers: Vec<Offer>) -> Option<Choice> {
        let has = |offer: &Offer, wanted: &Features| holds(wanted, &self.nodes[&offer.node].features);
        match &need.request.constraint {
            Some(Constraint::Each(each)) => {
                let some = offers.into_iter().filter(|offer| has(offer, each)).collect();
                brute::choose(&need.request, some, &|_| true)
            }
            Some(Constraint::Same(alternatives)) => alternatives.iter().find_map(|one| {
                let some = offers.iter().filter(|offer| has(offer, one)).cloned().collect();
                brute::choose(&need.request, some, &|_| true)
            }),
            Some(Constraint::Counts(counts)) => {
                let wanted: Vec<&Features> =
                    counts.iter().flat_map(|(one, n)| std::iter::repeat_n(one, *n as usize)).collect();
                brute::choose(&need.request, offers, &|set| assigned(&wanted, set, &has))
            }
            None => brute::choose(&need.request, offers, &|_| true),
        }
    }

    /// The earliest time by trying each.
    pub fn earliest(&self, need: &Need, from: i64, limit: Span, how: &Placing) -> Option<(i64, Choice)> {
        let from = from.max(self.now);
        let last = self.holds().flat_map(|h| [h.from, h.until]).filter(|t| *t < i64::MAX).max().unwrap_or(from);
        (from..=last.max(from)).find_map(|start| Some((start, self.place(need, start, limit, how)?)))
    }

    /// Whether it could run with every node up and empty.
    pub fn ever(&self, need: &Need) -> bool {
        let mut empty = Twin { nodes: self.nodes.clone(), ..Twin::default() };
        empty.nodes.values_mut().for_each(|view| view.up = true);
        empty.place(need, 0, Span(1), &Placing::default()).is_some()
    }

    /// Everything that is held; what should have ended goes on for a millisecond.
    fn holds(&self) -> impl Iterator<Item = Hold> + '_ {
        let running = self.running.values().flat_map(|(allocation, until)| {
            let until = (*until).max(self.now + 1);
            allocation.parts.iter().map(move |part| Hold { from: i64::MIN, until, part: part.clone() })
        });
        let reserved = self.reservations.values().flat_map(|(allocation, from, until)| {
            allocation.parts.iter().map(move |part| Hold { from: *from, until: *until, part: part.clone() })
        });
        running.chain(reserved)
    }

    fn free_at(&self, id: NodeId, view: &NodeView, time: i64) -> Free {
        let mut free = whole(view);
        for hold in self.holds().filter(|h| h.part.node == id && h.from <= time && time < h.until) {
            // What a changed node no longer counts is not missing there.
            let counted = |id: ResourceId| id != ResourceId::GPU && view.capacity.get(id) != 0;
            free.amounts.sub(&hold.part.amounts.iter().filter(|(id, _)| counted(*id)).collect());
            let offered = view.capacity.get(ResourceId::GPU) / 1000;
            let whole = hold.part.devices.iter().filter(|_| hold.part.share().is_none());
            for device in whole.filter(|d| i64::from(**d) < offered) {
                *free.kinds.entry(kind(view, *device)).or_default() -= 1;
            }
        }
        for group in self.groups_on(id).iter().filter(|group| group.holds(time)) {
            if let Some(kind) = group.kind(view) {
                *free.kinds.entry(kind).or_default() -= 1;
            }
        }
        free
    }

    /// Whole GPUs of a kind that are free at a time.
    pub fn free_gpus(&self, id: NodeId, kind: &str, time: i64) -> i64 {
        self.free_at(id, &self.nodes[&id], time).kinds.get(kind).copied().unwrap_or(0)
    }

    /// When something changes on a node in `[start, until)`, and the start.
    pub fn moments(&self, id: NodeId, start: i64, until: i64) -> Vec<i64> {
        let changes = self.holds().filter(|h| h.part.node == id).flat_map(|h| [h.from, h.until]);
        changes.filter(|t| start < *t && *t < until).chain([start]).collect()
    }

    /// What one node offers in all of `[start, until)`; `None`: nothing.
    fn offer(&self, need: &Need, id: NodeId, view: &NodeView, start: i64, until: i64, how: &Placing) -> Option<Offer> {
        let frees: Vec<Free> = self.moments(id, start, until).into_iter().map(|t| self.free_at(id, view, t)).collect();
        let all = whole(view);
        let request = &need.request;
        let same = |free: &Free| free.amounts == all.amounts && free.kinds == all.kinds;
        if request.exclusive && !frees.iter().all(same) {
            return None;
        }
        let least_gpus = |name: &String| frees.iter().map(|f| f.kinds[name]).min().unwrap_or(0).max(0);
        let right = all.kinds.keys().filter(|name| request.takes_gpu_type(name));
        let gpus = right.map(least_gpus).sum::<i64>();
        // Where one node is asked for it must have all of them.
        let named = request.node_list.iter().collect::<std::collections::BTreeSet<_>>().len() as u32;
        let most_nodes = match request.tasks {
            None => request.nodes_min.max(named),
            Some(tasks) => request.nodes_max.unwrap_or(tasks).min(tasks),
        };
        if most_nodes <= 1 && gpus < i64::from(gpus_in_all(request)) {
            return None;
        }
        let for_share = match request.gpus {
            GpuRequest::Share(milli) => {
                let joined = self.group_for(id, milli.into(), |kind| request.takes_gpu_type(kind), start, until);
                i64::from(joined.is_none())
            }
            _ => 0,
        };
        let room = |tasks: u32| {
            let mut asked = request.per_task().scaled(i64::from(tasks));
            asked.add(&request.per_node());
            let asked_gpus = asked.get(ResourceId::GPU) / 1000 + for_share;
            asked.set(ResourceId::GPU, 0);
            asked_gpus <= gpus && frees.iter().all(|free| free.amounts.covers(&asked))
        };
        let most = request.tasks_per_node.or(request.tasks).unwrap_or(1);
        let tasks = (1..=most).rev().find(|tasks| room(*tasks))?;
        let now = self.free_at(id, view, start);
        let free = |resource: ResourceId| amount(&now, resource);
        let mut key = Vec::new();
        if !how.rank.is_empty() {
            key.push(how.rank.iter().position(|n| *n == id).map_or(i64::MAX, |n| n as i64));
        }
        key.extend(how.spread.iter().map(|r| -free(*r)));
        for r in &how.pack {
            key.extend([i64::from(free(*r) >= amount(&all, *r)), free(*r)]);
        }
        key.push(i64::from(same(&now)));
        Some(Offer { node: id, tasks, gpus: gpus as u32, required: request.node_list.contains(&view.name), key })
    }
}

/// Whether each wish can have an offer of its own, by trying all ways.
fn assigned(wanted: &[&Features], set: &[&Offer], has: &dyn Fn(&Offer, &Features) -> bool) -> bool {
    let Some((first, others)) = wanted.split_first() else { return true };
    (0..set.len()).any(|i| {
        let mut rest = set.to_vec();
        let offer = rest.remove(i);
        has(offer, first) && assigned(others, &rest, has)
    })
}

/// Whether a node can be of use under the constraint.
fn may_serve(request: &Request, features: &[String]) -> bool {
    match &request.constraint {
        None => true,
        Some(Constraint::Each(each)) => holds(each, features),
        Some(Constraint::Same(all)) => all.iter().any(|one| holds(one, features)),
        Some(Constraint::Counts(all)) => {
            let counted = all.iter().map(|(_, n)| *n as usize).sum::<usize>();
            counted < fewest(request) || all.iter().any(|(one, _)| holds(one, features))
        }
    }
}

fn holds(wanted: &Features, features: &[String]) -> bool {
    match wanted {
        Features::Has(name) => features.contains(name),
        Features::All(parts) => !parts.iter().any(|part| !holds(part, features)),
        Features::Any(parts) => parts.iter().filter(|part| holds(part, features)).count() > 0,
    }
}

fn amount(free: &Free, id: ResourceId) -> i64 {
    if id == ResourceId::GPU { free.kinds.values().sum::<i64>() * 1000 } else { free.amounts.get(id) }
}

/// The kind of a device, as far as the node's capacity offers it.
fn kind(view: &NodeView, device: u32) -> String {
    view.devices.get(device as usize).cloned().unwrap_or_default()
}

fn whole(view: &NodeView) -> Free {
    let mut free = Free { amounts: view.capacity.clone(), kinds: BTreeMap::new() };
    free.amounts.set(ResourceId::GPU, 0);
    for device in 0..view.capacity.get(ResourceId::GPU) / 1000 {
        *free.kinds.entry(kind(view, device as u32)).or_default() += 1;
    }
    free
}

/// Fewest nodes of a request.
fn fewest(request: &Request) -> usize {
    let named: std::collections::BTreeSet<&String> = request.node_list.iter().collect();
    (request.nodes_min as usize).max(named.len())
}

fn suits(need: &Need, view: &NodeView) -> bool {
    let has = |feature: &String| view.features.contains(feature);
    let level = need.request.topology.as_ref().filter(|topology| topology.required).map(|t| format!("{}=", t.level));
    if level.is_some_and(|level| !view.features.iter().any(|f| f.starts_with(&level))) {
        return false;
    }
    need.request.features.iter().all(has)
        && need.queue_features.iter().all(has)
        && !need.request.exclude.contains(&view.name)
}

/// GPUs in all, where they are asked for so.
pub fn gpus_in_all(request: &Request) -> u32 {
    if let GpuRequest::Total(n) = request.gpus { n } else { 0 }
}

/// The time as the model has it.
pub fn at(time: i64) -> Timestamp {
    Timestamp(time)
}
