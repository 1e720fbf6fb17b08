//! `sinfo`.

use super::{connect, help, shown, variable, version};
use crate::connect::Controller;
use crate::output;
use ephor_model::{Span, Timestamp};
use ephor_proto::v1::{Amount, Empty, Node, QueueObject};
use ephor_slurm::columns;
use ephor_slurm::json;
use ephor_slurm::sinfo::{self, NodeState, NodeView, PartitionView, Query, unknown_field};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::rc::Rc;

pub(super) fn run(words: &[String]) -> anyhow::Result<ExitCode> {
    let query = Query::read(words, variable)?;
    if query.version {
        return version();
    }
    if query.help {
        return help(&sinfo::help());
    }
    let Cluster { partitions, nodes } = Cluster::ask(&mut connect()?)?;
    if query.json {
        output::raw(json::node::nodes(&query, &partitions, &nodes).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let longest = |names: &mut dyn Iterator<Item = usize>| names.max().unwrap_or(0);
    let format = query.pieces(
        longest(&mut nodes.iter().map(|node| node.name.len())),
        longest(&mut partitions.iter().map(|partition| partition.name.len() + usize::from(partition.default))),
    );
    format.unknown.iter().for_each(|name| output::problem(&unknown_field(name)));
    let shown = shown();
    let mut text = String::new();
    if query.heading {
        if query.long && query.format.is_none() && query.long_format.is_none() {
            text.push_str(&format!("{}\n", shown.date_line()));
        }
        text.push_str(&columns::heading(&format.pieces));
        text.push('\n');
    }
    for group in query.groups(&format.pieces, &partitions, &nodes, &shown) {
        text.push_str(&columns::row(&format.pieces, &group, &shown));
        text.push('\n');
    }
    output::raw(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// All partitions and nodes, as rows.
pub(super) struct Cluster {
    pub(super) partitions: Vec<Rc<PartitionView>>,
    pub(super) nodes: Vec<Rc<NodeView>>,
}

impl Cluster {
    /// Asks the controller.
    pub(super) fn ask(controller: &mut Controller) -> anyhow::Result<Self> {
        let nodes = controller.call(async |c| c.list_nodes(Empty {}).await)?.nodes;
        let queues = controller.call(async |c| c.list_queues(Empty {}).await)?.queues;
        let objects = queues.iter().filter_map(|view| view.queue.as_ref());
        let partitions = objects.map(|queue| Rc::new(partition(queue, &nodes))).collect();
        Ok(Self { partitions, nodes: nodes.iter().map(|node| Rc::new(view(node))).collect() })
    }
}

fn partition(queue: &QueueObject, nodes: &[Node]) -> PartitionView {
    let inside = |node: &Node| queue.node_features.iter().all(|feature| node.features.contains(feature));
    let available = match queue.state.as_str() {
        "open" => "up",
        "draining" => "drain",
        "stopped" => "down",
        _ => "inact",
    };
    PartitionView {
        name: queue.name.clone(),
        default: queue.default,
        available,
        max_time: queue.max_time.map(Span),
        default_time: queue.default_time.map(Span),
        max_nodes: queue.max_nodes,
        priority: queue.priority,
        default_mem_per_cpu: queue.default_mem_per_cpu,
        nodes: nodes.iter().enumerate().filter(|(_, node)| inside(node)).map(|(at, _)| at).collect(),
    }
}

fn amount(amounts: &[Amount], resource: &str) -> i64 {
    amounts.iter().find(|amount| amount.resource == resource).map_or(0, |amount| amount.value)
}

fn view(node: &Node) -> NodeView {
    let mut gpus: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for device in &node.devices {
        let kind = if device.kind == "gpu" { "" } else { device.kind.as_str() };
        let (all, used) = gpus.entry(kind).or_default();
        *all += 1;
        *used += u32::from(device.used || device.held > 0);
    }
    NodeView {
        name: node.name.clone(),
        address: node.address.clone(),
        state: NodeState::read(&node.state),
        cpus: amount(&node.capacity, "cpu") / 1000,
        cpus_used: (amount(&node.allocated, "cpu") + 999) / 1000,
        memory: amount(&node.capacity, "mem"),
        memory_used: amount(&node.allocated, "mem"),
        gpus: gpus.into_iter().map(|(kind, (all, used))| (kind.to_owned(), all, used)).collect(),
        features: node.features.clone(),
        reason: node.reason.clone(),
        reason_by: node.reason_by.clone(),
        reason_since: node.reason_since.map(Timestamp),
        version: node.agent_version.clone(),
    }
}
