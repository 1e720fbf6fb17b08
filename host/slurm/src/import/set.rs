//! NodeSet lines: names for nodes that partitions may list.

use super::error::{Found, Wrong};
use super::hosts::Hosts;
use super::node::Nodes;
use super::report::Place;
use super::source::Statement;
use ephor_model::submit::hostlist;
use std::collections::{BTreeMap, BTreeSet};

/// A set of nodes.
#[derive(Debug, Default)]
pub(super) struct NodeSet {
    /// Where it stands.
    pub place: Option<Place>,
    /// The feature that all its nodes have, where nothing else makes a node one of them.
    pub feature: Option<String>,
    /// Its nodes, by their numbers.
    pub nodes: BTreeSet<usize>,
}

/// Sets by their names.
pub(super) type NodeSets = BTreeMap<String, NodeSet>;

/// Reads a line; all nodes are known by then.
pub(super) fn read(line: &mut Statement, nodes: &Nodes, sets: &mut NodeSets, hosts: &mut Hosts, found: &mut Found) {
    let mut set = NodeSet { place: Some(line.place.clone()), ..NodeSet::default() };
    for pair in &line.pairs {
        if !["NodeSet", "Feature", "Nodes"].iter().any(|key| pair.is(key)) {
            line.outcome.unknown(&pair.key);
        }
    }
    let feature = line.value("Feature").map(str::to_owned);
    if let Some(feature) = &feature {
        set.nodes.extend(nodes.with_feature(feature));
    }
    match line.value("Nodes") {
        Some(list) => {
            if let Some(members) = members(&line.place, list, nodes, &NodeSets::new(), hosts, found) {
                set.nodes.extend(members);
            }
        }
        None => set.feature = feature,
    }
    if !hosts.spend(&line.place, set.nodes.len(), found) {
        return;
    }
    let name = line.value("NodeSet").unwrap_or_default().to_owned();
    if let Some(first) = sets.get(&name).and_then(|set| set.place.clone()) {
        return found.add(&line.place, Wrong::Twice { kind: "node set", name, first });
    }
    line.outcome.take();
    sets.insert(name, set);
}

/// The nodes of a list that may name sets; `None`: it was wrong, and that is told.
pub(super) fn members(
    place: &Place,
    list: &str,
    nodes: &Nodes,
    sets: &NodeSets,
    hosts: &mut Hosts,
    found: &mut Found,
) -> Option<BTreeSet<usize>> {
    let mut out = BTreeSet::new();
    let mut strange = Vec::new();
    for name in hosts.expand(place, "Nodes", list, found)? {
        match (sets.get(&name), nodes.find(&name)) {
            (Some(set), _) => out.extend(&set.nodes),
            (None, Some(node)) => drop(out.insert(node)),
            (None, None) => strange.push(name),
        }
    }
    if strange.is_empty() {
        return hosts.spend(place, out.len(), found).then_some(out);
    }
    let names = super::error::short(&hostlist::fold(&strange));
    found.add(place, Wrong::UnknownNodes { key: "Nodes".into(), names });
    None
}
