//! The cases that do not mean here what they mean in Slurm, and why.

/// What the model has no word for: refused, with what comes nearest.
#[rustfmt::skip]
pub const WITHOUT: &[(&str, &str)] = &[
    ("gres-shard", "parts of a GPU are thousandths of one: --gpus-per-node=0.5"),
    ("mps", "parts of a GPU are thousandths of one: --gpus-per-node=0.5"),
    ("hetjob", "a job has one request"),
    ("nemo-het", "a job has one request"),
    ("part-list", "a job is in one queue"),
    ("af3-heredoc", "a job is in one queue"),
    ("mem-zero", "no amount of memory means all of a node"),
    ("deepl", "no amount of memory means all of a node, and cores are not given twice (--overcommit)"),
    ("exclusive-user", "nodes are shared with nobody or with anybody"),
    ("exclusive-mcs", "nodes are shared with nobody or with anybody"),
    ("leonardo", "nodes have cores and no sockets"),
    ("array-toobig", "arrays are bounded by their elements, not by their largest index: there is no MaxArraySize"),
];

/// What the controller refuses, which has no part in reading and showing alone.
pub const CONTROLLER: &[(&str, &str)] =
    &[("bad-license", "which licences there are"), ("bad-part", "which queues there are")];

/// What the controller means otherwise, and why that is held to be better.
pub const DIFFERENT: &[(&str, &str)] =
    &[("dep-missing", "a dependency on a job that there never was is a mistake, and is refused at once")];
