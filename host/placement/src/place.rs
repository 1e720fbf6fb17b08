//! From a class and a window of time to an allocation: which nodes have room, in which order they are taken.

use crate::choose::{Item, Pick};
use crate::class::Class;
use crate::cluster::Cluster;
use crate::demand::{Demand, Goal};
use crate::domains::Levels;
use crate::fit::Fit;
use crate::index::Use;
use crate::need::ClassId;
use crate::node::Node;
use crate::placing::Placing;
use crate::profile::Level;
use crate::shape::{ShapeId, WHOLE_GPU};
use crate::work::{NoFit, Work};
use ephor_model::allocation::{Allocation, AllocationPart};
use ephor_model::id::NodeId;
use ephor_model::request::GpuRequest;
use ephor_model::resource::ResourceId;
use ephor_model::time::Timestamp;
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;

/// How much room was found where it was not enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    pub nodes: usize,
    pub tasks: u64,
    pub gpus: u64,
}

/// What there is where there is not enough: the nodes with room.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lack {
    pub room: Room,
    pub fits: Vec<(NodeId, Fit)>,
}

/// A node with room.
struct Candidate {
    node: NodeId,
    fit: Fit,
    /// Smaller comes first.
    key: SmallVec<[i64; 2]>,
}

/// Which nodes are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Among<'a> {
    /// All that are eligible; for a window that begins now.
    Now,
    /// The same, for a window that begins later.
    All,
    /// These, ascending.
    These(&'a [NodeId]),
}

/// The nodes that a request and a [`Placing`] leave.
#[derive(Clone, Debug)]
pub(crate) enum Candidates {
    /// All that are eligible.
    Eligible,
    /// These, ascending.
    These(Vec<NodeId>),
}

impl Candidates {
    /// The same, for a window that begins now.
    pub fn as_among(&self) -> Among<'_> {
        match self {
            Self::Eligible => Among::Now,
            Self::These(nodes) => Among::These(nodes),
        }
    }
}

impl Cluster {
    /// The class, and its demand where that makes sense.
    pub(crate) fn class(&self, class: ClassId) -> Result<(&Class, &Demand), NoFit> {
        let Some(found) = self.classes.get(class.0 as usize) else {
            return Err(NoFit::Never(format!("class {} is not known here", class.0).into()));
        };
        match &found.demand {
            Ok(demand) => Ok((found, demand)),
            Err(why) => Err(NoFit::Never(format!("the request {why}").into())),
        }
    }

    /// The nodes that are worth looking at.
    pub(crate) fn candidates(&self, class: ClassId, how: &Placing) -> Result<Candidates, NoFit> {
        let (class, _) = self.class(class)?;
        let Some(only) = &how.only else { return Ok(Candidates::Eligible) };
        let mut nodes: Vec<NodeId> = only.iter().copied().filter(|id| class.eligible.has(*id)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        Ok(Candidates::These(nodes))
    }

    /// The nodes that must be part of the allocation; `None` where one of them is not part of the cluster.
    pub(crate) fn required(&self, class: &Class) -> Option<Vec<NodeId>> {
        class.need.request.node_list.iter().map(|name| self.names.get(name).copied()).collect()
    }

    /// What a node has room for in all of `[start, until)`.
    pub(crate) fn fit_in(&self, class: &Class, node: NodeId, start: Timestamp, until: Timestamp) -> Option<Fit> {
        let node = &self.nodes[node.0 as usize];
        let shape = &self.shapes[node.shape.0 as usize];
        let shared = class.can_share(node, shape, start, until, self.now);
        let mut fit = None;
        // Less free never means more room, so that the first level without any settles it.
        node.profile.lowest_so_far(start, until, |lowest| {
            fit = class.fit(node, lowest, shared);
            fit.is_some()
        });
        fit
    }

    /// An allocation on some of these nodes that is free in all of `[start, until)`; where there is none, what there is.
    pub(crate) fn place(
        &self,
        class: ClassId,
        among: Among<'_>,
        start: Timestamp,
        until: Timestamp,
        how: &Placing,
        work: &mut Work,
    ) -> Result<Result<Allocation, Lack>, NoFit> {
        let (class, demand) = self.class(class)?;
        let levels = Levels::of(class, demand, how);
        // The first nodes that would do alone may not do together.
        let together = class.has_groups() || !levels.none();
        let wishes = Wishes::of(how);
        let mut search =
            Search { cluster: self, class, demand, start, until, wishes, together, found: Found::default() };
        match among {
            Among::Now => search.index(work)?,
            Among::All => search.each(class.eligible.iter(), work)?,
            Among::These(nodes) => search.each(nodes.iter().copied(), work)?,
        }
        let Found { mut candidates, room } = search.found;
        candidates.sort_by(|a, b| a.key.cmp(&b.key));
        let lack =
            |candidates: Vec<Candidate>| Lack { room, fits: candidates.iter().map(|c| (c.node, c.fit)).collect() };
        let Some(required) = self.required(class) else { return Ok(Err(lack(candidates))) };
        let item = |c: &Candidate| Item { fit: c.fit, required: required.contains(&c.node) };
        let items: Vec<Item> = candidates.iter().map(item).collect();
        let shape = |c: &Candidate| self.nodes[c.node.0 as usize].shape;
        let shapes: Vec<ShapeId> = if together { candidates.iter().map(shape).collect() } else { Vec::new() };
        let picks = self.pick_below(class, demand, &levels, &items, &shapes, work)?;
        let Some(picks) = picks else { return Ok(Err(lack(candidates))) };
        let mut allocation = Allocation::default();
        for pick in picks {
            let node = candidates[pick.index].node;
            allocation.parts.push(self.part(class, node, &pick, start, until));
        }
        allocation.parts.sort_by_key(|part| part.node);
        Ok(Ok(allocation))
    }

    /// Where a node stands in the order.
    fn key(&self, node: &Node, id: NodeId, start: Timestamp, wishes: &Wishes) -> SmallVec<[i64; 2]> {
        let mut key = SmallVec::new();
        let free = node.profile.at(start);
        if !wishes.none() {
            let shape = &self.shapes[node.shape.0 as usize];
            let amount = |level: &Level, resource: &ResourceId| shape.amount_of(level, *resource);
            if !wishes.rank.is_empty() {
                key.push(wishes.rank.get(&id).map_or(i64::MAX, |n| *n as i64));
            }
            key.extend(wishes.how.spread.iter().map(|resource| -amount(free, resource)));
            for resource in &wishes.how.pack {
                let left = amount(free, resource);
                key.extend([i64::from(left >= amount(&node.capacity, resource)), left]);
            }
        }
        key.push(i64::from(*free == node.capacity));
        key
    }

    /// The part of an allocation on one node.
    fn part(&self, class: &Class, id: NodeId, pick: &Pick, start: Timestamp, until: Timestamp) -> AllocationPart {
        let node = &self.nodes[id.0 as usize];
        let shape = &self.shapes[node.shape.0 as usize];
        let request = &class.need.request;
        if request.exclusive {
            let in_service = |device: &u32| shape.device_column(*device as usize).is_some();
            let devices = (0..shape.devices.len() as u32).filter(in_service).collect();
            return AllocationPart { node: id, tasks: pick.tasks, amounts: shape.amounts_of(&node.capacity), devices };
        }
        let mut amounts = request.per_task().scaled(i64::from(pick.tasks));
        amounts.add(&request.per_node());
        if let GpuRequest::Total(_) = request.gpus {
            amounts.set(ResourceId::GPU, i64::from(pick.gpus) * WHOLE_GPU);
        }
        // A part of a GPU is on one.
        let gpus = ((amounts.get(ResourceId::GPU) + WHOLE_GPU - 1) / WHOLE_GPU) as u32;
        if let Some(device) = class.shared_gpu(node, shape, start, until, self.now) {
            return AllocationPart { node: id, tasks: pick.tasks, amounts, devices: smallvec![device] };
        }
        let devices = match &class.fittings[node.shape.0 as usize] {
            Some(fitting) if gpus > 0 => {
                node.choose_devices(shape, &fitting.gpu_columns, &node.profile.lowest(start, until), gpus)
            }
            _ => SmallVec::new(),
        };
        AllocationPart { node: id, tasks: pick.tasks, amounts, devices }
    }
}

/// Nodes with room, so far.
#[derive(Default)]
struct Found {
    candidates: Vec<Candidate>,
    room: Room,
}

/// Gathers nodes with room.
struct Search<'a> {
    cluster: &'a Cluster,
    class: &'a Class,
    demand: &'a Demand,
    start: Timestamp,
    until: Timestamp,
    wishes: Wishes<'a>,
    /// Whether nodes are chosen by more than their order.
    together: bool,
    found: Found,
}

impl Search<'_> {
    /// Looks at each of these nodes.
    fn each(&mut self, nodes: impl Iterator<Item = NodeId>, work: &mut Work) -> Result<(), NoFit> {
        for id in nodes {
            work.take(1)?;
            self.look_at(id);
        }
        Ok(())
    }

    /// Looks at the nodes that the index finds, those in use first. Where no wish says otherwise this is the order in
    /// which nodes are taken, so that the search ends with the first that will do.
    fn index(&mut self, work: &mut Work) -> Result<(), NoFit> {
        let in_order = self.wishes.none() && self.demand.required == 0 && !self.together;
        for which in [Use::Busy, Use::Idle] {
            if self.demand.exclusive && which == Use::Busy {
                continue;
            }
            let mut from = 0;
            while let Some(id) = self.cluster.index.next(from, which, &self.class.floor, &self.class.eligible, work)? {
                work.take(1)?;
                from = id.0 as usize + 1;
                if self.look_at(id) && in_order && self.will_do() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Writes a node down if it has room.
    fn look_at(&mut self, id: NodeId) -> bool {
        let Some(fit) = self.cluster.fit_in(self.class, id, self.start, self.until) else { return false };
        let found = &mut self.found;
        found.room.nodes += 1;
        found.room.tasks += u64::from(fit.tasks);
        found.room.gpus += u64::from(fit.gpus);
        let key = self.cluster.key(&self.cluster.nodes[id.0 as usize], id, self.start, &self.wishes);
        found.candidates.push(Candidate { node: id, fit, key });
        true
    }

    /// Whether the nodes found so far are those that will be chosen.
    fn will_do(&mut self) -> bool {
        let Self { demand, found, .. } = self;
        let gpus = u64::from(demand.gpus_in_all);
        if demand.most == 1 {
            // One is asked for: any before this one had too few GPUs.
            let Some(last) = found.candidates.pop() else { return false };
            let enough = u64::from(last.fit.gpus) >= gpus;
            if enough {
                found.candidates.clear();
            }
            found.candidates.push(last);
            return enough;
        }
        let tasks = match demand.goal {
            Goal::Each(_) => 0,
            Goal::Sum(tasks) => u64::from(tasks),
        };
        found.candidates.len() == demand.fewest && found.room.tasks >= tasks && found.room.gpus >= gpus
    }
}

/// A [`Placing`] made ready for comparing nodes.
struct Wishes<'a> {
    how: &'a Placing,
    rank: BTreeMap<NodeId, usize>,
}

impl<'a> Wishes<'a> {
    fn of(how: &'a Placing) -> Self {
        // Of a node that is named twice the first place counts.
        let rank = how.rank.iter().enumerate().rev().map(|(place, id)| (*id, place)).collect();
        Self { how, rank }
    }

    fn none(&self) -> bool {
        self.rank.is_empty() && self.how.spread.is_empty() && self.how.pack.is_empty()
    }
}
