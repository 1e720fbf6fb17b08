//! A request class: jobs with the same need, and what is worked out for them once.

use crate::bits::Bits;
use crate::cluster::Cluster;
use crate::demand::Demand;
use crate::fit::{Fit, Fitting};
use crate::groups::{self, Groups};
use crate::need::{ClassId, Need};
use crate::node::Node;
use crate::place::Room;
use crate::profile::Level;
use crate::shape::Shape;
use crate::wording;
use ephor_model::id::NodeId;
use std::collections::BTreeSet;
use std::fmt;

/// A remembered answer. Not part of the state: it shows as nothing.
#[derive(Clone, Default)]
pub(crate) struct Memo<T>(pub T);

impl<T> fmt::Debug for Memo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

/// Whether a class could ever run, and why not.
pub(crate) type Verdict = Result<(), String>;

/// The numbers of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Nodes of the cluster.
    pub nodes: usize,
    /// Those of them that are up, suitable, and allowed.
    pub suitable: usize,
    /// What they have room for.
    pub room: Room,
}

/// A request class.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub need: Need,
    /// The request in numbers, or how it contradicts itself.
    pub demand: Result<Demand, String>,
    /// The request in words.
    pub asks: String,
    /// For each shape: the request in its columns, where nodes of the shape can serve.
    pub fittings: Vec<Option<Fitting>>,
    /// For each shape: the groups of the constraint that its nodes satisfy.
    pub groups: Vec<Groups>,
    /// Nodes that are up and, when empty, have room for a useful part.
    pub eligible: Bits,
    /// The verdict, and the revision of the nodes that it was reached on.
    pub verdict: Memo<Option<(u64, Verdict)>>,
    /// The last refusal in words, and the numbers in it: a backlog is refused by the thousand.
    pub refused: Memo<Option<(Refusal, String)>>,
}

impl Class {
    fn new(need: &Need) -> Self {
        let required: BTreeSet<&String> = need.request.node_list.iter().collect();
        Self {
            need: need.clone(),
            demand: Demand::of(&need.request, required.len()),
            asks: wording::request(&need.request),
            fittings: Vec::new(),
            groups: Vec::new(),
            eligible: Bits::default(),
            verdict: Memo::default(),
            refused: Memo::default(),
        }
    }

    /// Works out the columns of one more shape.
    pub fn add_shape(&mut self, shape: &Shape) {
        let fitting = self.demand.as_ref().ok().and_then(|demand| Fitting::of(&self.need, demand, shape));
        self.fittings.push(fitting);
        self.groups.push(groups::of_shape(self.need.request.constraint.as_ref(), shape));
    }

    /// What a node with that much free has room for.
    pub fn fit(&self, node: &Node, level: &Level) -> Option<Fit> {
        let demand = self.demand.as_ref().ok()?;
        self.fittings[node.shape.0 as usize].as_ref()?.fit(demand, level, &node.capacity)
    }

    /// What a node has room for when it is empty, up or not.
    pub fn fit_empty(&self, node: &Node) -> Option<Fit> {
        let known = node.known.as_ref()?;
        if self.need.request.exclude.contains(&known.name) {
            return None;
        }
        self.fit(node, &node.capacity)
    }

    /// Brings `eligible` up to date for one node.
    pub fn refresh(&mut self, id: NodeId, node: &Node) {
        let eligible = node.is_up() && self.fit_empty(node).is_some();
        self.eligible.set(id, eligible);
    }
}

impl Cluster {
    /// The class of a need; a new one is worked out for every node.
    pub fn intern(&mut self, need: &Need) -> ClassId {
        if let Some(id) = self.class_ids.get(need) {
            return *id;
        }
        let id = ClassId(self.classes.len() as u32);
        let mut class = Class::new(need);
        self.shapes.iter().for_each(|shape| class.add_shape(shape));
        for (i, node) in self.nodes.iter().enumerate() {
            class.refresh(NodeId(i as u32), node);
        }
        self.classes.push(class);
        self.class_ids.insert(need.clone(), id);
        id
    }

    /// Whether that class could ever run here, counting nodes that are down or drained as up and everything as free.
    ///
    /// # Errors
    /// It could not; the text says which limit is passed, in numbers.
    pub fn ever(&mut self, class: ClassId) -> Result<(), String> {
        let Some(Class { verdict: Memo(verdict), .. }) = self.classes.get(class.0 as usize) else {
            return Err(format!("class {} is not known here", class.0));
        };
        if let Some((revision, verdict)) = verdict
            && *revision == self.revision
        {
            return verdict.clone();
        }
        let verdict = self.judge(class);
        self.classes[class.0 as usize].verdict = Memo(Some((self.revision, verdict.clone())));
        verdict
    }
}
