//! From a class and a window of time to an allocation: which nodes have room, in which order they are taken.

use crate::choose::{Item, Pick};
use crate::class::Class;
use crate::cluster::Cluster;
use crate::demand::Demand;
use crate::domains::Levels;
use crate::fit::Fit;
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
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// How much room was found where it was not enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    pub nodes: usize,
    pub tasks: u64,
    pub gpus: u64,
}

/// A node with room.
struct Candidate {
    node: NodeId,
    fit: Fit,
    /// Smaller comes first.
    key: SmallVec<[i64; 2]>,
}

impl Cluster {
    /// The class, and its demand where that makes sense.
    pub(crate) fn class(&self, class: ClassId) -> Result<(&Class, &Demand), NoFit> {
        let Some(found) = self.classes.get(class.0 as usize) else {
            return Err(NoFit::Never(format!("class {} is not known here", class.0)));
        };
        match &found.demand {
            Ok(demand) => Ok((found, demand)),
            Err(why) => Err(NoFit::Never(format!("the request {why}"))),
        }
    }

    /// The nodes that are worth looking at, ascending.
    pub(crate) fn candidates(&self, class: ClassId, how: &Placing) -> Result<Vec<NodeId>, NoFit> {
        let (class, _) = self.class(class)?;
        let Some(only) = &how.only else { return Ok(class.eligible.iter().collect()) };
        let mut nodes: Vec<NodeId> = only.iter().copied().filter(|id| class.eligible.has(*id)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        Ok(nodes)
    }

    /// The nodes that must be part of the allocation; `None` where one of them is not part of the cluster.
    pub(crate) fn required(&self, class: &Class) -> Option<Vec<NodeId>> {
        class.need.request.node_list.iter().map(|name| self.names.get(name).copied()).collect()
    }

    /// What a node has room for in all of `[start, until)`.
    pub(crate) fn fit_in(&self, class: &Class, node: NodeId, start: Timestamp, until: Timestamp) -> Option<Fit> {
        let node = &self.nodes[node.0 as usize];
        let mut fit = None;
        // Less free never means more room, so that the first level without any settles it.
        node.profile.lowest_so_far(start, until, |lowest| {
            fit = class.fit(node, lowest);
            fit.is_some()
        });
        fit
    }

    /// An allocation on some of these nodes that is free in all of `[start, until)`; where there is none, the room that
    /// there is.
    pub(crate) fn place(
        &self,
        class: ClassId,
        nodes: &[NodeId],
        start: Timestamp,
        until: Timestamp,
        how: &Placing,
        work: &mut Work,
    ) -> Result<Result<Allocation, Room>, NoFit> {
        let (class, demand) = self.class(class)?;
        let (wishes, levels) = (Wishes::of(how), Levels::of(class, demand, how));
        let any_one = demand.most == 1 && demand.required == 0 && wishes.none() && !class.has_groups() && levels.none();
        let mut found: Vec<Candidate> = Vec::new();
        let mut room = Room::default();
        for id in nodes.iter().copied() {
            work.take(1)?;
            let Some(fit) = self.fit_in(class, id, start, until) else { continue };
            room.nodes += 1;
            room.tasks += u64::from(fit.tasks);
            room.gpus += u64::from(fit.gpus);
            let key = self.key(&self.nodes[id.0 as usize], id, start, &wishes);
            // One node is asked for, and none comes before the first one in use: no need to look on.
            let settled = any_one && fit.gpus >= demand.gpus_in_all && key.last() == Some(&0);
            if settled {
                found.clear();
            }
            found.push(Candidate { node: id, fit, key });
            if settled {
                break;
            }
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        let Some(required) = self.required(class) else { return Ok(Err(room)) };
        let item = |c: &Candidate| Item { fit: c.fit, required: required.contains(&c.node) };
        let items: Vec<Item> = found.iter().map(item).collect();
        let shapes: Vec<ShapeId> = found.iter().map(|c| self.nodes[c.node.0 as usize].shape).collect();
        let picks = self.pick_below(class, demand, &levels, &items, &shapes, work)?;
        let Some(picks) = picks else { return Ok(Err(room)) };
        let mut allocation = Allocation::default();
        for pick in picks {
            let node = found[pick.index].node;
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
            let devices = (0..shape.devices.len() as u32).collect();
            return AllocationPart { node: id, tasks: pick.tasks, amounts: shape.amounts_of(&node.capacity), devices };
        }
        let mut amounts = request.per_task().scaled(i64::from(pick.tasks));
        amounts.add(&request.per_node());
        if let GpuRequest::Total(_) = request.gpus {
            amounts.set(ResourceId::GPU, i64::from(pick.gpus) * WHOLE_GPU);
        }
        let gpus = (amounts.get(ResourceId::GPU) / WHOLE_GPU) as u32;
        let devices = match &class.fittings[node.shape.0 as usize] {
            Some(fitting) if gpus > 0 => {
                node.choose_devices(shape, &fitting.gpu_columns, &node.profile.lowest(start, until), gpus)
            }
            _ => SmallVec::new(),
        };
        AllocationPart { node: id, tasks: pick.tasks, amounts, devices }
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
