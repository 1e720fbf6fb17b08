//! A request class: jobs with the same need, and what is worked out for them once.

use crate::bits::Bits;
use crate::cluster::Cluster;
use crate::demand::Demand;
use crate::fit::{Fit, Fitting};
use crate::groups::{self, Groups};
use crate::index::{Key, NOTHING};
use crate::need::{ClassId, Need};
use crate::node::{Node, NodeClass, NodeClassId};
use crate::place::{Among, Room};
use crate::placing::Placing;
use crate::profile::Level;
use crate::shape::Shape;
use crate::share::Wish;
use crate::wording;
use crate::work::{NoFit, Work};
use ephor_model::id::NodeId;
use ephor_model::resource::ResourceId;
use ephor_model::time::{Span, Timestamp};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// A remembered answer. Not part of the state: it shows as nothing.
#[derive(Clone, Default)]
pub(crate) struct Memo<T>(pub T);

impl<T> fmt::Debug for Memo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

/// Whether a class could ever run, and why not.
pub(crate) type Verdict = Result<(), Arc<str>>;

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
    /// The least that a node must have free to be of any use.
    pub floor: Key,
    /// For each shape: the request in its columns, where nodes of the shape can serve.
    pub fittings: Vec<Option<Fitting>>,
    /// For each shape: the groups of the constraint that its nodes satisfy.
    pub groups: Vec<Groups>,
    /// For each class of nodes: what one of them has room for when it is empty.
    pub empty: Vec<Option<Fit>>,
    /// Nodes that are up and, when empty, have room for a useful part.
    pub eligible: Bits,
    /// The verdict, and the revision of the nodes that it was reached on.
    pub verdict: Memo<Option<(u64, Verdict)>>,
    /// The last refusal in words, and the numbers in it: a backlog is refused by the thousand.
    pub refused: Memo<Option<(Refusal, Arc<str>)>>,
}

impl Class {
    fn new(need: &Need) -> Self {
        let required: BTreeSet<&String> = need.request.node_list.iter().collect();
        let demand = Demand::of(&need.request, required.len());
        Self {
            need: need.clone(),
            floor: demand.as_ref().map_or(NOTHING, |demand| floor(need, demand)),
            demand,
            asks: wording::request(&need.request),
            fittings: Vec::new(),
            groups: Vec::new(),
            empty: Vec::new(),
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

    /// Works out what one more class of nodes can serve.
    pub fn add_node_class(&mut self, nodes: &NodeClass) {
        let fitting = self.fittings[nodes.shape.0 as usize].as_ref();
        let demand = self.demand.as_ref().ok();
        let fit = demand.and_then(|demand| fitting?.fit(demand, &nodes.capacity, &nodes.capacity, false));
        self.empty.push(fit);
    }

    /// What a node with that much free has room for; `shared`: see [`Class::can_share`].
    pub fn fit(&self, node: &Node, level: &Level, shared: bool) -> Option<Fit> {
        let demand = self.demand.as_ref().ok()?;
        self.fittings[node.shape.0 as usize].as_ref()?.fit(demand, level, &node.capacity, shared)
    }

    /// Whether a GPU in shared use has enough left in all of `[start, until)` for the part of one that is asked for.
    pub fn can_share(&self, node: &Node, shape: &Shape, start: Timestamp, until: Timestamp, now: Timestamp) -> bool {
        self.shared_gpu(node, shape, start, until, now).is_some()
    }

    /// The device that [`Self::can_share`] found, or one of its kind where it is for later.
    pub fn shared_gpu(
        &self,
        node: &Node,
        shape: &Shape,
        start: Timestamp,
        until: Timestamp,
        now: Timestamp,
    ) -> Option<u32> {
        let milli = self.demand.as_ref().map_or(0, |demand| demand.share);
        let fitting =
            self.fittings[node.shape.0 as usize].as_ref().filter(|_| milli > 0 && !node.sharers.is_empty())?;
        let wish = Wish { milli, columns: &fitting.gpu_columns, start, until, now };
        node.shared_gpu(shape, &wish).map(|(_, device)| device)
    }

    /// What a node has room for when it is empty, up or not.
    pub fn fit_empty(&self, node: &Node) -> Option<Fit> {
        let known = node.known.as_ref()?;
        let fit = self.empty[node.class.0 as usize]?;
        (!self.need.request.exclude.contains(&known.name)).then_some(fit)
    }

    /// Works `eligible` out for all nodes.
    fn refresh_all(&mut self, nodes: &[Node], up: &[Option<NodeClassId>]) {
        let serves: Vec<bool> = self.empty.iter().map(Option::is_some).collect();
        let all = up.iter().map(|class| class.is_some_and(|class| serves[class.0 as usize]));
        self.eligible = all.collect();
        if !self.need.request.exclude.is_empty() {
            for (i, node) in nodes.iter().enumerate() {
                self.refresh(NodeId(i as u32), node);
            }
        }
    }

    /// Brings `eligible` up to date for one node.
    pub fn refresh(&mut self, id: NodeId, node: &Node) {
        let eligible = node.is_up() && self.fit_empty(node).is_some();
        self.eligible.set(id, eligible);
    }
}

/// The least of cores, memory and GPUs that makes a node useful. Where nothing is asked for, even less than none will do:
/// a node may be overdrawn.
fn floor(need: &Need, demand: &Demand) -> Key {
    let mut least = need.request.per_task().scaled(i64::from(demand.least));
    least.add(&need.request.per_node());
    let mut gpus = least.get(ResourceId::GPU);
    if demand.most == 1 {
        gpus = gpus.max(i64::from(demand.gpus_in_all) * 1000);
    }
    let of_one = i64::from(demand.share);
    // A part of a GPU is in what each node gives, and does not take a whole one.
    let gpus = if of_one > 0 { 0 } else { gpus };
    let floor = [least.get(ResourceId::CPU), least.get(ResourceId::MEM), gpus, of_one];
    floor.map(|n| if n > 0 { n } else { i64::MIN })
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
        self.node_classes.iter().for_each(|(nodes, _)| class.add_node_class(nodes));
        class.refresh_all(&self.nodes, &self.up);
        self.classes.push(class);
        self.class_ids.insert(need.clone(), id);
        id
    }

    /// Whether what is free on a node now could be of use to a class: false where it certainly could not.
    pub fn may_help(&self, class: ClassId, node: NodeId) -> bool {
        self.classes
            .get(class.0 as usize)
            .is_some_and(|class| class.eligible.has(node) && self.index.covers(node, &class.floor))
    }

    /// Whether a class has room at this very moment, beside what runs and what is kept from now on, for however short.
    ///
    /// # Errors
    /// The work units are used up.
    pub fn has_room_now(&self, class: ClassId, work: &mut Work) -> Result<bool, NoFit> {
        let until = self.now + Span(1);
        Ok(self.place(class, Among::Now, self.now, until, &Placing::default(), work)?.is_ok())
    }

    /// Why a class has no room at this very moment, as [`Cluster::has_room_now`] has it; `None`: it has some, or never
    /// could have any.
    ///
    /// # Errors
    /// The work units are used up.
    pub fn why_no_room_now(&mut self, class: ClassId, work: &mut Work) -> Result<Option<Arc<str>>, NoFit> {
        let (until, anywhere) = (self.now + Span(1), Placing::default());
        let lack = match self.place(class, Among::Now, self.now, until, &anywhere, work)? {
            Ok(_) => return Ok(None),
            Err(lack) => lack,
        };
        Ok(match self.refusal(class, &anywhere, lack.room) {
            NoFit::NotNow(why) => Some(why),
            NoFit::Never(_) | NoFit::Budget => None,
        })
    }

    /// Whether that class could ever run here, counting nodes that are down or drained as up and everything as free.
    ///
    /// # Errors
    /// It could not; the text says which limit is passed, in numbers.
    pub fn ever(&mut self, class: ClassId) -> Result<(), Arc<str>> {
        let Some(Class { verdict: Memo(verdict), .. }) = self.classes.get(class.0 as usize) else {
            return Err(format!("class {} is not known here", class.0).into());
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
