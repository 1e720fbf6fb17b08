//! `scontrol show partition`: the fields of a queue, several on a line, or all on one with `-o`.

use crate::sinfo::{NodeView, PartitionView};
use crate::value::{memory, time};
use ephor_model::submit::hostlist;
use std::rc::Rc;

/// Writes a queue; `nodes` are those that its numbers point into.
pub fn show(partition: &PartitionView, nodes: &[Rc<NodeView>], one_line: bool) -> String {
    let inside: Vec<&NodeView> = partition.nodes.iter().filter_map(|at| nodes.get(*at)).map(Rc::as_ref).collect();
    let names: Vec<&str> = inside.iter().map(|node| node.name.as_str()).collect();
    let cpus: i64 = inside.iter().map(|node| node.cpus).sum();
    let mib: i64 = inside.iter().map(|node| node.memory).sum();
    let limit = |span: Option<_>, none: &str| if span.is_none() { none.to_owned() } else { time::long(span) };
    let most = partition.max_nodes.map_or("UNLIMITED".into(), |n| n.to_string());
    let state = match partition.available {
        "up" => "UP",
        "drain" => "DRAIN",
        "down" => "DOWN",
        _ => "INACTIVE",
    };
    let default_memory = match partition.default_mem_per_cpu {
        Some(mib) => format!("DefMemPerCPU={mib}"),
        None => "DefMemPerNode=UNLIMITED".into(),
    };
    let lines = [
        format!("PartitionName={}", partition.name),
        "AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL".into(),
        format!("AllocNodes=ALL Default={} QoS=N/A", if partition.default { "YES" } else { "NO" }),
        format!(
            "DefaultTime={} DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO",
            limit(partition.default_time, "NONE")
        ),
        format!(
            "MaxNodes={most} MaxTime={} MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED",
            limit(partition.max_time, "UNLIMITED")
        ),
        format!("Nodes={}", if names.is_empty() { "(null)".into() } else { hostlist::fold(&names) }),
        format!("PriorityJobFactor={0} PriorityTier={0} RootOnly=NO ReqResv=NO OverSubscribe=NO", partition.priority),
        "OverTimeLimit=NONE PreemptMode=OFF".into(),
        format!("State={state} TotalCPUs={cpus} TotalNodes={} SelectTypeParameters=NONE", names.len()),
        "JobDefaults=(null)".into(),
        format!("{default_memory} MaxMemPerNode=UNLIMITED"),
        format!(
            "TRES=cpu={cpus},mem={},node={},billing={cpus}",
            memory::show(u64::try_from(mib).unwrap_or(0)),
            names.len()
        ),
    ];
    match one_line {
        true => lines.join(" "),
        false => format!("{}\n", lines.join("\n   ")),
    }
}
