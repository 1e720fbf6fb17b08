//! States, reasons and ends of jobs, in Slurm's vocabulary.

use crate::resource::Amounts;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! vocabulary {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $long:literal, $short:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }
        impl $name {
            /// Every value, in order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            /// The name that people and clients read.
            pub fn name(self) -> &'static str { match self { $(Self::$variant => $long),* } }
            /// The short code; the name where there is none.
            pub fn code(self) -> &'static str { match self { $(Self::$variant => $short),* } }
            /// Reads a name or a short code, in any case.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|v| v.name().eq_ignore_ascii_case(text) || v.code().eq_ignore_ascii_case(text))
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.pad(self.name()) }
        }
    };
}

vocabulary! {
    /// Where a job is in its life.
    JobState {
        /// Waiting.
        Pending = "PENDING", "PD";
        /// Started by the controller, not yet confirmed by the node.
        Configuring = "CONFIGURING", "CF";
        /// Running on its nodes.
        Running = "RUNNING", "R";
        /// Being ended; its processes may still be there.
        Completing = "COMPLETING", "CG";
        /// Ended with exit code 0.
        Completed = "COMPLETED", "CD";
        /// Ended by a user or administrator.
        Cancelled = "CANCELLED", "CA";
        /// Ended with another exit code, by a signal, or could not be launched.
        Failed = "FAILED", "F";
        /// Ended by its time limit.
        Timeout = "TIMEOUT", "TO";
        /// Its node failed and it was not requeued.
        NodeFail = "NODE_FAIL", "NF";
        /// Gave way to another job and was not requeued.
        Preempted = "PREEMPTED", "PR";
        /// Ended by the kernel for memory.
        OutOfMemory = "OUT_OF_MEMORY", "OOM";
    }
}

impl JobState {
    /// Whether nothing more will happen to the job by itself.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Configuring | Self::Running | Self::Completing)
    }
}

vocabulary! {
    /// Why a job waits, or why it ended as it did.
    ReasonCode {
        /// Nothing to say.
        None = "None", "None";
        /// Jobs of higher priority go first.
        Priority = "Priority", "Priority";
        /// What it asks for is not free now.
        Resources = "Resources", "Resources";
        /// Another job must start or end first.
        Dependency = "Dependency", "Dependency";
        /// What it depends on can no longer happen.
        DependencyNeverSatisfied = "DependencyNeverSatisfied", "DependencyNeverSatisfied";
        /// Its begin time lies ahead.
        BeginTime = "BeginTime", "BeginTime";
        /// Held by its user.
        JobHeldUser = "JobHeldUser", "JobHeldUser";
        /// Held by an administrator.
        JobHeldAdmin = "JobHeldAdmin", "JobHeldAdmin";
        /// As many elements of the array run as its throttle allows.
        JobArrayTaskLimit = "JobArrayTaskLimit", "JobArrayTaskLimit";
        /// Its queue starts no jobs.
        PartitionDown = "PartitionDown", "PartitionDown";
        /// No node could ever run it as things are.
        BadConstraints = "BadConstraints", "BadConstraints";
        /// The nodes it needs are down or drained.
        ReqNodeNotAvail = "ReqNodeNotAvail", "ReqNodeNotAvail";
        /// Its node failed.
        NodeDown = "NodeDown", "NodeDown";
        /// Its node could not start it.
        JobLaunchFailure = "JobLaunchFailure", "JobLaunchFailure";
        /// It ended with an exit code other than 0.
        NonZeroExitCode = "NonZeroExitCode", "NonZeroExitCode";
        /// It reached its time limit.
        TimeLimit = "TimeLimit", "TimeLimit";
        /// It used more memory than it was given.
        OutOfMemory = "OutOfMemory", "OutOfMemory";
        /// The scheduling policy does not run, so nothing starts.
        SchedulingPaused = "SchedulingPaused", "SchedulingPaused";
        /// A policy said so; its text is beside.
        Policy = "Policy", "Policy";
        /// Its node is silent: what became of it is not known.
        NodeSilent = "NodeSilent", "NodeSilent";
        /// As many jobs of its account run as may.
        AssocGrpJobsLimit = "AssocGrpJobsLimit", "AssocGrpJobsLimit";
        /// Its account's jobs hold as many cores as they may.
        AssocGrpCpuLimit = "AssocGrpCpuLimit", "AssocGrpCpuLimit";
        /// Its account's jobs hold as much memory as they may.
        AssocGrpMemLimit = "AssocGrpMemLimit", "AssocGrpMemLimit";
        /// Its account's jobs hold as many nodes as they may.
        AssocGrpNodeLimit = "AssocGrpNodeLimit", "AssocGrpNodeLimit";
        /// Its account's jobs hold as many GPUs as they may.
        AssocGrpGRES = "AssocGrpGRES", "AssocGrpGRES";
        /// Its account's jobs hold as many licences as they may.
        AssocGrpLicense = "AssocGrpLicense", "AssocGrpLicense";
        /// Its account's running jobs were granted as many core-minutes as they may.
        AssocGrpCPURunMinutesLimit = "AssocGrpCPURunMinutesLimit", "AssocGrpCPURunMinutesLimit";
        /// Its account's running jobs were granted as many memory-minutes as they may.
        AssocGrpMemRunMinutes = "AssocGrpMemRunMinutes", "AssocGrpMemRunMinutes";
        /// Its account's running jobs were granted as many node-minutes as they may.
        AssocGrpNodeRunMinutes = "AssocGrpNodeRunMinutes", "AssocGrpNodeRunMinutes";
        /// Its account's running jobs were granted as many GPU-minutes as they may.
        AssocGrpGRESRunMinutes = "AssocGrpGRESRunMinutes", "AssocGrpGRESRunMinutes";
        /// As many jobs of its user run in the account as may.
        AssocMaxJobsLimit = "AssocMaxJobsLimit", "AssocMaxJobsLimit";
        /// Its time limit is longer than its account or user may ask for.
        AssocMaxWallDurationPerJobLimit = "AssocMaxWallDurationPerJobLimit", "AssocMaxWallDurationPerJobLimit";
        /// As many jobs of its QOS or queue run as may.
        QOSGrpJobsLimit = "QOSGrpJobsLimit", "QOSGrpJobsLimit";
        /// The jobs of its QOS or queue hold as many cores as they may.
        QOSGrpCpuLimit = "QOSGrpCpuLimit", "QOSGrpCpuLimit";
        /// The jobs of its QOS or queue hold as much memory as they may.
        QOSGrpMemLimit = "QOSGrpMemLimit", "QOSGrpMemLimit";
        /// The jobs of its QOS or queue hold as many nodes as they may.
        QOSGrpNodeLimit = "QOSGrpNodeLimit", "QOSGrpNodeLimit";
        /// The jobs of its QOS or queue hold as many GPUs as they may.
        QOSGrpGRES = "QOSGrpGRES", "QOSGrpGRES";
        /// The jobs of its QOS or queue hold as many licences as they may.
        QOSGrpLicense = "QOSGrpLicense", "QOSGrpLicense";
        /// The running jobs of its QOS or queue were granted as many core-minutes as they may.
        QOSGrpCPURunMinutesLimit = "QOSGrpCPURunMinutesLimit", "QOSGrpCPURunMinutesLimit";
        /// The running jobs of its QOS or queue were granted as many memory-minutes as they may.
        QOSGrpMemoryRunMinutes = "QOSGrpMemoryRunMinutes", "QOSGrpMemoryRunMinutes";
        /// The running jobs of its QOS or queue were granted as many node-minutes as they may.
        QOSGrpNodeRunMinutes = "QOSGrpNodeRunMinutes", "QOSGrpNodeRunMinutes";
        /// The running jobs of its QOS or queue were granted as many GPU-minutes as they may.
        QOSGrpGRESRunMinutes = "QOSGrpGRESRunMinutes", "QOSGrpGRESRunMinutes";
        /// As many jobs of its user run in the QOS or queue as may.
        QOSMaxJobsPerUserLimit = "QOSMaxJobsPerUserLimit", "QOSMaxJobsPerUserLimit";
        /// Its user's jobs in the QOS or queue hold as many cores as they may.
        QOSMaxCpuPerUserLimit = "QOSMaxCpuPerUserLimit", "QOSMaxCpuPerUserLimit";
        /// Its user's jobs in the QOS or queue hold as much memory as they may.
        QOSMaxMemoryPerUser = "QOSMaxMemoryPerUser", "QOSMaxMemoryPerUser";
        /// Its user's jobs in the QOS or queue hold as many nodes as they may.
        QOSMaxNodePerUserLimit = "QOSMaxNodePerUserLimit", "QOSMaxNodePerUserLimit";
        /// Its user's jobs in the QOS or queue hold as many GPUs as they may.
        QOSMaxGRESPerUser = "QOSMaxGRESPerUser", "QOSMaxGRESPerUser";
        /// As many jobs of its account run in the QOS as may.
        MaxJobsPerAccount = "MaxJobsPerAccount", "MaxJobsPerAccount";
        /// Its account's jobs in the QOS hold as many cores as they may.
        MaxCpuPerAccount = "MaxCpuPerAccount", "MaxCpuPerAccount";
        /// Its account's jobs in the QOS hold as much memory as they may.
        MaxMemoryPerAccount = "MaxMemoryPerAccount", "MaxMemoryPerAccount";
        /// Its account's jobs in the QOS hold as many nodes as they may.
        MaxNodePerAccount = "MaxNodePerAccount", "MaxNodePerAccount";
        /// Its account's jobs in the QOS hold as many GPUs as they may.
        MaxGRESPerAccount = "MaxGRESPerAccount", "MaxGRESPerAccount";
        /// Its time limit is longer than its QOS or queue allows.
        QOSMaxWallDurationPerJobLimit = "QOSMaxWallDurationPerJobLimit", "QOSMaxWallDurationPerJobLimit";
        /// Licences that it asks for are in use.
        Licenses = "Licenses", "Licenses";
        /// A reservation holds the nodes that it needs, or its own has not begun or is full.
        Reservation = "Reservation", "Reservation";
    }
}

/// Who holds a job back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hold {
    /// Nobody.
    #[default]
    None,
    /// Its owner; the owner or an operator may release it.
    User,
    /// An operator; only an operator may release it.
    Admin,
}

/// How a process ended: exit code 0 to 255 and, where a signal did it, its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Exit code.
    pub code: i32,
    /// Signal, 0 for none.
    pub signal: i32,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.code, self.signal)
    }
}

/// What made an attempt end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndCause {
    /// Its own end.
    Exited,
    /// Somebody asked.
    Cancelled,
    /// Its time limit.
    TimeLimit,
    /// The kernel, for memory.
    OutOfMemory,
    /// It gave way to another job.
    Preempted,
    /// Somebody asked for it to run again.
    Requeued,
    /// It could not be started; the text says why.
    LaunchFailed,
    /// Its node failed or forgot it.
    NodeFailed,
}

/// What an attempt used, as far as its node could measure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time of all its processes, in milliseconds.
    pub cpu_ms: i64,
    /// Peak resident memory, in MiB, rounded up.
    pub peak_mem_mib: i64,
    /// Amounts held, times milliseconds, per resource: filled by the core at the end.
    pub held: Amounts,
}
