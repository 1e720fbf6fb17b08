//! A job as the commands that show jobs need it: plain values, already in one place.

use ephor_model::{JobState, MemRequest, Request, ResourceId, Span, Timestamp};

/// One condition on another job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependencyView {
    /// `afterok` and so on.
    pub kind: String,
    /// The other job; 0 for `singleton`.
    pub job: u64,
    /// The one element of the array that is meant.
    pub index: Option<u32>,
    /// Whether that job is an array.
    pub array: bool,
}

/// The place of a job in an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayPlace {
    /// The array's id.
    pub id: u64,
    /// Its index; `None`: it stands for all elements that nothing has touched.
    pub index: Option<u32>,
    /// Their indices, `5-9,12%2`.
    pub pending: Option<String>,
}

/// One job, one element of an array, or the untouched rest of one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the property of the job that has its name")]
pub struct JobView {
    pub id: u64,
    pub array: Option<ArrayPlace>,
    pub name: String,
    pub user: String,
    pub uid: u32,
    pub group: String,
    pub gid: u32,
    pub account: String,
    /// Partition, to users of Slurm.
    pub queue: String,
    pub qos: Option<String>,
    pub state: JobState,
    pub reason: String,
    pub submitted: Timestamp,
    pub eligible: Option<Timestamp>,
    pub begin: Option<Timestamp>,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    /// The latest end of a running job.
    pub expected_end: Option<Timestamp>,
    /// The start that is promised to it while it waits.
    pub promised_start: Option<Timestamp>,
    pub deadline: Option<Timestamp>,
    pub time_limit: Option<Span>,
    pub attempts: u32,
    pub exit_code: i32,
    pub exit_signal: i32,
    pub nodes: Vec<String>,
    pub request: Request,
    /// CPU time of its last attempt, in milliseconds.
    pub cpu_ms: i64,
    /// Most memory that it held at once, in MiB.
    pub peak_mem: i64,
    /// Thousandths of a core, asked for or held.
    pub cpu_milli: i64,
    pub priority: i64,
    pub nice: i64,
    pub work_dir: String,
    pub stdin: Option<String>,
    pub stdout: String,
    pub stderr: Option<String>,
    pub command: Option<String>,
    pub dependencies: Vec<DependencyView>,
    pub dependency_any: bool,
    pub comment: Option<String>,
    pub requeue: bool,
    pub licences: Vec<(String, u32)>,
    pub reservation: Option<String>,
    /// How it was asked for, by name; see [`ephor_model::JobSpec::words`].
    pub words: Vec<(String, String)>,
    /// Most cores that a node of its queue has; `None`: not known.
    pub node_cpus: Option<u32>,
    /// Memory per core of jobs of its queue that name none, in MiB; `None`: not known, or none is set.
    pub default_mem_per_cpu: Option<u64>,
}

impl JobView {
    /// What was said under that name by whoever submitted it.
    pub fn word(&self, name: &str) -> Option<&str> {
        self.words.iter().find(|(other, _)| other == name).map(|(_, text)| text.as_str())
    }

    /// Whether it waits.
    pub fn is_pending(&self) -> bool {
        self.state == JobState::Pending
    }

    /// `123`, `123_4` or `123_[5-9%2]`.
    pub fn display_id(&self) -> String {
        match &self.array {
            None => self.id.to_string(),
            Some(ArrayPlace { id, pending: Some(pending), .. }) => format!("{id}_[{pending}]"),
            Some(ArrayPlace { id, index, .. }) => format!("{id}_{}", index.unwrap_or(0)),
        }
    }

    /// How long it has run.
    pub fn ran(&self, now: Timestamp) -> Span {
        self.started.map_or(Span(0), |started| Span((self.ended.unwrap_or(now) - started).0.max(0)))
    }

    /// Whole cores, parts of one rounded up. Of a waiting job with a range of nodes and no word about tasks Slurm counts
    /// the cores of one task only.
    pub fn cpus(&self) -> i64 {
        if self.is_open() {
            return i64::from(self.request.cpus_per_task);
        }
        (self.cpu_milli.max(0) + 999) / 1000
    }

    /// Whether it waits and how many tasks it has hangs on the nodes that it gets.
    fn is_open(&self) -> bool {
        let r = &self.request;
        let tasks = r.tasks.is_some() || r.tasks_per_node.is_some() || !r.node_list.is_empty();
        self.is_pending() && !tasks && r.nodes_max.is_some_and(|max| max > r.nodes_min)
    }

    /// Nodes that it has, or at least takes.
    pub fn node_count(&self) -> u64 {
        match self.nodes.len() {
            0 => u64::from(self.request.nodes_min),
            n => n as u64,
        }
    }

    /// Nodes as Slurm foresees them for a waiting job whose tasks decide: as many as hold them when full, and for tasks
    /// of several cores at least 2.
    pub fn foreseen_nodes(&self) -> u64 {
        let r = &self.request;
        let (Some(tasks), None, Some(cpus), true) = (r.tasks, r.nodes_max, self.node_cpus, self.is_pending()) else {
            return self.node_count();
        };
        if r.tasks_per_node.is_some() {
            return self.node_count();
        }
        let on_each = (cpus / r.cpus_per_task.max(1)).max(1);
        let least = if r.cpus_per_task > 1 { 2 } else { 1 };
        u64::from(tasks.div_ceil(on_each).max(least)).max(self.node_count())
    }

    /// Memory over all nodes in MiB.
    pub fn memory(&self) -> u64 {
        if let (MemRequest::PerCpu(mib), true) = (self.request.mem, self.is_open()) {
            return mib.saturating_mul(u64::from(self.request.cpus_per_task));
        }
        u64::try_from(self.request.total().get(ResourceId::MEM)).unwrap_or(0)
    }

    /// The tasks of it.
    pub fn tasks(&self) -> u32 {
        self.request.task_count()
    }

    /// Cores that each node must have at least.
    pub fn min_cpus(&self) -> u32 {
        self.request.tasks_per_node.unwrap_or(1).saturating_mul(self.request.cpus_per_task)
    }

    /// `MinMemoryCPU` or `MinMemoryNode`, and how much.
    pub fn min_memory(&self) -> (&'static str, u64) {
        match self.request.mem {
            // Asked for by the GPU: what it would be without a word about it.
            MemRequest::PerNode(_) if self.word("MemPerTres").is_some() && self.default_mem_per_cpu.is_some() => {
                ("MinMemoryCPU", self.default_mem_per_cpu.unwrap_or(0))
            }
            MemRequest::PerNode(mib) => ("MinMemoryNode", mib),
            MemRequest::PerCpu(mib) => ("MinMemoryCPU", mib),
            MemRequest::Unset => ("MinMemoryNode", 0),
        }
    }

    /// The requests for GPUs by name, such as `TresPerNode` and `gres:gpu:2`: as they were spelt where that is still
    /// what the job asks for, else as the job says it.
    pub fn gpus(&self) -> Vec<(&'static str, String)> {
        use ephor_model::GpuRequest as G;
        let r = &self.request;
        let kinds = r.gpu_types.join("|");
        let kind = if kinds.is_empty() { String::new() } else { format!("{kinds}:") };
        let plain = match r.gpus {
            G::None => None,
            G::PerNode(n) => Some(("TresPerNode", format!("gres:gpu:{kind}{n}"))),
            G::Share(milli) => Some(("TresPerNode", format!("gres:gpu:{kind}0.{milli:03}"))),
            G::PerTask(n) => Some(("TresPerTask", format!("gres:gpu:{kind}{n}"))),
            G::Total(n) => Some(("TresPerJob", format!("gres:gpu:{kind}{n}"))),
        };
        let spelt: Vec<(&'static str, String)> = ["TresPerJob", "TresPerNode", "TresPerTask"]
            .into_iter()
            .filter_map(|name| Some((name, self.word(name)?.to_owned())))
            .collect();
        let same = |a: &str, b: &str| amount(a) == amount(b);
        let still = match &plain {
            None => spelt.iter().all(|(_, text)| amount(text).1 == 0),
            Some((name, text)) => spelt.iter().any(|(n, t)| n == name && t.split(',').any(|t| same(t, text))),
        };
        match still {
            true if !spelt.is_empty() => spelt,
            _ => plain.into_iter().collect(),
        }
    }
}

/// Type and number of `gres:gpu[:TYPE][:N]`.
fn amount(text: &str) -> (String, u64) {
    let rest = text.trim_start_matches("gres:").trim_start_matches("gpu");
    let mut kind = String::new();
    let mut number = 1;
    for part in rest.split(':').filter(|part| !part.is_empty()) {
        match part.parse() {
            Ok(n) => number = n,
            Err(_) => kind = part.to_owned(),
        }
    }
    (kind, number)
}
