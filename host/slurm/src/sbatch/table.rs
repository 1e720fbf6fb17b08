//! The options of `sbatch`: the one source of its command line, its help and the table in the documents.

use crate::table::Fate::{Differs, Ignored, Refused, Void, Works};
use crate::table::Takes::{Maybe, Nothing, Value};
use crate::table::{Fate, OptionDef, Takes, from_env as env};

/// The options by what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named after the option that stands beside it in TABLE")]
pub enum Key {
    Account,
    Array,
    Begin,
    Chdir,
    Clusters,
    Comment,
    Constraint,
    CpusPerGpu,
    CpusPerTask,
    Deadline,
    Signal,
    Dependency,
    Error,
    Exclude,
    Exclusive,
    Export,
    Gpus,
    GpusPerNode,
    GpusPerTask,
    Gres,
    Help,
    Hint,
    Hold,
    IgnorePbs,
    Input,
    JobName,
    KillOnInvalidDep,
    Licenses,
    MailType,
    MailUser,
    Mem,
    MemPerCpu,
    MemPerGpu,
    Nice,
    NoRequeue,
    Nodelist,
    Nodes,
    Ntasks,
    NtasksPerGpu,
    NtasksPerNode,
    OpenMode,
    Output,
    Oversubscribe,
    Parsable,
    Partition,
    Qos,
    Quiet,
    Requeue,
    Reservation,
    ThreadsPerCore,
    Time,
    TimeMin,
    Usage,
    Verbose,
    Version,
    Wait,
    Wrap,
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

const STEPS: Fate = Ignored("it is about how steps bind, and changes nothing of the allocation");
const SOCKETS: Fate =
    Refused("nodes have cores, not sockets; leave it out, or use --ntasks-per-node and --cpus-per-task");
const NO_MAIL: Fate = Ignored("no mail is sent; `scontrol show job` shows it");
const SPECIAL: Fate = Refused("no cores are set apart; leave it out");

/// Every option of `sbatch` 22.05, in the order in which an ambiguous prefix lists them.
#[rustfmt::skip]
pub const TABLE: &[OptionDef<Key>] = &[
    env("SBATCH_ACCOUNT", def(K::Account, "account", Some('A'), Value("NAME"), Works)),
    env("SBATCH_ACCTG_FREQ", other("acctg-freq", None, Value("SPEC"), Ignored("agents measure at the end of an attempt"))),
    env("SBATCH_ARRAY_INX", def(K::Array, "array", Some('a'), Value("INDEXES"), Works)),
    env("SBATCH_BATCH", other("batch", None, Value("FEATURES"), Refused("--constraint, which holds for all nodes of the job"))),
    def(K::Begin, "begin", Some('b'), Value("TIME"), Works),
    other("bb", None, Value("SPEC"), Refused("there are no burst buffers; copy data at the start of the script")),
    other("bbf", None, Value("FILE"), Refused("there are no burst buffers; copy data at the start of the script")),
    other("cluster-constraint", None, Value("LIST"), Refused("--constraint; there is one cluster")),
    def(K::Chdir, "chdir", Some('D'), Value("DIR"), Works),
    env("SBATCH_CLUSTERS", def(K::Clusters, "cluster", Some('M'), Value("NAME"), Refused("the command talks to one controller; leave it out"))),
    def(K::Clusters, "clusters", Some('M'), Value("NAMES"), Refused("the command talks to one controller; leave it out")),
    def(K::Comment, "comment", None, Value("TEXT"), Works),
    env("SBATCH_CONTAINER", other("container", None, Value("BUNDLE"), Refused("start the container in the script"))),
    other("context", None, Value("CONTEXT"), Refused("security contexts are not set; leave it out")),
    other("contiguous", None, Nothing, Refused("--nodelist with nodes that lie together")),
    env("SBATCH_CONSTRAINT", def(K::Constraint, "constraint", Some('C'), Value("LIST"), Works)),
    env("SBATCH_CORE_SPEC", other("core-spec", Some('S'), Value("N"), SPECIAL)),
    other("cores-per-socket", None, Value("N"), SOCKETS),
    other("cpu-freq", None, Value("SPEC"), Ignored("frequencies are left to the node")),
    env("SBATCH_CPUS_PER_GPU", def(K::CpusPerGpu, "cpus-per-gpu", None, Value("N"), Works)),
    def(K::CpusPerTask, "cpus-per-task", Some('c'), Value("N"), Works),
    def(K::Deadline, "deadline", None, Value("TIME"), Works),
    env("SBATCH_DELAY_BOOT", other("delay-boot", None, Value("MINUTES"), Ignored("nodes are never booted for a job"))),
    def(K::Dependency, "dependency", Some('d'), Value("LIST"), Differs("`,` and `?` do not mix; no after:ID+MINUTES, afterburstbuffer, expand")),
    env("SBATCH_DISTRIBUTION", other("distribution", Some('m'), Value("TYPE"), STEPS)),
    def(K::Error, "error", Some('e'), Value("PATTERN"), Works),
    def(K::Exclude, "exclude", Some('x'), Value("NODES"), Works),
    env("SBATCH_EXCLUSIVE", def(K::Exclusive, "exclusive", None, Maybe("user|mcs"), Differs("nodes are shared with nobody; not with the same user or label only"))),
    env("SBATCH_EXPORT", def(K::Export, "export", None, Value("RULE"), Works)),
    other("export-file", None, Value("FILE"), Refused("--export=NAME=VALUE,...")),
    other("extra-node-info", Some('B'), Value("S[:C[:T]]"), SOCKETS),
    env("SBATCH_GET_USER_ENV", other("get-user-env", None, Maybe("SECONDS"), Refused("a script that begins with #!/bin/bash -l"))),
    other("gid", None, Value("GROUP"), Refused("jobs run as who submits them; use sudo -g")),
    env("SBATCH_GPU_BIND", other("gpu-bind", None, Value("SPEC"), STEPS)),
    env("SBATCH_GPU_FREQ", other("gpu-freq", None, Value("SPEC"), Ignored("frequencies are left to the node"))),
    env("SBATCH_GPUS", def(K::Gpus, "gpus", Some('G'), Value("[TYPE:]N"), Differs("one type at a time"))),
    env("SBATCH_GPUS_PER_NODE", def(K::GpusPerNode, "gpus-per-node", None, Value("[TYPE:]N"), Differs("one type at a time"))),
    other("gpus-per-socket", None, Value("[TYPE:]N"), Refused("--gpus-per-node; nodes have no sockets")),
    env("SBATCH_GPUS_PER_TASK", def(K::GpusPerTask, "gpus-per-task", None, Value("[TYPE:]N"), Differs("one type at a time"))),
    env("SBATCH_GRES", def(K::Gres, "gres", None, Value("LIST"), Differs("gpu only"))),
    env("SBATCH_GRES_FLAGS", other("gres-flags", None, Value("FLAGS"), Ignored("GPUs and cores are placed close to each other where that can be"))),
    def(K::Help, "help", Some('h'), Nothing, Works),
    env("SBATCH_HINT", def(K::Hint, "hint", None, Value("HINT"), Void("tasks get whole cores"))),
    def(K::Hold, "hold", Some('H'), Nothing, Works),
    env("SBATCH_IGNORE_PBS", def(K::IgnorePbs, "ignore-pbs", None, Nothing, Works)),
    env("SBATCH_INPUT", def(K::Input, "input", Some('i'), Value("PATTERN"), Works)),
    env("SBATCH_JOB_NAME", def(K::JobName, "job-name", Some('J'), Value("NAME"), Works)),
    def(K::KillOnInvalidDep, "kill-on-invalid-dep", None, Value("yes|no"), Differs("no: the job waits, as DependencyNeverSatisfied")),
    def(K::Licenses, "licenses", Some('L'), Value("NAME[:N],..."), Differs("all of them; no | between alternatives")),
    def(K::MailType, "mail-type", None, Value("EVENTS"), NO_MAIL),
    def(K::MailUser, "mail-user", None, Value("USER"), NO_MAIL),
    other("mcs-label", None, Value("LABEL"), Refused("--exclusive keeps all others out")),
    env("SBATCH_MEM_PER_NODE", def(K::Mem, "mem", None, Value("SIZE"), Differs("0 (all memory of a node) is not there: name an amount, or use --exclusive"))),
    env("SBATCH_MEM_BIND", other("mem-bind", None, Value("SPEC"), STEPS)),
    env("SBATCH_MEM_PER_CPU", def(K::MemPerCpu, "mem-per-cpu", None, Value("SIZE"), Differs("0 is not there: name an amount"))),
    env("SBATCH_MEM_PER_GPU", def(K::MemPerGpu, "mem-per-gpu", None, Value("SIZE"), Works)),
    other("mincpus", None, Value("N"), Refused("--ntasks-per-node with --cpus-per-task")),
    env("SBATCH_NETWORK", other("network", None, Value("SPEC"), Refused("there is no switch to set up; leave it out"))),
    def(K::Nice, "nice", None, Maybe("N"), Works),
    env("SBATCH_NO_KILL", other("no-kill", Some('k'), Maybe("off"), Refused("--requeue: a job that lost a node starts again"))),
    env("SBATCH_NO_REQUEUE", def(K::NoRequeue, "no-requeue", None, Nothing, Works)),
    other("nodefile", Some('F'), Value("FILE"), Refused("--nodelist")),
    def(K::Nodelist, "nodelist", Some('w'), Value("NODES"), Works),
    def(K::Nodes, "nodes", Some('N'), Value("MIN[-MAX]"), Works),
    def(K::Ntasks, "ntasks", Some('n'), Value("N"), Works),
    other("ntasks-per-core", None, Value("N"), Refused("--cpus-per-task")),
    def(K::NtasksPerGpu, "ntasks-per-gpu", None, Value("N"), Works),
    def(K::NtasksPerNode, "ntasks-per-node", None, Value("N"), Works),
    other("ntasks-per-socket", None, Value("N"), SOCKETS),
    def(K::NtasksPerGpu, "ntasks-per-tres", None, Value("N"), Works),
    env("SBATCH_OPEN_MODE", def(K::OpenMode, "open-mode", None, Value("append|truncate"), Works)),
    env("SBATCH_OUTPUT", def(K::Output, "output", Some('o'), Value("PATTERN"), Works)),
    env("SBATCH_OVERCOMMIT", other("overcommit", Some('O'), Nothing, Refused("--ntasks=1, with the number of processes left to what the script starts"))),
    def(K::Oversubscribe, "oversubscribe", Some('s'), Nothing, Ignored("cores are granted to one job at a time; `scontrol show job` shows it")),
    def(K::Parsable, "parsable", None, Nothing, Works),
    env("SBATCH_PARTITION", def(K::Partition, "partition", Some('p'), Value("NAME"), Differs("one; a list is not there"))),
    env("SBATCH_POWER", other("power", None, Value("FLAGS"), Ignored("power is left to the node"))),
    other("prefer", None, Value("LIST"), Ignored("it is a wish, and the job runs without it")),
    other("priority", None, Value("N"), Refused("--nice")),
    env("SBATCH_PROFILE", other("profile", None, Value("SPEC"), Ignored("no profile is written"))),
    other("propagate", None, Maybe("LIMITS"), Ignored("a job has the limits of its node's agent")),
    env("SBATCH_QOS", def(K::Qos, "qos", Some('q'), Value("NAME"), Works)),
    def(K::Quiet, "quiet", Some('Q'), Nothing, Works),
    other("reboot", None, Nothing, Refused("nodes are never booted for a job; ask an administrator")),
    env("SBATCH_REQUEUE", def(K::Requeue, "requeue", None, Nothing, Works)),
    env("SBATCH_RESERVATION", def(K::Reservation, "reservation", None, Value("NAME"), Differs("one; a list is not there"))),
    env("SBATCH_SIGNAL", def(K::Signal, "signal", None, Value("[B:]SIG[@SECONDS]"), Differs("to the second; without B: every process of the job but the script's shell gets it"))),
    other("sockets-per-node", None, Value("N"), SOCKETS),
    env("SBATCH_SPREAD_JOB", other("spread-job", None, Nothing, Ignored("it is a wish, and the job runs without it"))),
    env("SBATCH_REQ_SWITCH", other("switches", None, Value("N[@TIME]"), Refused("`ephor job submit --topology=LEVEL`"))),
    def(K::NtasksPerNode, "tasks-per-node", None, Value("N"), Works),
    other("test-only", None, Nothing, Refused("`sbatch --hold`, then `ephor job why ID`")),
    env("SBATCH_THREAD_SPEC", other("thread-spec", None, Value("N"), SPECIAL)),
    env("SBATCH_THREADS_PER_CORE", def(K::ThreadsPerCore, "threads-per-core", None, Value("N"), Differs("1 only: tasks get whole cores"))),
    env("SBATCH_TIMELIMIT", def(K::Time, "time", Some('t'), Value("LIMIT"), Works)),
    def(K::TimeMin, "time-min", None, Value("LIMIT"), Ignored("the limit is never cut short")),
    other("tmp", None, Value("SIZE"), Refused("--constraint with a feature of nodes with room on their disks")),
    other("uid", None, Value("USER"), Refused("jobs run as who submits them; use sudo -u")),
    env("SBATCH_USE_MIN_NODES", other("use-min-nodes", None, Nothing, Ignored("it is a wish, and the job runs without it"))),
    def(K::Usage, "usage", None, Nothing, Works),
    def(K::Verbose, "verbose", Some('v'), Nothing, Void("there is nothing more to say")),
    def(K::Version, "version", Some('V'), Nothing, Works),
    env("SBATCH_WAIT", def(K::Wait, "wait", Some('W'), Nothing, Works)),
    env("SBATCH_WAIT_ALL_NODES", other("wait-all-nodes", None, Value("0|1"), Ignored("a job starts when all of its nodes are there"))),
    env("SBATCH_WCKEY", other("wckey", None, Value("KEY"), Ignored("no such key is kept; --comment is"))),
    def(K::Wrap, "wrap", None, Value("COMMAND"), Works),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_taken_twice() {
        let mut names: Vec<&str> = TABLE.iter().map(|d| d.long).collect();
        let mut shorts: Vec<(char, bool)> =
            TABLE.iter().filter_map(|d| Some((d.short?, d.key == K::Clusters))).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        shorts.retain(|(_, several)| !several);
        let count = shorts.len();
        shorts.sort_unstable();
        shorts.dedup();
        assert_eq!(shorts.len(), count);
    }
}
