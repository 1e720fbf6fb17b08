//! Parameters of a PartitionName line.

use super::Fate::{ByItself, Near, Nothing, Read};
use super::{Group, group, unless};

const WHO: &str = "an admission policy decides who may use a queue: `ephor policy activate admission/NAME FILE`";
const SIZE: &str = "an admission policy bounds what a job may ask for: `ephor policy activate admission/NAME FILE`; \
    `limits` and `per_user` of the queue bound what all jobs use together";
const PREEMPTION: &str = "scheduling-backfill decides by the priority of queues: its settings preempt, preempt_mode \
    and preempt_grace_s";
const POWER: &str = "nodes are not switched off and on";

/// The table.
pub const PARTITION: &[Group] = &[
    group(
        Read,
        &[
            "PartitionName",
            "Nodes",
            "Default",
            "DefaultTime",
            "MaxTime",
            "MaxNodes",
            "State",
            "PriorityTier",
            "Priority",
            "DefMemPerCPU",
            "DefMemPerNode",
            "DefMemPerGPU",
            "OverSubscribe",
            "Shared",
        ],
    ),
    unless(&["all"], Nothing(WHO), &["AllowAccounts", "AllowGroups", "AllowQos", "AllocNodes"]),
    unless(&["none"], Nothing(WHO), &["DenyAccounts", "DenyQos"]),
    unless(&["no"], Nothing(WHO), &["RootOnly", "ReqResv", "DisableRootJobs"]),
    unless(&["no"], ByItself("every queue is shown to everybody"), &["Hidden"]),
    unless(&["0", "1"], Nothing(SIZE), &["MinNodes"]),
    unless(
        &["0", "unlimited"],
        Nothing(SIZE),
        &["MaxMemPerCPU", "MaxMemPerNode", "MaxCPUsPerNode", "MaxCPUsPerSocket"],
    ),
    group(Nothing(SIZE), &["JobDefaults"]),
    unless(
        &["none", "n/a"],
        Nothing(
            "the limits of a partition's QOS are `limits` and `per_user` of the queue; they stand in Slurm's database",
        ),
        &["QOS"],
    ),
    unless(
        &["1"],
        Near("`priority` of a queue orders queues; priority-multifactor has queue_weight for its part in that of jobs"),
        &["PriorityJobFactor"],
    ),
    unless(&["off"], Nothing(PREEMPTION), &["PreemptMode"]),
    unless(&["0"], Nothing(PREEMPTION), &["GraceTime"]),
    unless(&["no"], Nothing("the scheduling policy chooses among nodes"), &["LLN"]),
    unless(&["no"], Nothing("users ask for whole nodes with --exclusive"), &["ExclusiveUser", "ExclusiveTopo"]),
    unless(&["none"], Nothing("there is no other queue that takes over"), &["Alternate"]),
    group(Nothing("a job ends at its time limit"), &["OverTimeLimit"]),
    group(Nothing("jobs are given cores, memory and GPUs"), &["SelectTypeParameters"]),
    group(Nothing("tasks are not bound by the agent"), &["CpuBind"]),
    group(
        Nothing("the accounting policy prices what is used: cpu_weight and the like of accounting-tres"),
        &["TRESBillingWeights"],
    ),
    group(Nothing("topology.conf is read"), &["Topology"]),
    group(Nothing(POWER), &["SuspendTime", "SuspendTimeout", "ResumeTimeout", "PowerDownOnIdle"]),
];
