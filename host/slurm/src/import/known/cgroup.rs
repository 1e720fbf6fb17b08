//! Parameters of `cgroup.conf`.

use super::Fate::{Near, Nothing};
use super::{Group, group, unless};

const BOUNDS: &str = "agents set no bounds on a job's processes yet; jobs get what they asked for, and are trusted \
    to keep to it";

/// The table.
pub const CGROUP: &[Group] = &[
    group(
        Near("agents choose a control group by themselves: `confine` in their configuration"),
        &["CgroupPlugin", "CgroupMountpoint", "CgroupAutomount", "CgroupReleaseAgentDir", "IgnoreSystemd"],
    ),
    group(
        Nothing("agents make their own control groups"),
        &["IgnoreSystemdOnFailure", "EnableControllers", "EnableExtraControllers", "SystemdTimeout"],
    ),
    unless(
        &["no"],
        Nothing(BOUNDS),
        &[
            "ConstrainCores",
            "ConstrainDevices",
            "ConstrainRAMSpace",
            "ConstrainSwapSpace",
            "ConstrainKmemSpace",
            "TaskAffinity",
        ],
    ),
    group(
        Nothing(BOUNDS),
        &[
            "AllowedRAMSpace",
            "AllowedSwapSpace",
            "AllowedKmemSpace",
            "AllowedDevicesFile",
            "MaxRAMPercent",
            "MaxSwapPercent",
            "MaxKmemPercent",
            "MinRAMSpace",
            "MinKmemSpace",
            "MemorySwappiness",
            "SignalChildrenProcesses",
        ],
    ),
];
