//! Parameters of `slurm.conf` that are about the whole cluster.

use super::Fate::{ByItself, Near, Nothing, Read};
use super::{Group, group, unless};

const PRIORITY: &str = "the priority policy decides: `ephor policy activate priority FILE --config ...`; \
    priority-multifactor has age_weight, max_age_hours, size_weight, favour, queue_weight, usage_weight, nice_weight";
const USAGE: &str = "the accounting policy decides how use is weighted and fades: accounting-tres has cpu_weight, \
    mem_weight, gpu_weight, node_weight and half_life_hours";
const SCHEDULING: &str = "the scheduling policy decides; its settings are on its page in docs/policies";
const PREEMPTION: &str = "the scheduling policy decides: scheduling-backfill has preempt, preempt_mode, \
    preempt_grace_s and preempt_after_s";
const ADMISSION: &str = "an admission policy decides what is taken: `ephor policy activate admission/NAME FILE`";
const LIMITS: &str = "the bounds of the controller are fixed; limits of queues, accounts, users and QOS can be set";
const SCRIPTS: &str = "no scripts run before or after jobs or on events; do it in the job's script, or on the node";
const LOGS: &str = "`log_filter` and `log_format` in the controller's settings";
const PATHS: &str = "files of the controller lie in `data_folder` of its settings, those of an agent in its `data`";
const STEPS: &str = "jobs have no steps yet";
const BINDING: &str = "tasks are not bound by the agent; they get whole cores";
const POWER: &str = "nodes are not switched off and on";
const CLOUD: &str = "there is one cluster, and nodes join with a token of their own (`ephor node token`)";
const TRUST: &str = "agents and the controller know each other by certificates, users by the uid of their socket; \
    there is no shared key";
const WIRE: &str = "messages are gRPC, over a unix socket or mutual TLS";
const SILENCE: &str = "`node_silence_s` in the controller's settings";
const HISTORY: &str = "the controller keeps its own history of jobs; no database is needed";

/// The table.
pub const GENERAL: &[Group] = &[
    group(Read, &["Licenses", "DefMemPerCPU"]),
    group(Nothing("`cluster_name` in the controller's settings"), &["ClusterName"]),
    group(
        Nothing("agents find the controller by their join token; `agents_listen` and `agents_address` in its settings"),
        &[
            "SlurmctldHost",
            "SlurmctldAddr",
            "SlurmctldPort",
            "SlurmdPort",
            "ControlMachine",
            "ControlAddr",
            "SrunPortRange",
            "TCPTimeout",
        ],
    ),
    group(
        Nothing("there is one controller and no second one that takes over"),
        &["BackupController", "BackupAddr", "SlurmctldTimeout", "SlurmctldPrimaryOnProg", "SlurmctldPrimaryOffProg"],
    ),
    group(
        Nothing("the controller runs as whoever starts it, agents as root where jobs are to run as their users"),
        &["SlurmUser", "SlurmdUser"],
    ),
    group(
        Nothing(PATHS),
        &[
            "StateSaveLocation",
            "SlurmdSpoolDir",
            "SlurmctldPidFile",
            "SlurmdPidFile",
            "PluginDir",
            "JobCredentialPrivateKey",
            "JobCredentialPublicCertificate",
        ],
    ),
    group(
        Nothing(LOGS),
        &[
            "SlurmctldLogFile",
            "SlurmctldDebug",
            "SlurmctldSyslogDebug",
            "SlurmdLogFile",
            "SlurmdDebug",
            "SlurmdSyslogDebug",
            "SlurmSchedLogFile",
            "SlurmSchedLogLevel",
            "LogTimeFormat",
            "DebugFlags",
        ],
    ),
    group(
        Nothing(TRUST),
        &[
            "AuthType",
            "AuthInfo",
            "AuthAltTypes",
            "AuthAltParameters",
            "CredType",
            "CryptoType",
            "TLSType",
            "TLSParameters",
            "HashPlugin",
            "CertmgrType",
            "CertmgrParameters",
        ],
    ),
    group(
        Nothing(WIRE),
        &[
            "CommunicationParameters",
            "MessageTimeout",
            "TreeWidth",
            "KeepAliveTime",
            "RoutePlugin",
            "UnkillableStepTimeout",
            "DataParserParameters",
            "HttpParserType",
            "UrlParserType",
        ],
    ),
    group(Nothing(SILENCE), &["SlurmdTimeout"]),
    group(
        Near("a node is up again as soon as its agent is back; one that was drained stays drained"),
        &["ReturnToService"],
    ),
    group(Nothing("`launch_grace_s` in the controller's settings"), &["KillWait"]),
    group(Nothing("`min_job_age_s` in the controller's settings"), &["MinJobAge"]),
    group(
        Nothing(
            "the controller and the agents have settings of their own: `ephor config check` lists the controller's",
        ),
        &["SlurmctldParameters", "SlurmdParameters", "BatchStartTimeout"],
    ),
    // Who is taken, and with what.
    unless(
        &["all", "any", "yes"],
        Near("a job beyond the limits of its queue is refused when it is submitted, as with ALL"),
        &["EnforcePartLimits"],
    ),
    group(
        Nothing(ADMISSION),
        &[
            "DisableRootJobs",
            "JobDefaults",
            "JobSubmitPlugins",
            "CliFilterPlugins",
            "MaxMemPerCPU",
            "MaxMemPerNode",
            "DefMemPerGPU",
        ],
    ),
    group(
        Nothing("memory that a job does not name is set for each core: DefMemPerCPU, or `default_mem_per_cpu`"),
        &["DefMemPerNode"],
    ),
    group(Nothing("there are no workload keys; use accounts"), &["TrackWCKey"]),
    group(Nothing("`requeue` of the admission policy admission-defaults"), &["JobRequeue"]),
    group(
        Nothing("a job runs again when its node failed, or `ephor job requeue` says so; exit codes do not count"),
        &["RequeueExit", "RequeueExitHold"],
    ),
    group(Nothing("jobs do not come back by the clock; use cron on a login node"), &["ScronParameters"]),
    group(
        Nothing(LIMITS),
        &[
            "MaxJobCount",
            "MaxArraySize",
            "MaxJobId",
            "FirstJobId",
            "MaxStepCount",
            "MaxTasksPerNode",
            "MaxNodeCount",
            "MaxBatchRequeue",
        ],
    ),
    group(Near("limits always hold; accounts and QOS that a job names must be there"), &["AccountingStorageEnforce"]),
    // Accounting.
    group(
        Nothing(HISTORY),
        &[
            "AccountingStorageType",
            "AccountingStorageHost",
            "AccountingStorageBackupHost",
            "AccountingStorageExternalHost",
            "AccountingStoragePort",
            "AccountingStoragePass",
            "AccountingStorageUser",
            "AccountingStorageLoc",
            "AccountingStorageParameters",
            "AccountingStoreFlags",
            "AccountingStoreJobComment",
            "MaxDBDMsgs",
            "JobCompType",
            "JobCompHost",
            "JobCompLoc",
            "JobCompParams",
            "JobCompPass",
            "JobCompPort",
            "JobCompUser",
        ],
    ),
    group(
        Nothing("agents measure at the end of an attempt"),
        &[
            "JobAcctGatherType",
            "JobAcctGatherFrequency",
            "JobAcctGatherParams",
            "AcctGatherEnergyType",
            "AcctGatherFilesystemType",
            "AcctGatherInfinibandType",
            "AcctGatherInterconnectType",
            "AcctGatherProfileType",
            "AcctGatherNodeFreq",
            "ExtSensorsType",
            "ExtSensorsFreq",
        ],
    ),
    group(
        Nothing(USAGE),
        &[
            "AccountingStorageTRES",
            "PriorityDecayHalfLife",
            "PriorityUsageResetPeriod",
            "PriorityCalcPeriod",
            "PriorityParameters",
        ],
    ),
    // Priority and scheduling.
    unless(&["priority/multifactor"], Nothing(PRIORITY), &["PriorityType"]),
    group(
        Nothing(PRIORITY),
        &[
            "PriorityFavorSmall",
            "PriorityFlags",
            "PriorityMaxAge",
            "PrioritySiteFactorParameters",
            "PrioritySiteFactorPlugin",
            "PriorityWeightAge",
            "PriorityWeightAssoc",
            "PriorityWeightFairshare",
            "PriorityWeightJobSize",
            "PriorityWeightPartition",
            "PriorityWeightQOS",
            "PriorityWeightTRES",
        ],
    ),
    unless(&["sched/backfill"], Near(SCHEDULING), &["SchedulerType"]),
    group(
        Nothing(
            "the scheduling policy decides: scheduling-backfill has reservations (promises), max_tested, \
             max_jobs_per_user and max_jobs_per_queue",
        ),
        &["SchedulerParameters"],
    ),
    group(
        Nothing(SCHEDULING),
        &[
            "SchedulerTimeSlice",
            "FairShareDampeningFactor",
            "SchedulerPort",
            "SchedulerRootFilter",
            "CompleteWait",
            "DependencyParameters",
        ],
    ),
    unless(&["preempt/none"], Nothing(PREEMPTION), &["PreemptType"]),
    unless(&["off"], Nothing(PREEMPTION), &["PreemptMode"]),
    group(Nothing(PREEMPTION), &["PreemptParameters", "PreemptExemptTime"]),
    unless(
        &["select/cons_tres", "select/cons_res"],
        Near("jobs share nodes by cores, memory and GPUs; `--exclusive` takes whole nodes"),
        &["SelectType"],
    ),
    unless(
        &["cr_core_memory", "cr_cpu_memory", "cr_socket_memory"],
        Near("jobs are given cores, memory and GPUs, whatever this says"),
        &["SelectTypeParameters"],
    ),
    group(
        ByItself("topology.conf is read where it is there; jobs ask for a level with --topology"),
        &["TopologyPlugin", "TopologyParam"],
    ),
    group(ByItself("agents find GPUs; other kinds are not counted"), &["GresTypes"]),
    unless(&["0"], Nothing("a job ends at its time limit"), &["OverTimeLimit"]),
    group(Nothing(STEPS), &["InactiveLimit", "WaitTime", "InteractiveStepOptions", "BcastParameters", "BcastExclude"]),
    group(Nothing("`ephor reservation` has no such settings"), &["ResvOverRun", "ResvEpilog", "ResvProlog"]),
    // Jobs on their nodes.
    group(
        Nothing(SCRIPTS),
        &[
            "Prolog",
            "Epilog",
            "PrologSlurmctld",
            "EpilogSlurmctld",
            "PrologFlags",
            "PrologEpilogTimeout",
            "PrologTimeout",
            "EpilogTimeout",
            "EpilogMsgTime",
            "HealthCheckProgram",
            "HealthCheckInterval",
            "HealthCheckNodeState",
            "UnkillableStepProgram",
            "RebootProgram",
            "PlugStackConfig",
            "SlurmctldPlugstack",
        ],
    ),
    unless(
        &["task/none"],
        Nothing(BINDING),
        &["TaskPlugin", "TaskPluginParam", "TaskPluginParams", "CoreSpecPlugin", "AllowSpecResourcesUsage"],
    ),
    group(Near("the agent keeps the processes of a job together: `confine` in its configuration"), &["ProctrackType"]),
    group(
        Nothing(STEPS),
        &[
            "MpiDefault",
            "MpiParams",
            "LaunchType",
            "LaunchParameters",
            "SallocDefaultCommand",
            "SrunProlog",
            "SrunEpilog",
            "TaskProlog",
            "TaskEpilog",
            "SwitchType",
            "SwitchParameters",
            "X11Parameters",
            "KillOnBadExit",
        ],
    ),
    group(
        Nothing("a job has the limits of its node's agent"),
        &["PropagateResourceLimits", "PropagateResourceLimitsExcept", "PropagatePrioProcess"],
    ),
    group(Nothing("output begins anew unless `--open-mode=append` is given"), &["JobFileAppend"]),
    group(Nothing("frequencies are left to the node"), &["CpuFreqDef", "CpuFreqGovernors", "GpuFreqDef"]),
    group(Nothing("no checkpoints are taken"), &["CheckpointType", "JobCheckpointDir"]),
    group(Nothing("`metrics_listen` in the controller's settings"), &["MetricsType", "MetricsAuthUsers"]),
    group(Nothing("what is applied holds at once; nothing is read anew"), &["ReconfigFlags"]),
    group(Nothing("there are no burst buffers"), &["BurstBufferType", "BurstBufferParameters"]),
    group(Nothing("local disks are not counted"), &["TmpFS"]),
    group(Nothing("memory is what a job asked for"), &["VSizeFactor"]),
    group(Nothing("a job has the folders of its node"), &["JobContainerType"]),
    group(Nothing("a job has the environment that its user submitted it from"), &["GetEnvTimeout"]),
    group(Nothing("no PAM session is opened for a job"), &["UsePAM"]),
    group(Nothing("no mail is sent"), &["MailProg", "MailDomain"]),
    group(Nothing("`private_jobs` of the authentication policy auth-local hides jobs of others"), &["PrivateData"]),
    group(Nothing("no security labels are known; `--exclusive` keeps all others out"), &["MCSPlugin", "MCSParameters"]),
    group(
        Nothing("the controller asks its machine for users and groups"),
        &["GroupUpdateForce", "GroupUpdateTime", "CacheGroups"],
    ),
    // Nodes.
    group(
        Nothing(POWER),
        &[
            "SuspendProgram",
            "SuspendTime",
            "SuspendTimeout",
            "SuspendRate",
            "SuspendExcNodes",
            "SuspendExcParts",
            "SuspendExcStates",
            "ResumeProgram",
            "ResumeFailProgram",
            "ResumeRate",
            "ResumeTimeout",
            "PowerParameters",
            "PowerPlugin",
        ],
    ),
    group(Nothing("features of a node do not change when it boots"), &["NodeFeaturesPlugins"]),
    group(Nothing(CLOUD), &["FederationParameters", "CloudDomain"]),
    group(ByItself("an agent says what its node has, and that counts"), &["FastSchedule"]),
    group(Nothing("the agent offers what it finds; `ephor node drain` takes a node out"), &["DownNodes"]),
    group(Nothing("every node runs an agent of its own"), &["FrontendName", "FrontendAddr"]),
];
