//! The table of a job's options: names, values and help, read by every command line that takes them.

use super::option::{
    JobOption, JobOption as O, OptionDef, Takes,
    Takes::{Maybe, Nothing, Value},
};

const fn def(
    option: JobOption,
    short: Option<char>,
    long: &'static str,
    takes: Takes,
    help: &'static str,
) -> OptionDef {
    OptionDef { option, long, alias: None, short, takes, help }
}

const fn also(alias: &'static str, mut def: OptionDef) -> OptionDef {
    def.alias = Some(alias);
    def
}

/// Every option of a job, in the order of the help.
#[rustfmt::skip]
pub const OPTIONS: &[OptionDef] = &[
    def(O::JobName, Some('J'), "job-name", Value("NAME"), "Name of the job"),
    also("queue", def(O::Queue, Some('p'), "partition", Value("QUEUE"), "Queue that it goes to")),
    def(O::Account, Some('A'), "account", Value("NAME"), "Account that pays"),
    def(O::Qos, Some('q'), "qos", Value("NAME"), "Quality of service"),
    also("licences", def(O::Licences, Some('L'), "licenses", Value("NAME[:N],..."), "Licences that it takes while it runs")),
    also("time-limit", def(O::Time, Some('t'), "time", Value("LIMIT"), "Longest run: MINUTES, M:S, H:M:S, D-H, D-H:M or D-H:M:S; 0 for none")),
    def(O::Nodes, Some('N'), "nodes", Value("MIN[-MAX]"), "Number of nodes"),
    def(O::Tasks, Some('n'), "ntasks", Value("N"), "Tasks in all"),
    also("tasks-per-node", def(O::TasksPerNode, None, "ntasks-per-node", Value("N"), "Tasks on each node")),
    def(O::CpusPerTask, Some('c'), "cpus-per-task", Value("N"), "Cores for each task; 0.5 for half a core"),
    def(O::Mem, None, "mem", Value("SIZE"), "Memory on each node: MiB, or with K, M, G or T"),
    def(O::MemPerCpu, None, "mem-per-cpu", Value("SIZE"), "Memory for each core"),
    def(O::Gpus, Some('G'), "gpus", Value("[TYPE:]N"), "GPUs in all; 0.5 for half of one, a100|h100:1 for either type"),
    def(O::GpusPerNode, None, "gpus-per-node", Value("[TYPE:]N"), "GPUs on each node"),
    def(O::GpusPerTask, None, "gpus-per-task", Value("[TYPE:]N"), "GPUs for each task"),
    def(O::CpusPerGpu, None, "cpus-per-gpu", Value("N"), "Cores for each GPU"),
    def(O::MemPerGpu, None, "mem-per-gpu", Value("SIZE"), "Memory for each GPU"),
    def(O::TasksPerGpu, None, "ntasks-per-gpu", Value("N"), "Tasks for each GPU"),
    def(O::Gres, None, "gres", Value("gpu[:TYPE][:N]"), "GPUs on each node, in Slurm's words"),
    def(O::Constraint, Some('C'), "constraint", Value("FEATURES"), "Features of the nodes: a&b, a|b, [a|b] (all the same), [a*2&b*1] (so many of each)"),
    def(O::Topology, None, "topology", Value("LEVEL"), "All nodes below one domain of it: rack (of nodes with features like rack=r1)"),
    def(O::TopologyPrefer, None, "topology-prefer", Value("LEVEL"), "The same, if that can be at the time"),
    def(O::NodeList, Some('w'), "nodelist", Value("NODES"), "Nodes that must be part of it: n[1-3,5]"),
    def(O::Exclude, Some('x'), "exclude", Value("NODES"), "Nodes that must not be part of it"),
    def(O::Exclusive, None, "exclusive", Nothing, "Share its nodes with no other job"),
    def(O::Array, Some('a'), "array", Value("INDICES"), "One element for each index: 0-15, 1,3,5, 0-100:10%4"),
    def(O::Dependency, Some('d'), "dependency", Value("LIST"), "Wait for other jobs: afterok:12:13,afterany:14; ? for any"),
    def(O::Begin, Some('b'), "begin", Value("TIME"), "Not before: now+1hour, 16:30, 2026-12-01T16:30"),
    def(O::Reservation, None, "reservation", Value("NAME"), "Run in that reservation, and nowhere else"),
    def(O::Deadline, None, "deadline", Value("TIME"), "End it unstarted once it could no longer end before: now+1day, 2026-12-01T16:30"),
    def(O::Signal, None, "signal", Value("[B:]SIG[@SECONDS]"), "Signal before the time limit, to the script's shell (B:) or to the rest of the job: B:USR1@600"),
    def(O::Hold, Some('H'), "hold", Nothing, "Keep it back until it is released"),
    def(O::Nice, None, "nice", Maybe("N"), "Lower its priority by N (100 without one)"),
    def(O::Requeue, None, "requeue", Nothing, "It may run again when its node failed or it had to give way"),
    def(O::NoRequeue, None, "no-requeue", Nothing, "It must not run again"),
    def(O::Output, Some('o'), "output", Value("PATTERN"), "Output file; %j id, %x name, %A_%a array and index, %N node, %u user"),
    def(O::Error, Some('e'), "error", Value("PATTERN"), "Error file; without it errors go to the output file"),
    def(O::Input, Some('i'), "input", Value("PATTERN"), "Input file"),
    def(O::OpenMode, None, "open-mode", Value("append|truncate"), "What happens to an output file that is there"),
    def(O::Chdir, Some('D'), "chdir", Value("DIR"), "Folder that it runs in"),
    def(O::Export, None, "export", Value("ALL|NONE|NAME[=VALUE],..."), "Which variables of the environment it gets"),
    def(O::Comment, None, "comment", Value("TEXT"), "Free text"),
    def(O::Wrap, None, "wrap", Value("COMMAND"), "Shell command to run in place of a script"),
];

/// Long options that Slurm has and jobs here do not have yet. They count when a name is cut short, so that a script
/// means the same once they come.
#[rustfmt::skip]
pub(super) const NOT_YET: &[&str] = &[
    "acctg-freq", "batch", "bb", "bbf", "cluster-constraint", "clusters", "container", "contiguous", "core-spec",
    "cores-per-socket", "cpu-freq", "delay-boot", "distribution", "export-file",
    "extra-node-info", "get-user-env", "gid", "gpu-bind", "gpu-freq", "gpus-per-socket", "gres-flags", "hint",
    "ignore-pbs", "kill-on-invalid-dep", "mail-type", "mail-user", "mcs-label", "mem-bind",
    "mincpus", "network", "no-kill", "ntasks-per-core", "ntasks-per-socket",
    "overcommit", "oversubscribe", "parsable", "power", "prefer", "priority", "profile", "propagate", "quiet",
    "reboot", "sockets-per-node", "spread-job", "switches", "test-only", "thread-spec",
    "threads-per-core", "time-min", "tmp", "tres-per-task", "uid", "use-min-nodes", "verbose", "wait",
    "wait-all-nodes", "wckey",
];
