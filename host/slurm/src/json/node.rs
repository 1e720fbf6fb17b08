//! A node as `sinfo --json` writes it.

use super::Nothing::{Null, Text, Zero};
use super::{Absent, LIVE, Nothing, Rows, seconds, text};
use crate::sinfo::fields::gres;
use crate::sinfo::{NodeView, PartitionView, Query};
use serde::Serialize;
use std::rc::Rc;

#[derive(Serialize)]
struct Node<'a> {
    boards: u32,
    cores: u32,
    threads: u32,
    sockets: i64,
    cpus: i64,
    alloc_cpus: i64,
    idle_cpus: i64,
    real_memory: i64,
    alloc_memory: i64,
    free_memory: i64,
    features: String,
    active_features: String,
    gres: String,
    gres_used: String,
    name: &'a str,
    address: &'a str,
    hostname: &'a str,
    state: String,
    state_flags: Vec<&'static str>,
    partitions: Vec<&'a str>,
    reason: &'a str,
    reason_changed_at: i64,
    reason_set_by_user: Option<&'a str>,
    weight: u32,
    tres: String,
    tres_used: String,
    slurmd_version: &'a str,
    #[serde(flatten)]
    absent: Absent,
}

#[rustfmt::skip]
const ABSENT: &[(&str, Nothing)] = &[
    ("architecture", Text), ("burstbuffer_network_address", Text), ("boot_time", Zero), ("comment", Text),
    ("cpu_binding", Zero), ("cpu_load", Null), ("extra", Text), ("last_busy", Zero), ("gres_drained", Text),
    ("mcs_label", Text), ("next_state_after_reboot", Text), ("next_state_after_reboot_flags", Nothing::List),
    ("operating_system", Text), ("owner", Null), ("port", Zero), ("slurmd_start_time", Zero), ("temporary_disk", Zero),
    ("tres_weighted", Null),
];

/// The nodes that were asked for, in the order of all.
pub fn nodes(query: &Query, partitions: &[Rc<PartitionView>], nodes: &[Rc<NodeView>]) -> String {
    let all = nodes.iter().enumerate().filter(|(_, node)| query.wants(node));
    let rows = all.filter_map(|(at, node)| {
        let of: Vec<&str> = partitions.iter().filter(|p| p.nodes.contains(&at)).map(|p| p.name.as_str()).collect();
        let wanted = query.partitions.is_empty() || of.iter().any(|name| query.partitions.iter().any(|p| p == name));
        wanted.then(|| row(node, of))
    });
    text(LIVE, Rows::Nodes(&rows.collect::<Vec<_>>()))
}

fn row<'a>(node: &'a NodeView, partitions: Vec<&'a str>) -> Node<'a> {
    let (state, flags) = state(node.state.flags());
    let features = node.features.join(",");
    let gpus = |used| if node.gpus.is_empty() { String::new() } else { gres(node, used) };
    Node {
        // Nodes have cores, not sockets: each core is shown as a socket of its own, as everywhere here.
        boards: 1,
        cores: 1,
        threads: 1,
        sockets: node.cpus,
        cpus: node.cpus,
        alloc_cpus: node.cpus_used,
        idle_cpus: node.cpus - node.cpus_used,
        real_memory: node.memory,
        alloc_memory: node.memory_used,
        free_memory: node.memory - node.memory_used,
        active_features: features.clone(),
        features,
        gres: gpus(false),
        gres_used: gpus(true),
        name: &node.name,
        address: &node.address,
        hostname: &node.name,
        state,
        state_flags: flags,
        partitions,
        reason: &node.reason,
        reason_changed_at: seconds(node.reason_since),
        reason_set_by_user: Some(node.reason_by.as_str()).filter(|by| !by.is_empty()),
        weight: 1,
        tres: tres(node.cpus, node.memory, node, |(_, all, _)| *all),
        tres_used: tres(node.cpus_used, node.memory_used, node, |(_, _, used)| *used),
        slurmd_version: &node.version,
        absent: Absent(ABSENT),
    }
}

/// `IDLE+DRAIN` as a state and its flags.
fn state(flags: &str) -> (String, Vec<&'static str>) {
    let silent = flags.ends_with('*').then_some("NOT_RESPONDING");
    let drained = flags.contains("+DRAIN").then_some("DRAIN");
    let base = flags.trim_end_matches('*').split('+').next().unwrap_or_default();
    (base.to_ascii_lowercase(), drained.into_iter().chain(silent).collect())
}

/// What there is, or is in use; nothing is left out but what is 0.
fn tres(cpus: i64, memory: i64, node: &NodeView, gpus: fn(&(String, u32, u32)) -> u32) -> String {
    let mut parts = Vec::new();
    if cpus > 0 {
        parts.push(format!("cpu={cpus}"));
    }
    if memory > 0 {
        parts.push(format!("mem={memory}M"));
    }
    let total: u32 = node.gpus.iter().map(gpus).sum();
    if total > 0 {
        parts.push(format!("gres/gpu={total}"));
    }
    parts.join(",")
}
