//! Parameters of a NodeName line.

use super::Fate::{ByItself, Nothing, Read};
use super::{Group, group, unless};

/// What becomes of the hardware.
pub const COUNTED: &str = "the agent finds out; a comment in the file has it, to compare with `ephor node show`";

/// The table.
pub const NODE: &[Group] = &[
    group(Read, &["NodeName", "Feature", "Features", "Gres", "State", "ThreadsPerCore"]),
    group(
        ByItself(COUNTED),
        &["CPUs", "Procs", "Boards", "Sockets", "SocketsPerBoard", "CoresPerSocket", "RealMemory"],
    ),
    group(
        ByItself("an agent calls the controller, and has the name of its host unless its configuration says `name`"),
        &["NodeAddr", "NodeHostname", "BcastAddr", "Port"],
    ),
    unless(&["0", "1"], Nothing("the scheduling policy chooses among nodes"), &["Weight"]),
    unless(
        &["0"],
        Nothing("the agent offers less where its configuration says `cpus` or `memory_mib`"),
        &["CoreSpecCount", "CpuSpecList", "MemSpecLimit"],
    ),
    unless(&["0"], Nothing("local disks are not counted"), &["TmpDisk"]),
    group(Nothing("`ephor node drain NODES --reason TEXT` says why"), &["Reason"]),
    group(Nothing("tasks are not bound by the agent"), &["CpuBind", "RestrictedCoresPerGPU"]),
    group(
        Nothing("the accounting policy prices what is used: cpu_weight and the like of accounting-tres"),
        &["TRESWeights"],
    ),
    group(Nothing("topology.conf is read"), &["Topology"]),
    group(Nothing("agents have their own configuration"), &["Parameters"]),
];
