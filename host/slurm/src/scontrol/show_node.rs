//! `scontrol show node`: what is known of a node, several fields on a line, or all on one with `-o`.

use crate::show::Shown;
use crate::sinfo::{NodeView, PartitionView, fields};
use crate::value::memory;

/// Writes a node; `partitions` are those that it belongs to.
pub fn show(node: &NodeView, partitions: &[&PartitionView], shown: &Shown, one_line: bool) -> String {
    let or_null = |text: String| if text.is_empty() { "(null)".to_owned() } else { text };
    let features = or_null(node.features.join(","));
    let queues: Vec<&str> = partitions.iter().map(|partition| partition.name.as_str()).collect();
    let amounts = |cpus: i64, mib: i64| {
        let mib = u64::try_from(mib).unwrap_or(0);
        format!("cpu={cpus},mem={}", memory::show(mib))
    };
    let used = if node.cpus_used > 0 { amounts(node.cpus_used, node.memory_used) } else { String::new() };
    let mut lines = vec![
        format!("NodeName={} CoresPerSocket=1 ", node.name),
        format!("CPUAlloc={} CPUEfctv={} CPUTot={} CPULoad=N/A", node.cpus_used, node.cpus, node.cpus),
        format!("AvailableFeatures={features}"),
        format!("ActiveFeatures={features}"),
        format!("Gres={}", fields::gres(node, false)),
        format!("NodeAddr={} NodeHostName={} Version={}", node.address, node.name, node.version),
        format!("RealMemory={} AllocMem={} Sockets={} Boards=1", node.memory, node.memory_used, node.cpus),
        format!("State={} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A", node.state.flags()),
        format!("Partitions={} ", queues.join(",")),
        format!("CfgTRES={},billing={}", amounts(node.cpus, node.memory), node.cpus),
        format!("AllocTRES={used}"),
    ];
    if !node.reason.is_empty() {
        let since = shown.time(node.reason_since, "Unknown");
        let by = if node.reason_by.is_empty() { "Unknown" } else { &node.reason_by };
        lines.push(format!("Reason={} [{by}@{since}]", node.reason));
    }
    match one_line {
        true => lines.join(" "),
        false => format!("{}\n", lines.join("\n   ")),
    }
}
