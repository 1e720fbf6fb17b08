//! What happened: nodes that came, changed or left, jobs that started, ended or will end at another time.

use crate::cluster::Cluster;
use crate::index::NOTHING;
use crate::node::{Holder, Known, Node, NodeClass, NodeClassId, NodeView};
use crate::profile::{BEGINNING, Profile};
use crate::shape::{Shape, ShapeId};
use ephor_model::allocation::Allocation;
use ephor_model::id::{JobId, NodeId};
use ephor_model::time::{Span, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Takes the first of some timed things if its time has come.
fn pop_until<T: Copy + Ord>(
    timed: &mut BTreeMap<(Timestamp, T), Arc<Allocation>>,
    now: Timestamp,
) -> Option<((Timestamp, T), Arc<Allocation>)> {
    let first = timed.first_entry()?;
    (first.key().0 <= now).then(|| first.remove_entry())
}

impl Cluster {
    /// Says what time it is. A job that should have ended by then still holds what it has, and is counted as ending one
    /// millisecond later. Time that goes back is ignored. Not a planned change: it is never undone.
    ///
    /// Whether a reservation began or ended with that.
    pub fn advance(&mut self, now: Timestamp) -> bool {
        if now <= self.now {
            return false;
        }
        self.now = now;
        while let Some(((_, job), _)) = pop_until(&mut self.ends, now) {
            self.count_end(job, now + Span(1));
        }
        let mut turned = false;
        while let Some((_, allocation)) = pop_until(&mut self.turns, now) {
            allocation.parts.iter().for_each(|part| self.reindex(part.node));
            turned = true;
        }
        turned
    }

    /// A new node, or a changed one. What runs there stays.
    pub fn set_node(&mut self, id: NodeId, view: NodeView) {
        let (shape, capacity) = Shape::of(&view);
        let shape = self.intern_shape(shape);
        let class = self.intern_node_class(NodeClass { shape, capacity: capacity.clone() });
        let known = Known { name: view.name, up: view.up, capacity: view.capacity };
        let (node, _) = self.node_mut(id);
        let same_offer = node.known.as_ref().is_some_and(|k| k.name == known.name) && node.shape == shape;
        let changed = node.shape != shape || node.capacity != capacity;
        if changed || !same_offer {
            self.revision += 1;
        }
        let (node, _) = self.node_mut(id);
        let left = node.known.replace(known.clone());
        let old_class = std::mem::replace(&mut node.class, class);
        node.shape = shape;
        node.capacity = capacity;
        if left.is_some() {
            self.node_classes[old_class.0 as usize].1 -= 1;
        }
        self.node_classes[class.0 as usize].1 += 1;
        if changed {
            self.rebuild(id);
        }
        if let Some(old) = left.filter(|old| old.name != known.name) {
            self.forget_name(id, &old.name);
        }
        self.names.insert(known.name, id);
        self.refresh(id);
        self.reindex(id);
    }

    /// A node left the cluster. What runs there is kept, in case it comes back.
    pub fn remove_node(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(id.0 as usize) else { return };
        let Some(known) = node.known.take() else { return };
        self.node_classes[node.class.0 as usize].1 -= 1;
        self.revision += 1;
        self.forget_name(id, &known.name);
        self.refresh(id);
        self.reindex(id);
    }

    /// A job runs: it holds that until about then. In place of what the same job held before, planned or not.
    /// Of GPUs the devices count.
    pub fn occupy(&mut self, job: JobId, allocation: &Arc<Allocation>, until: Timestamp) {
        self.remove_running(job);
        self.add_running(job, Arc::clone(allocation), until, false);
    }

    /// A job holds nothing any more. One that is not known is ignored.
    pub fn vacate(&mut self, job: JobId) {
        self.remove_running(job);
    }

    /// A running job is expected to end at another time. One that is not known is ignored.
    pub fn extend(&mut self, job: JobId, until: Timestamp) {
        let Some(running) = self.running.get_mut(&job) else { return };
        running.until = until;
        let old = running.ends;
        self.ends.remove(&(old, job));
        self.count_end(job, until.max(self.now + Span(1)));
    }

    /// Counts a running job, taken out of `ends`, as ending at that time.
    fn count_end(&mut self, job: JobId, ends: Timestamp) {
        let Some(running) = self.running.get_mut(&job) else { return };
        let old = std::mem::replace(&mut running.ends, ends);
        let allocation = Arc::clone(&running.allocation);
        for part in &allocation.parts {
            let node = &mut self.nodes[part.node.0 as usize];
            let shape = &self.shapes[node.shape.0 as usize];
            node.profile.move_end(old, ends, &shape.level_of(part));
            node.move_sharer(shape, Holder::Job(job), ends);
        }
        if ends < Timestamp::NEVER {
            self.ends.insert((ends, job), Arc::clone(&allocation));
        }
        if old <= self.now {
            allocation.parts.iter().for_each(|part| self.reindex(part.node));
        }
    }

    /// Brings the index up to date for one node, after what it has free now may have changed.
    pub(crate) fn reindex(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get(id.0 as usize) else { return };
        if !node.is_up() {
            self.index.set(id, NOTHING, false);
            return;
        }
        let free = node.profile.at(self.now);
        let mut key = self.shapes[node.shape.0 as usize].key_of(free);
        if !node.sharers.is_empty() {
            let shape = &self.shapes[node.shape.0 as usize];
            let in_service = node.left_of_shared(self.now).filter(|(d, _)| shape.device_column(*d as usize).is_some());
            let left = in_service.map(|(_, left)| left).max().unwrap_or(0);
            key[3] = key[3].max(left);
        }
        self.index.set(id, key, *free == node.capacity);
    }

    /// A node and its shape. One that was never heard of is made, without being part of the cluster.
    pub(crate) fn node_mut(&mut self, id: NodeId) -> (&mut Node, &Shape) {
        let index = id.0 as usize;
        if index >= self.nodes.len() {
            self.nodes.resize_with(index + 1, Node::default);
        }
        let node = &mut self.nodes[index];
        let shape = &self.shapes[node.shape.0 as usize];
        (node, shape)
    }

    /// Works a node's profile out anew, after its columns or its capacity changed.
    fn rebuild(&mut self, id: NodeId) {
        let node = &mut self.nodes[id.0 as usize];
        let shape = &self.shapes[node.shape.0 as usize];
        let mut profile = Profile::new(node.capacity.clone());
        for holder in &node.holders {
            let (allocation, from, until) = match holder {
                Holder::Job(job) => match self.running.get(job) {
                    Some(r) => (&r.allocation, BEGINNING, r.ends),
                    None => continue,
                },
                Holder::Reservation(reservation) => match self.reservations.get(reservation) {
                    Some(r) => (&r.allocation, r.start, r.until),
                    None => continue,
                },
            };
            for part in allocation.parts.iter().filter(|p| p.node == id) {
                profile.hold(from, until, &shape.level_of(part));
            }
        }
        node.profile = profile;
        node.hold_groups(shape);
    }

    fn intern_shape(&mut self, shape: Shape) -> ShapeId {
        if let Some(id) = self.shape_ids.get(&shape) {
            return *id;
        }
        let id = ShapeId(self.shapes.len() as u32);
        self.classes.iter_mut().for_each(|class| class.add_shape(&shape));
        self.shapes.push(shape.clone());
        self.shape_ids.insert(shape, id);
        id
    }

    fn intern_node_class(&mut self, nodes: NodeClass) -> NodeClassId {
        if let Some(id) = self.node_class_ids.get(&nodes) {
            return *id;
        }
        let id = NodeClassId(self.node_classes.len() as u32);
        self.classes.iter_mut().for_each(|class| class.add_node_class(&nodes));
        self.node_classes.push((nodes.clone(), 0));
        self.node_class_ids.insert(nodes, id);
        id
    }

    /// Frees a name that a node had, unless another one has it by now.
    fn forget_name(&mut self, id: NodeId, name: &str) {
        if self.names.get(name) == Some(&id) {
            self.names.remove(name);
        }
    }

    /// Brings every class up to date on one node.
    fn refresh(&mut self, id: NodeId) {
        let node = &self.nodes[id.0 as usize];
        if self.up.len() < self.nodes.len() {
            self.up.resize(self.nodes.len(), None);
        }
        self.up[id.0 as usize] = node.is_up().then_some(node.class);
        self.classes.iter_mut().for_each(|class| class.refresh(id, node));
    }
}
