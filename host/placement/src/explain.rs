//! Why a class does not fit: how many nodes pass each condition, one by one.

use crate::choose::Item;
use crate::class::{Class, Memo, Refusal, Verdict};
use crate::cluster::Cluster;
use crate::demand::{Demand, Goal};
use crate::domains::{Levels, domain};
use crate::fit::Fit;
use crate::need::ClassId;
use crate::node::{Known, Node};
use crate::place::{Candidates, Room};
use crate::placing::Placing;
use crate::wording;
use crate::work::{NoFit, Work};
use ephor_model::id::NodeId;
use ephor_model::resource::{Amounts, ResourceId};
use ephor_model::time::Span;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Domains of a level that are named one by one.
const DOMAINS: usize = 16;

/// A condition that a node passes or not.
#[derive(Clone, Debug)]
enum Condition {
    NotExcluded,
    Up,
    Feature(String),
    /// Its features satisfy the constraint, or a part of it.
    Constraint,
    /// It is below a domain of the level that is asked for.
    Level(String),
    /// It has that much in all.
    Has(ResourceId, i64),
    /// Nothing else is held there.
    Empty,
    /// It has that much free.
    Free(ResourceId, i64),
}

/// Nodes that failed a condition, and the most that one of them had.
struct Failed {
    condition: Condition,
    nodes: u64,
    most: i64,
}

/// All nodes, put through conditions one after the other.
struct Sieve<'a> {
    class: &'a Class,
    nodes: u64,
    failed: Vec<Failed>,
    passed: Vec<NodeId>,
}

impl Cluster {
    /// How many nodes pass each condition of a class one by one, at the latest time told: one line for the nodes, one
    /// for each condition that some node does not pass, one for what is left.
    pub fn explain(&mut self, class: ClassId) -> Vec<String> {
        let (found, demand) = match self.class(class) {
            Ok(found) => found,
            Err(why) => return vec![why.to_string()],
        };
        let sieve = self.sieve(found, demand, true);
        let mut lines = vec![format!("asks for {}", found.asks), wording::count(sieve.nodes, "node")];
        lines.extend(sieve.failures());
        let mut room = Room::default();
        for id in &sieve.passed {
            let node = &self.nodes[id.0 as usize];
            let shape = &self.shapes[node.shape.0 as usize];
            let shared = found.can_share(node, shape, self.now, self.now + Span(1), self.now);
            if let Some(fit) = found.fit(node, node.profile.at(self.now), shared) {
                room.nodes += 1;
                room.tasks += u64::from(fit.tasks);
                room.gpus += u64::from(fit.gpus);
            }
        }
        lines.push(left(demand, room, "room now"));
        lines.extend(self.by_domain(found, demand, true));
        lines.extend(self.required_failures(found, &sieve.passed));
        lines
    }

    /// Why a class was not placed, where there was so much room.
    pub(crate) fn refusal(&mut self, class: ClassId, how: &Placing, room: Room) -> NoFit {
        if let Err(why) = self.ever(class) {
            return NoFit::Never(why);
        }
        let candidates = self.candidates(class, how);
        let (found, demand) = match self.class(class) {
            Ok(found) => found,
            Err(why) => return why,
        };
        let suitable = match candidates {
            Ok(Candidates::These(nodes)) => nodes.len(),
            _ => found.eligible.count(),
        };
        let numbers = Refusal { nodes: self.node_count(), suitable, room };
        if let Memo(Some((said, text))) = &found.refused
            && *said == numbers
        {
            return NoFit::NotNow(text.clone());
        }
        let mut text = format!(
            "{}: {} of {} up and suitable; {}",
            found.asks,
            numbers.suitable,
            wording::count(numbers.nodes as u64, "node"),
            left(demand, room, "room now")
        );
        if let Some(domains) = self.by_domain(found, demand, true) {
            text += "; ";
            text += &domains;
        }
        let text: Arc<str> = text.into();
        self.classes[class.0 as usize].refused = Memo(Some((numbers, text.clone())));
        NoFit::NotNow(text)
    }

    /// Whether a class could ever run.
    pub(crate) fn judge(&self, class: ClassId) -> Verdict {
        let (found, demand) = self.class(class).map_err(|why| match why {
            NoFit::Never(why) | NoFit::NotNow(why) => why,
            NoFit::Budget => why.to_string().into(),
        })?;
        if self.enough_when_empty(found, demand) {
            return Ok(());
        }
        if let Some(name) = found.need.request.node_list.iter().find(|name| !self.names.contains_key(*name)) {
            return Err(format!("node {name}, asked for by name, is not part of this cluster").into());
        }
        let required = self.required(found).unwrap_or_default();
        let mut room = Room::default();
        let mut items = Vec::new();
        let mut shapes = Vec::new();
        for (id, node, _) in self.known() {
            let Some(fit) = found.fit_empty(node) else { continue };
            room.nodes += 1;
            room.tasks += u64::from(fit.tasks);
            room.gpus += u64::from(fit.gpus);
            items.push(Item { fit, required: required.contains(&id) });
            shapes.push(node.shape);
        }
        let (how, mut unlimited) = (Placing::default(), Work::UNLIMITED);
        let levels = Levels::of(found, demand, &how);
        if let Ok(Some(_)) = self.pick_below(found, demand, &levels, &items, &shapes, &mut unlimited) {
            return Ok(());
        }
        let sieve = self.sieve(found, demand, false);
        let mut texts = vec![format!("asks for {}", found.asks), wording::count(sieve.nodes, "node")];
        texts.extend(sieve.failures());
        texts.push(left(demand, room, "room when empty"));
        texts.extend(self.by_domain(found, demand, false));
        texts.extend(self.required_failures(found, &sieve.passed));
        Err(texts.join("; ").into())
    }

    /// How much of a job each domain of the level that it asks for has room for, `now` or when empty, in the order of
    /// their names: `room below one rack: r1 2 of 4 tasks, r2 3 of 4 tasks`.
    fn by_domain(&self, class: &Class, demand: &Demand, now: bool) -> Option<String> {
        let level = class.need.request.topology.as_ref().filter(|level| level.required && demand.most > 1)?;
        let mut rooms: BTreeMap<&str, Room> = BTreeMap::new();
        for id in self.sieve(class, demand, now).passed {
            let node = &self.nodes[id.0 as usize];
            let shape = &self.shapes[node.shape.0 as usize];
            let Some(name) = domain(shape, &level.level) else { continue };
            let shared = || class.can_share(node, shape, self.now, self.now + Span(1), self.now);
            let fit = match now {
                true => class.fit(node, node.profile.at(self.now), shared()),
                false => class.fit_empty(node),
            };
            let room = rooms.entry(name).or_default();
            if let Some(fit) = fit {
                room.nodes += 1;
                room.tasks += u64::from(fit.tasks);
                room.gpus += u64::from(fit.gpus);
            }
        }
        let one = |(name, room): (&&str, &Room)| match demand.goal {
            Goal::Sum(tasks) => format!("{name} {} of {tasks} tasks", room.tasks.min(u64::from(tasks))),
            Goal::Each(_) if demand.gpus_in_all > 0 => format!("{name} {} of {} GPUs", room.gpus, demand.gpus_in_all),
            Goal::Each(_) => format!("{name} {} of {} nodes", room.nodes, demand.fewest),
        };
        let mut texts: Vec<String> = rooms.iter().take(DOMAINS).map(one).collect();
        if rooms.len() > DOMAINS {
            texts.push(format!("and {} more", rooms.len() - DOMAINS));
        }
        (!texts.is_empty()).then(|| format!("room below one {}: {}", level.level, texts.join(", ")))
    }

    /// Whether there is room, told from what the nodes are alike in. False may mean that it takes a closer look: where
    /// nodes are named or have to go together, or tasks and GPUs are both asked for in all.
    fn enough_when_empty(&self, class: &Class, demand: &Demand) -> bool {
        let request = &class.need.request;
        let gpus = u64::from(demand.gpus_in_all);
        let (weight, need): (fn(&Fit) -> u32, u64) = match demand.goal {
            Goal::Each(_) => (|fit| fit.gpus, gpus),
            Goal::Sum(tasks) => (|fit| fit.tasks, u64::from(tasks)),
        };
        let two_sums = gpus > 0 && matches!(demand.goal, Goal::Sum(_));
        let together = class.has_groups() || request.topology.as_ref().is_some_and(|topology| topology.required);
        if two_sums || together || !request.node_list.is_empty() || !request.exclude.is_empty() {
            return false;
        }
        let alike = class.empty.iter().zip(&self.node_classes);
        let mut offers: Vec<(u32, usize)> =
            alike.filter_map(|(fit, (_, nodes))| Some((weight(fit.as_ref()?), *nodes as usize))).collect();
        offers.sort_unstable_by(|a, b| b.cmp(a));
        let (mut nodes, mut sum) = (0, 0);
        for (each, count) in offers {
            let count = count.min(demand.most - nodes);
            nodes += count;
            sum += u64::from(each) * count as u64;
        }
        nodes >= demand.fewest && sum >= need
    }

    /// Puts every node through the conditions; `now`: those on what is up and free too.
    fn sieve<'a>(&self, class: &'a Class, demand: &Demand, now: bool) -> Sieve<'a> {
        let conditions = conditions(class, demand, now);
        let failed = conditions.into_iter().map(|condition| Failed { condition, nodes: 0, most: 0 }).collect();
        let mut sieve = Sieve { class, nodes: 0, failed, passed: Vec::new() };
        for (id, node, known) in self.known() {
            sieve.nodes += 1;
            let stopped = sieve.failed.iter().position(|f| !self.passes(class, node, known, &f.condition));
            match stopped {
                None => sieve.passed.push(id),
                Some(at) => {
                    let most = match sieve.failed[at].condition {
                        Condition::Has(id, _) => self.has(class, node, id, false),
                        Condition::Free(id, _) => self.has(class, node, id, true),
                        _ => 0,
                    };
                    let failed = &mut sieve.failed[at];
                    failed.nodes += 1;
                    failed.most = failed.most.max(most);
                }
            }
        }
        sieve
    }

    fn passes(&self, class: &Class, node: &Node, known: &Known, condition: &Condition) -> bool {
        match condition {
            Condition::NotExcluded => !class.need.request.exclude.contains(&known.name),
            Condition::Up => known.up,
            Condition::Feature(name) => self.shapes[node.shape.0 as usize].features.binary_search(name).is_ok(),
            Condition::Constraint => {
                let features = &self.shapes[node.shape.0 as usize].features;
                let nodes = class.demand.as_ref().map_or(1, |d| u32::try_from(d.fewest).unwrap_or(u32::MAX));
                class.need.request.constraint.as_ref().is_none_or(|c| c.admits(features, nodes))
            }
            Condition::Level(level) => domain(&self.shapes[node.shape.0 as usize], level).is_some(),
            Condition::Has(id, n) => self.has(class, node, *id, false) >= *n,
            Condition::Empty => node.profile.at(self.now).iter().zip(&node.capacity).all(|(free, all)| free >= all),
            Condition::Free(id, n) => self.has(class, node, *id, true) >= *n,
        }
    }

    /// How much a node has of a resource, in all or free: of GPUs those of the right kind.
    fn has(&self, class: &Class, node: &Node, id: ResourceId, free: bool) -> i64 {
        let shape = &self.shapes[node.shape.0 as usize];
        let level = if free { node.profile.at(self.now) } else { &node.capacity };
        if id != ResourceId::GPU {
            return shape.amount_of(level, id);
        }
        let fits = |kind: &usize| class.need.request.takes_gpu_type(&shape.kinds[*kind]);
        let whole = (0..shape.kinds.len()).filter(fits).map(|kind| level[shape.kind_column(kind)]).sum();
        if class.need.request.per_node().get(id) % 1000 == 0 || whole > 0 {
            return whole;
        }
        // A part of one is asked for: the most that is left of a GPU in shared use.
        let kind = |device: u32| shape.devices.get(device as usize).copied().flatten().map(usize::from);
        let left = node.left_of_shared(self.now).filter(|(device, _)| free && kind(*device).is_some_and(|k| fits(&k)));
        left.map(|(_, left)| left).max().unwrap_or(whole)
    }

    /// A line for each node that is asked for by name and did not pass.
    fn required_failures(&self, class: &Class, passed: &[NodeId]) -> Vec<String> {
        let names = class.need.request.node_list.iter();
        let missing = names.filter(|name| self.names.get(*name).is_none_or(|id| !passed.contains(id)));
        missing.map(|name| format!("node {name}, asked for by name, is not among them")).collect()
    }
}

impl Sieve<'_> {
    /// A text for each condition that some node failed.
    fn failures(&self) -> impl Iterator<Item = String> {
        self.failed.iter().filter(|f| f.nodes > 0).map(|f| self.failure(f))
    }

    fn failure(&self, failed: &Failed) -> String {
        let n = failed.nodes;
        let (is, lacks, has) = if n == 1 { ("is", "lacks", "has") } else { ("are", "lack", "have") };
        let gpu = self.class.need.request.gpu_types.as_slice();
        let too_little = |id: ResourceId, asked: i64, free: &str| {
            let (asked, most) = (wording::amount(id, asked), wording::amount(id, failed.most));
            let kind = if id == ResourceId::GPU { wording::of_types(gpu) } else { String::new() };
            format!("{n} {has} too little{free}: asks {asked}{kind}, most is {most}")
        };
        match &failed.condition {
            Condition::NotExcluded => format!("{n} {is} excluded by the request"),
            Condition::Up => format!("{n} {is} down or drained"),
            Condition::Feature(name) => format!("{n} {lacks} feature {name}"),
            Condition::Constraint => {
                let constraint = &self.class.need.request.constraint;
                let text = constraint.as_ref().map(ToString::to_string).unwrap_or_default();
                format!("{n} {lacks} the features {text}")
            }
            Condition::Level(level) => format!("{n} {is} below no {level}"),
            Condition::Has(ResourceId::GPU, _) if failed.most == 0 => format!("{n} {has} no {}", wording::gpu_of(gpu)),
            Condition::Has(id, asked) => too_little(*id, *asked, ""),
            Condition::Empty => format!("{n} {is} in use by others"),
            Condition::Free(id, asked) => too_little(*id, *asked, " free"),
        }
    }
}

/// What a node must pass to be of any use, the most lasting first.
fn conditions(class: &Class, demand: &Demand, now: bool) -> Vec<Condition> {
    let request = &class.need.request;
    let mut part: Amounts = request.per_task().scaled(i64::from(demand.least));
    part.add(&request.per_node());
    if demand.most == 1 && demand.gpus_in_all > 0 {
        part.set(ResourceId::GPU, i64::from(demand.gpus_in_all) * 1000);
    }
    let mut conditions = vec![Condition::NotExcluded];
    if now {
        conditions.push(Condition::Up);
    }
    conditions.extend(class.need.features().cloned().map(Condition::Feature));
    conditions.extend(request.constraint.as_ref().map(|_| Condition::Constraint));
    let level = request.topology.as_ref().filter(|topology| topology.required);
    conditions.extend(level.map(|topology| Condition::Level(topology.level.clone())));
    conditions.extend(part.iter().map(|(id, n)| Condition::Has(id, n)));
    if now && request.exclusive {
        conditions.push(Condition::Empty);
    } else if now {
        conditions.extend(part.iter().map(|(id, n)| Condition::Free(id, n)));
    }
    conditions
}

/// What is left, against what is needed: `1 node with room now, 4 needed`.
fn left(demand: &Demand, room: Room, what: &str) -> String {
    let mut text = format!("{} with {what}, {} needed", wording::count(room.nodes as u64, "node"), demand.fewest);
    if let Goal::Sum(tasks) = demand.goal
        && room.nodes > 0
        && room.tasks < u64::from(tasks)
    {
        text += &format!(", for {} of {tasks} tasks", room.tasks);
    }
    if room.nodes > 0 && room.gpus < u64::from(demand.gpus_in_all) {
        text += &format!(", with {} of {} GPUs", room.gpus, demand.gpus_in_all);
    }
    text
}
