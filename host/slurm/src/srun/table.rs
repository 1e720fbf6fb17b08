//! The options of `srun` inside a job: the one source of its command line, its help and the table in the documents.

use crate::table::Fate::{Differs, Ignored, Refused, Void, Works};
use crate::table::Takes::{Maybe, Nothing, Value};
use crate::table::{Fate, OptionDef, Takes, from_env as env};

/// The options by what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named after the option that stands beside it in TABLE")]
pub enum Key {
    Chdir,
    CpusPerTask,
    DisableStatus,
    Distribution,
    Error,
    Exact,
    Exclude,
    Exclusive,
    Export,
    Gpus,
    GpusPerNode,
    GpusPerTask,
    Gres,
    Help,
    Input,
    JobId,
    JobName,
    KillOnBadExit,
    Label,
    Mpi,
    Nodelist,
    Nodes,
    Ntasks,
    NtasksPerNode,
    OpenMode,
    Output,
    Overcommit,
    Overlap,
    Quiet,
    QuitOnInterrupt,
    ThreadsPerCore,
    Unbuffered,
    Usage,
    Verbose,
    Version,
    Wait,
    /// Taken without effect, or refused: [`Fate`] says all there is.
    Other(&'static str),
}

use Key as K;

const fn def(key: Key, long: &'static str, short: Option<char>, takes: Takes, fate: Fate) -> OptionDef<Key> {
    OptionDef::new(key, long, short, takes, fate)
}

/// An option that does nothing, or that is refused.
const fn other(long: &'static str, short: Option<char>, takes: Takes, fate: Fate) -> OptionDef<Key> {
    OptionDef::new(Key::Other(long), long, short, takes, fate)
}

const OF_THE_JOB: Fate = Void("it is about the job, and the job is there");
const BINDING: Fate = Ignored("tasks are not bound to cores or memory");
const FREQUENCY: Fate = Ignored("frequencies are left to the node");
const MEMORY: Fate = Void("the memory of the job is not divided among its steps");
const SOCKETS: Fate =
    Refused("nodes have cores, not sockets; leave it out, or use --ntasks-per-node and --cpus-per-task");
const SCRIPTS: Fate = Refused("let the step run a script that does it before and after");
const ROOT: Fate = Refused("steps run as the job's owner");
const ONE_TYPE: Fate = Differs("GPUs of the job that no other step has; a type is not looked at");

/// Every option of Slurm 22.05.8, in the order of its manual.
pub const TABLE: &[OptionDef<Key>] = &[
    other("account", Some('A'), Value("NAME"), OF_THE_JOB),
    other("acctg-freq", None, Value("SPEC"), Ignored("agents measure at the end of an attempt")),
    other("bb", None, Value("SPEC"), Refused("there are no burst buffers; copy data at the start of the script")),
    other("bbf", None, Value("FILE"), Refused("there are no burst buffers; copy data at the start of the script")),
    other("bcast", None, Maybe("PATH"), Refused("a program in a folder that all nodes share")),
    other("bcast-exclude", None, Maybe("PATHS"), Refused("a program in a folder that all nodes share")),
    other("begin", Some('b'), Value("TIME"), OF_THE_JOB),
    env("SLURM_WORKING_DIR", def(K::Chdir, "chdir", Some('D'), Value("DIR"), Works)),
    other("cluster-constraint", None, Value("LIST"), OF_THE_JOB),
    other("clusters", Some('M'), Value("NAMES"), Refused("the command talks to one controller; leave it out")),
    other("comment", None, Value("TEXT"), OF_THE_JOB),
    other("compress", None, Maybe("TYPE"), Void("nothing is copied to the nodes")),
    other("constraint", Some('C'), Value("LIST"), Refused("-w with nodes of the job")),
    other("container", None, Value("BUNDLE"), Refused("start the container in the step")),
    other("contiguous", None, Nothing, OF_THE_JOB),
    other("core-spec", Some('S'), Value("N"), OF_THE_JOB),
    other("cores-per-socket", None, Value("N"), SOCKETS),
    env("SLURM_CPU_BIND", other("cpu-bind", None, Maybe("SPEC"), BINDING)),
    other("cpu-freq", None, Value("SPEC"), FREQUENCY),
    other("cpus-per-gpu", None, Value("N"), Refused("--cpus-per-task")),
    env(
        "SRUN_CPUS_PER_TASK",
        def(
            K::CpusPerTask,
            "cpus-per-task",
            Some('c'),
            Value("N"),
            Differs("else what the job asked for, SLURM_CPUS_PER_TASK"),
        ),
    ),
    other("deadline", None, Value("TIME"), OF_THE_JOB),
    other("delay-boot", None, Value("MINUTES"), OF_THE_JOB),
    other("dependency", Some('d'), Value("LIST"), OF_THE_JOB),
    env("SLURM_DISABLE_STATUS", def(K::DisableStatus, "disable-status", Some('X'), Nothing, Works)),
    env(
        "SLURM_DISTRIBUTION",
        def(
            K::Distribution,
            "distribution",
            Some('m'),
            Value("TYPE"),
            Differs("block or cyclic over nodes; what is said of sockets and cores has no effect"),
        ),
    ),
    other("epilog", None, Value("PROGRAM"), SCRIPTS),
    env("SLURM_STDERRMODE", def(K::Error, "error", Some('e'), Value("MODE"), Works)),
    env("SLURM_EXACT", def(K::Exact, "exact", None, Nothing, Void("a step takes what it asks for, never all"))),
    def(K::Exclude, "exclude", Some('x'), Value("NODES"), Works),
    env(
        "SLURM_EXCLUSIVE",
        def(
            K::Exclusive,
            "exclusive",
            None,
            Maybe("user|mcs"),
            Void("a step has its cores for itself, unless --overlap is given"),
        ),
    ),
    env(
        "SRUN_EXPORT_ENV",
        def(K::Export, "export", None, Value("RULE"), Differs("else SLURM_EXPORT_ENV, as sbatch was told")),
    ),
    other("extra-node-info", Some('B'), Value("S[:C[:T]]"), SOCKETS),
    other("gid", None, Value("GROUP"), ROOT),
    other(
        "gpu-bind",
        None,
        Value("SPEC"),
        Ignored("each task sees its own with --gpus-per-task, else all of the step's"),
    ),
    other("gpu-freq", None, Value("SPEC"), FREQUENCY),
    def(K::Gpus, "gpus", Some('G'), Value("[TYPE:]N"), Differs("a multiple of the nodes, as many on each")),
    def(K::GpusPerNode, "gpus-per-node", None, Value("[TYPE:]N"), ONE_TYPE),
    other("gpus-per-socket", None, Value("[TYPE:]N"), SOCKETS),
    env("SLURM_GPUS_PER_TASK", def(K::GpusPerTask, "gpus-per-task", None, Value("[TYPE:]N"), ONE_TYPE)),
    env("SLURM_STEP_GRES", def(K::Gres, "gres", None, Value("LIST"), Differs("gpu alone, or none"))),
    other("gres-flags", None, Value("FLAGS"), OF_THE_JOB),
    def(K::Help, "help", Some('h'), Nothing, Works),
    other("het-group", None, Value("LIST"), Refused("heterogeneous jobs are not there yet")),
    env("SLURM_HINT", other("hint", None, Value("HINT"), Void("tasks get whole cores"))),
    other("hold", Some('H'), Nothing, OF_THE_JOB),
    other(
        "immediate",
        Some('I'),
        Maybe("SECONDS"),
        Refused("a step waits for its cores; use --overlap to wait for none"),
    ),
    env("SLURM_STDINMODE", def(K::Input, "input", Some('i'), Value("MODE"), Works)),
    env("SLURM_JOB_ID", def(K::JobId, "jobid", None, Value("ID"), Works)),
    def(K::JobName, "job-name", Some('J'), Value("NAME"), Works),
    env("SLURM_KILL_BAD_EXIT", def(K::KillOnBadExit, "kill-on-bad-exit", Some('K'), Maybe("0|1"), Works)),
    env("SLURM_LABELIO", def(K::Label, "label", Some('l'), Nothing, Works)),
    other("licenses", Some('L'), Value("NAMES"), OF_THE_JOB),
    other("mail-type", None, Value("EVENTS"), OF_THE_JOB),
    other("mail-user", None, Value("USER"), OF_THE_JOB),
    other("mcs-label", None, Value("LABEL"), OF_THE_JOB),
    other("mem", None, Value("SIZE"), MEMORY),
    env("SLURM_MEM_BIND", other("mem-bind", None, Value("SPEC"), BINDING)),
    other("mem-per-cpu", None, Value("SIZE"), MEMORY),
    other("mem-per-gpu", None, Value("SIZE"), MEMORY),
    other("mincpus", None, Value("N"), Refused("--ntasks-per-node with --cpus-per-task")),
    env(
        "SLURM_MPI_TYPE",
        def(
            K::Mpi,
            "mpi",
            None,
            Value("TYPE"),
            Differs("none alone; start MPI programs with their mpirun, which uses srun"),
        ),
    ),
    other("multi-prog", None, Nothing, Refused("a script that looks at SLURM_PROCID")),
    other("network", None, Value("SPEC"), Void("there is no switch to set up")),
    other("nice", None, Maybe("N"), OF_THE_JOB),
    other("no-allocate", Some('Z'), Nothing, Refused("a step needs a job")),
    other("no-kill", Some('k'), Maybe("off"), Refused("a step that lost a node ends")),
    def(K::Nodelist, "nodelist", Some('w'), Value("NODES"), Works),
    env("SLURM_JOB_NUM_NODES", def(K::Nodes, "nodes", Some('N'), Value("MIN[-MAX]"), Works)),
    env("SLURM_NTASKS", def(K::Ntasks, "ntasks", Some('n'), Value("N"), Works)),
    other("ntasks-per-core", None, Value("N"), Refused("--cpus-per-task")),
    other("ntasks-per-gpu", None, Value("N"), Refused("--gpus-per-task")),
    env("SLURM_NTASKS_PER_NODE", def(K::NtasksPerNode, "ntasks-per-node", None, Value("N"), Works)),
    other("ntasks-per-socket", None, Value("N"), SOCKETS),
    env("SLURM_OPEN_MODE", def(K::OpenMode, "open-mode", None, Value("append|truncate"), Works)),
    env("SLURM_STDOUTMODE", def(K::Output, "output", Some('o'), Value("MODE"), Works)),
    env("SLURM_OVERCOMMIT", def(K::Overcommit, "overcommit", Some('O'), Nothing, Works)),
    env("SLURM_OVERLAP", def(K::Overlap, "overlap", None, Nothing, Works)),
    other("oversubscribe", Some('s'), Nothing, OF_THE_JOB),
    other("partition", Some('p'), Value("NAME"), OF_THE_JOB),
    other("power", None, Value("FLAGS"), OF_THE_JOB),
    other("prefer", None, Value("LIST"), OF_THE_JOB),
    other("preserve-env", Some('E'), Nothing, Void("what the command line does not say comes from the variables")),
    other("priority", None, Value("N"), OF_THE_JOB),
    other("profile", None, Value("SPEC"), Ignored("no profile is written")),
    other("prolog", None, Value("PROGRAM"), SCRIPTS),
    other("propagate", None, Maybe("LIMITS"), Ignored("a step has the limits of its node's agent")),
    other("pty", None, Nothing, Refused("a step has no terminal yet; ssh to the node, where the site allows it")),
    other("qos", Some('q'), Value("NAME"), OF_THE_JOB),
    def(K::Quiet, "quiet", Some('Q'), Nothing, Works),
    def(K::QuitOnInterrupt, "quit-on-interrupt", None, Nothing, Works),
    other("reboot", None, Nothing, OF_THE_JOB),
    other("relative", Some('r'), Value("N"), Refused("-w with the names of the nodes")),
    other("reservation", None, Value("NAME"), OF_THE_JOB),
    other("resv-ports", None, Maybe("N"), Ignored("no ports are set aside")),
    other("send-libs", None, Maybe("yes|no"), Void("nothing is copied to the nodes")),
    other("signal", None, Value("SPEC"), OF_THE_JOB),
    other("slurmd-debug", None, Value("LEVEL"), Void("agents have a log of their own")),
    other("sockets-per-node", None, Value("N"), SOCKETS),
    other("spread-job", None, Nothing, OF_THE_JOB),
    other("switches", None, Value("N[@TIME]"), OF_THE_JOB),
    other("task-epilog", None, Value("PROGRAM"), SCRIPTS),
    other("task-prolog", None, Value("PROGRAM"), SCRIPTS),
    def(K::NtasksPerNode, "tasks-per-node", None, Value("N"), Works),
    other("test-only", None, Nothing, Refused("the job is there: a step that cannot be is refused at once")),
    other("thread-spec", None, Value("N"), OF_THE_JOB),
    other("threads", Some('T'), Value("N"), Void("nodes are told at once")),
    def(K::ThreadsPerCore, "threads-per-core", None, Value("N"), Differs("1 only: tasks get whole cores")),
    other("time", Some('t'), Value("LIMIT"), Ignored("the time limit of the job holds")),
    other("time-min", None, Value("LIMIT"), OF_THE_JOB),
    other("tmp", None, Value("SIZE"), OF_THE_JOB),
    other("tres-per-task", None, Value("LIST"), Refused("--cpus-per-task and --gpus-per-task")),
    other("uid", None, Value("USER"), ROOT),
    env("SLURM_UNBUFFEREDIO", def(K::Unbuffered, "unbuffered", Some('u'), Nothing, Works)),
    def(K::Usage, "usage", None, Nothing, Works),
    other("use-min-nodes", None, Nothing, OF_THE_JOB),
    def(K::Verbose, "verbose", Some('v'), Nothing, Void("there is nothing more to say")),
    def(K::Version, "version", Some('V'), Nothing, Works),
    env("SLURM_WAIT", def(K::Wait, "wait", Some('W'), Value("SECONDS"), Works)),
    other("wckey", None, Value("KEY"), OF_THE_JOB),
    other("x11", None, Maybe("all|first|last"), Refused("ssh -X to the node, where the site allows it")),
];
