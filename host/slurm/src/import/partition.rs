//! PartitionName lines: each becomes a queue.

use super::error::{Found, Wrong, short};
use super::hosts::{Hosts, is_name};
use super::known::{self, PARTITION};
use super::node::Nodes;
use super::pairs::Pair;
use super::report::{Outcome, Place};
use super::set::{self, NodeSets};
use super::source::Statement;
use super::value::{count, unlimited, yes_or_no};
use crate::value::{memory, time};
use ephor_model::{Queue, QueueState, Span};
use std::collections::BTreeMap;

/// Before the name of a queue: the feature by which it finds its nodes.
const FEATURE: &str = "partition-";

/// All queues, in the order of the files.
#[derive(Debug, Default)]
pub(super) struct Queues {
    pub all: Vec<Queue>,
    by_name: BTreeMap<String, Place>,
    tiers: Vec<Option<i64>>,
    defaults: BTreeMap<String, String>,
}

impl Queues {
    /// Reads a line; all nodes and sets are known by then. `memory` is what `slurm.conf` says for all partitions.
    pub fn read(
        &mut self,
        line: &mut Statement,
        memory: Option<u64>,
        nodes: &mut Nodes,
        sets: &NodeSets,
        hosts: &mut Hosts,
        found: &mut Found,
    ) {
        for pair in &line.pairs {
            if known::note(PARTITION, pair, &mut line.outcome) {
                note(pair, &mut line.outcome);
            }
        }
        let Some(name) = line.value("PartitionName").map(str::to_owned) else { return };
        let own = line.pairs.iter().map(|pair| (pair.lower(), pair.value.clone()));
        if name.eq_ignore_ascii_case("DEFAULT") {
            self.defaults.extend(own);
            let _ = Keys { all: &self.defaults, line, found }.queue(&name, memory);
            return line.outcome.take();
        }
        let feature = format!("{FEATURE}{name}");
        if !is_name(&name) || !is_name(&feature) {
            return found.add(&line.place, Wrong::Name { kind: "queue", name: short(&name) });
        }
        if let Some(first) = self.by_name.get(&name).cloned() {
            return found.add(&line.place, Wrong::Twice { kind: "partition", name, first });
        }
        let mut keys = self.defaults.clone();
        keys.extend(own);
        let (mut queue, tier) = Keys { all: &keys, line, found }.queue(&name, memory);
        let list = keys.get("nodes").map_or("", String::as_str);
        let Some(features) = bind(&feature, list, line, nodes, sets, hosts, found) else { return };
        line.outcome.take_as(match features.as_slice() {
            [] => format!("queue {name} on all nodes"),
            features => format!("queue {name} on nodes with the feature {}", features.join(", ")),
        });
        queue.node_features = features;
        if queue.default_time.is_none() && queue.max_time.is_none() {
            line.outcome.near(
                "DefaultTime",
                "jobs that name no time limit get that of admission-defaults, `default_time_minutes`: an hour",
            );
        }
        self.all.push(queue);
        self.by_name.insert(name.clone(), line.place.clone());
        self.tiers.push(tier);
    }

    /// Settles what hangs on all queues together: their order, and which one is the default. Lines that lose by it are
    /// given back with the reason.
    pub fn settle(&mut self) -> BTreeMap<Place, String> {
        // A partition that says nothing has tier 1, which matters as soon as another has one.
        if self.tiers.iter().any(Option::is_some) {
            for (queue, tier) in self.all.iter_mut().zip(&self.tiers) {
                queue.priority = tier.unwrap_or(1);
            }
        }
        let Some(last) = self.all.iter().rposition(|queue| queue.default) else { return BTreeMap::new() };
        let chosen = self.all.get(last).map(|queue| queue.name.clone()).unwrap_or_default();
        let mut lost = BTreeMap::new();
        for queue in self.all.iter_mut().take(last).filter(|queue| queue.default) {
            queue.default = false;
            let why = format!("partition {chosen} is the default, since it comes later");
            lost.extend(self.by_name.get(&queue.name).map(|place| (place.clone(), why)));
        }
        lost
    }
}

/// The features by which a queue finds its nodes, and which they then have; `None`: the list was wrong.
fn bind(
    feature: &str,
    list: &str,
    line: &mut Statement,
    nodes: &mut Nodes,
    sets: &NodeSets,
    hosts: &mut Hosts,
    found: &mut Found,
) -> Option<Vec<String>> {
    if list.split(',').any(|part| part.trim().eq_ignore_ascii_case("ALL")) {
        return Some(Vec::new());
    }
    // The feature of a set binds nodes that come later too, as it does in Slurm.
    if let Some(feature) = sets.get(list.trim()).and_then(|set| set.feature.clone()).filter(|name| is_name(name)) {
        return Some(vec![feature]);
    }
    if list.is_empty() {
        line.outcome.near("Nodes", format!("no node is in it; give nodes the feature {feature}"));
        return Some(vec![feature.to_owned()]);
    }
    let members = set::members(&line.place, list, nodes, sets, hosts, found)?;
    if nodes.with_feature(feature).next().is_some() {
        found.add(&line.place, Wrong::Clash(feature.to_owned()));
        return None;
    }
    members.iter().for_each(|node| nodes.add_feature(*node, feature));
    Some(vec![feature.to_owned()])
}

/// The keys of a partition, its own and those of the DEFAULT lines before it.
struct Keys<'a> {
    all: &'a BTreeMap<String, String>,
    line: &'a Statement,
    found: &'a mut Found,
}

impl Keys<'_> {
    /// What the keys say, but for the nodes; and its tier, where it has one.
    fn queue(mut self, name: &str, memory: Option<u64>) -> (Queue, Option<i64>) {
        let tier = self.read("PriorityTier", count).or_else(|| self.read("Priority", count)).map(i64::from);
        let own = ["defmempernode", "defmempergpu"].iter().any(|key| self.all.contains_key(*key));
        let queue = Queue {
            name: name.to_owned(),
            weight: 1,
            state: self.read("State", state).unwrap_or_default(),
            default: self.read("Default", yes_or_no).unwrap_or_default(),
            default_time: self.read("DefaultTime", default_time).flatten(),
            max_time: self.read("MaxTime", limit).flatten(),
            max_nodes: self.read("MaxNodes", most).flatten(),
            default_mem_per_cpu: match self.read("DefMemPerCPU", mib) {
                Some(own) => own,
                None if own => None,
                None => memory,
            },
            ..Queue::default()
        };
        (queue, tier)
    }

    /// Reads a value. What is wrong with a default was told where it stands.
    fn read<T>(&mut self, key: &str, how: fn(&str) -> Result<T, &'static str>) -> Option<T> {
        let value = self.all.get(&key.to_ascii_lowercase())?;
        let tell = |why| {
            if self.line.value(key).is_some() {
                self.found.value(&self.line.place, key, value, why);
            }
        };
        how(value).map_err(tell).ok()
    }
}

fn state(text: &str) -> Result<QueueState, &'static str> {
    match text.to_ascii_lowercase().as_str() {
        "up" => Ok(QueueState::Open),
        "down" => Ok(QueueState::Stopped),
        "drain" => Ok(QueueState::Draining),
        "inactive" => Ok(QueueState::Closed),
        _ => Err("write UP, DOWN, DRAIN or INACTIVE"),
    }
}

fn limit(text: &str) -> Result<Option<Span>, &'static str> {
    time::parse(text).ok_or("write a time like 90, 1:30:00, 2-0 or 2-12:00:00, or UNLIMITED")
}

fn default_time(text: &str) -> Result<Option<Span>, &'static str> {
    if text.eq_ignore_ascii_case("none") { Ok(None) } else { limit(text) }
}

fn most(text: &str) -> Result<Option<u32>, &'static str> {
    if unlimited(text) { Ok(None) } else { count(text).map(|n| Some(n).filter(|n| *n > 0)) }
}

/// Memory for each core, in MiB; 0 is no amount.
pub(super) fn mib(text: &str) -> Result<Option<u64>, &'static str> {
    if unlimited(text) {
        return Ok(None);
    }
    memory::parse(text).map(|mib| Some(mib).filter(|mib| *mib > 0)).ok_or("write MiB as a whole number, such as 2000")
}

/// What the keys become that are read here.
fn note(pair: &Pair, outcome: &mut Outcome) {
    let value = pair.value.to_ascii_lowercase();
    let whole = value.split(':').next().unwrap_or_default();
    match pair.lower().as_str() {
        "maxtime" | "defaulttime" if value.bytes().all(|b| b == b'0') => {
            outcome.near(&pair.key, "0 is no time; the queue has none");
        }
        "maxnodes" if value == "0" => {
            outcome.near(&pair.key, "0 nodes cannot be said; `state = \"stopped\"` starts no jobs");
        }
        "defmempercpu" if value == "0" => outcome.near(&pair.key, NO_AMOUNT),
        "defmempernode" | "defmempergpu" => outcome.nothing(
            &pair.key,
            "memory that a job does not name is set for each core: `default_mem_per_cpu` of the queue",
        ),
        "oversubscribe" | "shared" => match whole {
            "no" => outcome.take(),
            "exclusive" => outcome.nothing(
                &pair.key,
                "users ask for whole nodes with --exclusive, or an admission policy does for them (set-exclusive)",
            ),
            _ => outcome.nothing(&pair.key, "cores are granted to one job at a time"),
        },
        _ => {}
    }
}

/// What becomes of a DefMemPerCPU of 0.
pub(super) const NO_AMOUNT: &str = "0 is no amount; jobs that name none get the node's memory shared out by cores";
