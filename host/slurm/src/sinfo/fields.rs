//! The fields of nodes and partitions that `sinfo` can show, by letter and by name.

use super::{Group, NodeState, NodeView};
use crate::columns::{Column, natural};
use crate::show::Shown;
use crate::value::time;
use ephor_model::submit::hostlist;
use ephor_model::{Span, limits};

type Value = fn(&Group, &Shown) -> String;

const fn field(code: char, long: &'static str, heading: &'static str, value: Value) -> Column<Group> {
    Column { code: Some(code), long, heading, value }
}

const fn named(long: &'static str, heading: &'static str, value: Value) -> Column<Group> {
    Column { code: None, long, heading, value }
}

/// Whether a field is about the partition alone.
pub fn is_of_partition<R>(column: &Column<R>) -> bool {
    ["partition", "partitionname", "available", "time", "defaulttime", "size", "root", "oversubscribe", "groups"]
        .contains(&column.long)
        || ["allocnodes", "prioritytier", "priorityjobfactor", "preemptmode", "maxcpuspernode"].contains(&column.long)
}

/// Whether a field is about all nodes of a line together, so that it does not part them.
pub fn is_of_group<R>(column: &Column<R>) -> bool {
    ["nodelist", "nodes", "nodeai", "nodeaiot", "cpusstate"].contains(&column.long)
}

/// What every node says; several texts are never on one line.
fn each(group: &Group, text: impl Fn(&NodeView) -> String) -> String {
    group.nodes.first().map_or_else(|| "n/a".into(), |node| text(node))
}

/// A number: the smallest of the nodes, and `+` where others have more.
fn least(group: &Group, number: impl Fn(&NodeView) -> i64) -> String {
    let all = || group.nodes.iter().map(|node| number(node));
    match (all().min(), all().max()) {
        (Some(least), Some(most)) if least != most => format!("{least}+"),
        (least, _) => least.unwrap_or(0).to_string(),
    }
}

fn partition(group: &Group, text: impl Fn(&super::PartitionView) -> String) -> String {
    group.partition.as_deref().map_or_else(String::new, text)
}

fn limit(limit: Option<Span>) -> String {
    match limit.filter(|span| span.0 < limits::TIME_LIMIT_MS) {
        Some(span) => time::short(span),
        None => "infinite".into(),
    }
}

/// GPUs by type: all, or those in use.
pub fn gres(node: &NodeView, used: bool) -> String {
    let one = |(kind, all, busy): &(String, u32, u32)| {
        let n = if used { busy } else { all };
        if kind.is_empty() { format!("gpu:{n}") } else { format!("gpu:{kind}:{n}") }
    };
    let all: Vec<String> = node.gpus.iter().map(one).collect();
    match (all.is_empty(), used) {
        (false, _) => all.join(","),
        (true, true) => "gpu:0".into(),
        (true, false) => "(null)".into(),
    }
}

/// Whether the node's cores can be used, or would count as another kind.
fn takes_jobs(state: NodeState) -> bool {
    matches!(state, NodeState::Idle | NodeState::Mixed | NodeState::Allocated)
}

/// Cores allocated, idle, otherwise and in all.
fn cpus(group: &Group) -> String {
    let (mut used, mut idle, mut other) = (0, 0, 0);
    for node in &group.nodes {
        used += node.cpus_used;
        let rest = node.cpus - node.cpus_used;
        if takes_jobs(node.state) { idle += rest } else { other += rest }
    }
    format!("{used}/{idle}/{other}/{}", used + idle + other)
}

/// Nodes allocated, idle, otherwise and in all.
fn nodes(group: &Group) -> (usize, usize, usize) {
    let count = |wanted: fn(NodeState) -> bool| group.nodes.iter().filter(|node| wanted(node.state)).count();
    let used = count(|s| matches!(s, NodeState::Allocated | NodeState::Mixed | NodeState::Draining));
    let idle = count(|s| s == NodeState::Idle);
    (used, idle, group.nodes.len() - used - idle)
}

fn names(group: &Group) -> String {
    let all: Vec<&str> = group.nodes.iter().map(|node| node.name.as_str()).collect();
    hostlist::fold(&all)
}

fn hosts(group: &Group) -> String {
    let mut all: Vec<&str> = group.nodes.iter().map(|node| node.name.as_str()).collect();
    all.sort_by(|a, b| natural(a, b));
    all.join(",")
}

fn features(group: &Group, _: &Shown) -> String {
    each(group, |node| if node.features.is_empty() { "(null)".into() } else { node.features.join(",") })
}

fn sizes(group: &Group, _: &Shown) -> String {
    partition(group, |p| p.max_nodes.map_or_else(|| "1-infinite".into(), |max| format!("1-{max}")))
}

/// Every field.
#[rustfmt::skip]
pub const FIELDS: &[Column<Group>] = &[
    field('a', "available", "AVAIL", |g, _| partition(g, |p| p.available.into())),
    field('A', "nodeai", "NODES(A/I)", |g, _| { let (used, idle, _) = nodes(g); format!("{used}/{idle}") }),
    field('b', "features_act", "ACTIVE_FEATURES", features),
    field('B', "maxcpuspernode", "MAX_CPUS_PER_NODE", |_, _| "UNLIMITED".into()),
    field('c', "cpus", "CPUS", |g, _| least(g, |n| n.cpus)),
    field('C', "cpusstate", "CPUS(A/I/O/T)", |g, _| cpus(g)),
    field('d', "disk", "TMP_DISK", |_, _| "0".into()),
    field('D', "nodes", "NODES", |g, _| g.nodes.len().to_string()),
    field('e', "freemem", "FREE_MEM", |g, _| least(g, |n| n.memory - n.memory_used)),
    field('E', "reason", "REASON", |g, _| each(g, |n| if n.reason.is_empty() { "none".into() } else { n.reason.clone() })),
    field('f', "features", "AVAIL_FEATURES", features),
    field('F', "nodeaiot", "NODES(A/I/O/T)", |g, _| { let (a, i, o) = nodes(g); format!("{a}/{i}/{o}/{}", a + i + o) }),
    field('g', "groups", "GROUPS", |_, _| "all".into()),
    field('G', "gres", "GRES", |g, _| each(g, |n| gres(n, false))),
    field('h', "oversubscribe", "OVERSUBSCRIBE", |_, _| "NO".into()),
    field('H', "timestamp", "TIMESTAMP", |g, s| each(g, |n| s.time(n.reason_since, "Unknown"))),
    field('I', "priorityjobfactor", "PRIO_JOB_FACTOR", |g, _| partition(g, |p| p.priority.to_string())),
    field('l', "time", "TIMELIMIT", |g, _| partition(g, |p| limit(p.max_time))),
    field('L', "defaulttime", "DEFAULTTIME", |g, _| partition(g, |p| p.default_time.map_or_else(|| "n/a".into(), |t| limit(Some(t))))),
    field('m', "memory", "MEMORY", |g, _| least(g, |n| n.memory)),
    field('M', "preemptmode", "PREEMPT_MODE", |_, _| "OFF".into()),
    field('n', "nodehost", "HOSTNAMES", |g, _| hosts(g)),
    field('N', "nodelist", "NODELIST", |g, _| names(g)),
    field('o', "nodeaddr", "NODE_ADDR", |g, _| each(g, |n| n.address.clone())),
    field('O', "cpusload", "CPU_LOAD", |_, _| "N/A".into()),
    field('p', "prioritytier", "PRIO_TIER", |g, _| partition(g, |p| p.priority.to_string())),
    field('P', "partition", "PARTITION", |g, _| partition(g, |p| format!("{}{}", p.name, if p.default { "*" } else { "" }))),
    field('r', "root", "ROOT", |_, _| "no".into()),
    field('R', "partitionname", "PARTITION", |g, _| partition(g, |p| p.name.clone())),
    field('s', "size", "JOB_SIZE", sizes),
    field('S', "allocnodes", "ALLOCNODES", |_, _| "all".into()),
    field('t', "statecompact", "STATE", |g, _| each(g, |n| n.state.short().into())),
    field('T', "statelong", "STATE", |g, _| each(g, |n| n.state.long().into())),
    field('u', "user", "USER", |g, _| each(g, |n| if n.reason_by.is_empty() { "Unknown".into() } else { n.reason_by.clone() })),
    field('U', "userlong", "USER", |g, _| each(g, |n| if n.reason_by.is_empty() { "Unknown".into() } else { n.reason_by.clone() })),
    field('v', "version", "VERSION", |g, _| each(g, |n| n.version.clone())),
    field('w', "weight", "WEIGHT", |_, _| "1".into()),
    field('X', "sockets", "SOCKETS", |g, _| least(g, |n| n.cpus)),
    field('Y', "cores", "CORES", |_, _| "1".into()),
    field('Z', "threads", "THREADS", |_, _| "1".into()),
    field('z', "socketcorethread", "S:C:T", |g, _| format!("{}:1:1", least(g, |n| n.cpus))),
    named("allocmem", "ALLOCMEM", |g, _| least(g, |n| n.memory_used)),
    named("comment", "COMMENT", |_, _| "(null)".into()),
    named("extra", "EXTRA", |_, _| "(null)".into()),
    named("gresused", "GRES_USED", |g, _| each(g, |n| gres(n, true))),
    named("port", "PORT", |_, _| "0".into()),
    named("statecomplete", "STATECOMPLETE", |g, _| each(g, |n| n.state.long().trim_end_matches('*').into())),
];
