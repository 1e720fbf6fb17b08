//! The nodes, what runs on them and what is reserved; and plain questions about them.

use crate::class::Class;
use crate::index::Index;
use crate::need::{ClassId, Need};
use crate::node::{Known, Node, NodeClass, NodeClassId};
use crate::profile::BEGINNING;
use crate::shape::{Shape, ShapeId};
use crate::start::{Reservation, ReservationId, Running};
use crate::undo::Change;
use ephor_model::allocation::Allocation;
use ephor_model::id::{JobId, NodeId};
use ephor_model::resource::{Amounts, ResourceId};
use ephor_model::time::Timestamp;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

/// A set of nodes with everything that is held on them. Copies are independent.
///
/// Its `Debug` form shows the whole state: two clusters with equal text answer equally.
#[derive(Clone)]
pub struct Cluster {
    /// Latest time told. Jobs that should have ended by then are counted as ending one millisecond later.
    pub(crate) now: Timestamp,
    /// By node id; node ids are dense.
    pub(crate) nodes: Vec<Node>,
    pub(crate) names: BTreeMap<String, NodeId>,
    pub(crate) shapes: Vec<Shape>,
    pub(crate) shape_ids: BTreeMap<Shape, ShapeId>,
    /// What nodes are alike in, each with how many nodes of the cluster are so.
    pub(crate) node_classes: Vec<(NodeClass, u32)>,
    pub(crate) node_class_ids: BTreeMap<NodeClass, NodeClassId>,
    /// By node id: its class, where it is up.
    pub(crate) up: Vec<Option<NodeClassId>>,
    /// What is free now on each node that is up.
    pub(crate) index: Index,
    pub(crate) classes: Vec<Class>,
    /// Looked up, never walked.
    pub(crate) class_ids: HashMap<Need, ClassId, BuildHasherDefault<DefaultHasher>>,
    pub(crate) running: BTreeMap<JobId, Running>,
    /// What running jobs hold, by the end that is counted on; without those that never end.
    pub(crate) ends: BTreeMap<(Timestamp, JobId), Arc<Allocation>>,
    pub(crate) reservations: BTreeMap<ReservationId, Reservation>,
    /// What reservations hold, by when they begin and by when they end, as far as that lies ahead.
    pub(crate) turns: BTreeMap<(Timestamp, ReservationId), Arc<Allocation>>,
    pub(crate) next_reservation: u64,
    pub(crate) undo: Vec<Change>,
    /// Grows whenever the set of nodes or what one of them could offer changes.
    pub(crate) revision: u64,
}

impl Default for Cluster {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("now", &self.now)
            .field("nodes", &self.nodes)
            .field("names", &self.names)
            .field("shapes", &self.shapes)
            .field("node_classes", &self.node_classes)
            .field("classes", &self.classes)
            .field("running", &self.running)
            .field("ends", &self.ends)
            .field("reservations", &self.reservations)
            .field("turns", &self.turns)
            .field("next_reservation", &self.next_reservation)
            .field("undo", &self.undo)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// No nodes.
    pub fn new() -> Self {
        let unknown = Shape::default();
        Self {
            now: BEGINNING,
            nodes: Vec::new(),
            names: BTreeMap::new(),
            shapes: vec![unknown.clone()],
            shape_ids: BTreeMap::from([(unknown, ShapeId::default())]),
            node_classes: vec![(NodeClass::default(), 0)],
            node_class_ids: BTreeMap::from([(NodeClass::default(), NodeClassId::default())]),
            up: Vec::new(),
            index: Index::default(),
            classes: Vec::new(),
            class_ids: Default::default(),
            running: BTreeMap::new(),
            ends: BTreeMap::new(),
            reservations: BTreeMap::new(),
            turns: BTreeMap::new(),
            next_reservation: 0,
            undo: Vec::new(),
            revision: 0,
        }
    }

    /// The latest time that the cluster was told.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The nodes that are part of the cluster, ascending.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.known().map(|(id, _, _)| id)
    }

    /// How many nodes there are, down and drained ones included.
    pub fn node_count(&self) -> usize {
        self.names.len()
    }

    /// The node of that name.
    pub fn node_by_name(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }

    /// The name of a node; `None`: not part of the cluster.
    pub fn node_name(&self, id: NodeId) -> Option<&str> {
        Some(&self.nodes.get(id.0 as usize)?.known.as_ref()?.name)
    }

    /// Whether a node is part of the cluster and takes jobs.
    pub fn is_up(&self, id: NodeId) -> bool {
        self.nodes.get(id.0 as usize).is_some_and(Node::is_up)
    }

    /// What a node has in all, as it was described.
    pub fn capacity(&self, id: NodeId) -> Option<&Amounts> {
        Some(&self.nodes.get(id.0 as usize)?.known.as_ref()?.capacity)
    }

    /// What is free on a node at the latest time told, beside running jobs and reservations; of GPUs also what is left
    /// of those in shared use. Negative where facts took more than there is.
    pub fn free(&self, id: NodeId) -> Option<Amounts> {
        let node = self.nodes.get(id.0 as usize)?;
        node.known.as_ref()?;
        let shape = &self.shapes[node.shape.0 as usize];
        let mut free = shape.amounts_of(node.profile.at(self.now));
        let in_service =
            node.left_of_shared(self.now).filter(|(device, _)| shape.device_column(*device as usize).is_some());
        let left: i64 = in_service.map(|(_, left)| left).sum();
        free.set(ResourceId::GPU, free.get(ResourceId::GPU) + left);
        Some(free)
    }

    /// Thousandths free of each GPU of a node at the latest time told, by index: of those in shared use what is left, of
    /// those that a running job holds and of those out of service none. Reservations do not count: their devices are not
    /// decided.
    pub fn free_devices(&self, id: NodeId) -> Vec<i64> {
        let Some(node) = self.nodes.get(id.0 as usize).filter(|n| n.known.is_some()) else { return Vec::new() };
        let shape = &self.shapes[node.shape.0 as usize];
        let free = |device: u32| match shape.device_column(device as usize) {
            Some(_) => node.free_device(device, self.now),
            None => 0,
        };
        (0..shape.devices.len() as u32).map(free).collect()
    }

    /// The nodes that are up and have room for a useful part of a class when they are empty, ascending.
    pub fn suitable(&self, class: ClassId) -> impl Iterator<Item = NodeId> + '_ {
        self.classes.get(class.0 as usize).into_iter().flat_map(|class| class.eligible.iter())
    }

    /// The capacity of all nodes together, down and drained ones included.
    pub fn total_capacity(&self) -> Amounts {
        let mut all = Amounts::new();
        self.known().for_each(|(_, _, known)| all.add(&known.capacity));
        all
    }

    /// What is free on all nodes that are up together, as in [`Cluster::free`].
    pub fn total_free(&self) -> Amounts {
        let mut all = Amounts::new();
        self.node_ids().filter(|id| self.is_up(*id)).filter_map(|id| self.free(id)).for_each(|free| all.add(&free));
        all
    }

    /// Whether that job holds something.
    pub fn is_running(&self, job: JobId) -> bool {
        self.running.contains_key(&job)
    }

    /// How many jobs hold something.
    pub fn running_count(&self) -> usize {
        self.running.len()
    }

    /// When a running job is expected to end, as told.
    pub fn expected_end(&self, job: JobId) -> Option<Timestamp> {
        self.running.get(&job).map(|r| r.until)
    }

    /// The nodes that a running job holds something on; none where it is not known.
    pub fn nodes_of(&self, job: JobId) -> Vec<NodeId> {
        self.running.get(&job).map_or_else(Vec::new, |r| r.allocation.parts.iter().map(|p| p.node).collect())
    }

    /// The need that a class stands for.
    pub fn need(&self, class: ClassId) -> Option<&Need> {
        self.classes.get(class.0 as usize).map(|c| &c.need)
    }

    /// Nodes that are part of the cluster, with what is known of them.
    pub(crate) fn known(&self) -> impl Iterator<Item = (NodeId, &Node, &Known)> {
        let numbered = self.nodes.iter().enumerate();
        numbered.filter_map(|(i, node)| Some((NodeId(i as u32), node, node.known.as_ref()?)))
    }
}
