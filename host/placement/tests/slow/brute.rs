//! Choosing nodes by looking at every set of them.

use super::twin::gpus_in_all;
use ephor_model::id::NodeId;
use ephor_model::request::Request;
use std::collections::BTreeSet;

/// What a node offers.
#[derive(Clone, Debug)]
pub struct Offer {
    pub node: NodeId,
    pub tasks: u32,
    pub gpus: u32,
    pub required: bool,
    pub key: Vec<i64>,
}

/// The nodes chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub nodes: Vec<NodeId>,
    /// Tasks on each.
    pub tasks: Vec<u32>,
    /// Whether the rule leaves no other choice of that many nodes.
    pub only_one: bool,
}

/// The first set in the order of the keys among the smallest sets that do.
///
/// `serves` says whether a set of nodes has what is demanded of them together.
pub fn choose(request: &Request, mut offers: Vec<Offer>, serves: &dyn Fn(&[&Offer]) -> bool) -> Option<Choice> {
    if request.contradiction().is_some() {
        return None;
    }
    offers.sort_by(|a, b| a.key.cmp(&b.key).then(a.node.cmp(&b.node)));
    let named: BTreeSet<&String> = request.node_list.iter().collect();
    let fewest = (request.nodes_min as usize).max(named.len());
    let most = request.nodes_max.map_or(usize::MAX, |n| n as usize);
    let gpus = gpus_in_all(request);
    let mut best: Option<Vec<usize>> = None;
    for set in 1_u32..1 << offers.len() {
        let places: Vec<usize> = (0..offers.len()).filter(|i| set >> i & 1 == 1).collect();
        let chosen = || places.iter().map(|i| &offers[*i]);
        let enough_tasks = match request.tasks {
            Some(tasks) => places.len() <= tasks as usize && chosen().map(|o| o.tasks).sum::<u32>() >= tasks,
            None => chosen().all(|o| o.tasks >= request.tasks_per_node.unwrap_or(1)) && places.len() == fewest,
        };
        let does = (fewest..=most).contains(&places.len())
            && enough_tasks
            && chosen().map(|o| o.gpus).sum::<u32>() >= gpus
            && chosen().filter(|o| o.required).count() == named.len()
            && serves(&chosen().collect::<Vec<_>>());
        let better = |old: &Vec<usize>| (places.len(), &places) < (old.len(), old);
        if does && best.as_ref().is_none_or(better) {
            best = Some(places);
        }
    }
    let places = best?;
    let mut left = request.tasks.unwrap_or(0);
    let mut parts: Vec<(NodeId, u32)> = Vec::new();
    for (done, i) in places.iter().enumerate() {
        let later = (places.len() - done - 1) as u32;
        let tasks = match request.tasks {
            Some(_) => offers[*i].tasks.min(left - later),
            None => request.tasks_per_node.unwrap_or(1),
        };
        left = left.saturating_sub(tasks);
        parts.push((offers[*i].node, tasks));
    }
    parts.sort_unstable();
    let (nodes, tasks) = parts.into_iter().unzip();
    Some(Choice { nodes, tasks, only_one: request.tasks.is_none() || gpus == 0 })
}
