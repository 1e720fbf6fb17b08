//! The result of a simulation as it is shown: JSON for programs, names and values for people.

use crate::driver::Outcome;
use crate::fill::FillReport;
use crate::metrics::{self, Metrics, Ran};
use crate::queues::{self, QueueReport};
use crate::workload::{Unit, Workload};
use serde::Serialize;
use serde_json::{Map, Value};
use std::time::Duration;

/// See the module. All times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The trace, as it was named.
    pub trace: String,
    /// The scheduling policy: name and version.
    pub policy: String,
    /// The priority policy; `None`: submission order.
    pub priority: Option<String>,
    /// Accounting policy with its version; `None`: nothing was charged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accounting: Option<String>,
    /// Settings of the policies; those of the priority policy as `priority.key`.
    pub settings: Map<String, Value>,
    /// What was taken for estimates.
    pub estimates: String,
    /// Nodes of the cluster.
    pub nodes: u32,
    /// Its processors, all nodes together.
    pub processors: u32,
    /// Its GPUs.
    pub gpus: f64,
    /// What sizes, utilisation and loss of capacity are counted in: `processors` or `gpus`.
    pub unit: String,
    /// Jobs that ran.
    pub jobs: u64,
    /// Entries of the trace that are no jobs.
    pub dropped: u32,
    /// Jobs that ask for more than the cluster has; left out.
    pub never_runnable: u32,
    /// Jobs that were submitted and that the policy never started.
    pub never_started: u64,
    /// Waits together.
    pub total_wait_s: i64,
    /// Their mean.
    pub mean_wait_s: f64,
    /// Mean of max(1, (wait + run) / max(run, 10)).
    pub mean_bounded_slowdown: f64,
    /// Of n sorted waits the one with index floor(9 (n - 1) / 10).
    pub p90_wait_s: i64,
    /// The one with index floor(99 (n - 1) / 100).
    pub p99_wait_s: i64,
    /// Longest wait.
    pub max_wait_s: i64,
    /// Processor (or GPU) seconds used, of those from the first submit to the last end.
    pub utilisation: f64,
    /// The part of them that was free while jobs that asked for as much waited.
    pub loss_of_capacity: f64,
    /// Of the free GPUs the part on nodes that were partly taken; `None`: no GPU was ever free.
    pub gpu_fragmentation: Option<f64>,
    /// FNV-1a-64 over the start seconds as little-endian i64, in the order of submission.
    pub start_fnv: String,
    /// Cycles that ran.
    pub cycles: u64,
    /// Cycles whose work units ended before the policy did.
    pub cycles_out_of_budget: u64,
    /// Groups of plans that the core refused; 0 unless something is wrong.
    pub groups_dropped: u64,
    /// Attempts that had to give way.
    pub evictions: u64,
    /// Of all that queues were promised and asked for the part that they held; `None`: nothing was promised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promises_kept: Option<f64>,
    /// How each queue fared, by name; empty where there is one alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueReport>,
    /// How long cycles took.
    pub decision_ms: Decisions,
    /// How full a cluster became that was filled.
    #[serde(flatten)]
    pub fill: Option<FillReport>,
    /// Time for reading the trace and loading the policies.
    pub prepare_s: f64,
    /// Time of the simulation itself.
    pub wall_s: f64,
}

/// Wall times of cycles, in milliseconds: of the policies with the core, without the simulation around them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Decisions {
    /// Median.
    pub p50: f64,
    /// Of n sorted times the one with index floor(99 (n - 1) / 100).
    pub p99: f64,
    /// Longest.
    pub max: f64,
}

impl Decisions {
    /// Of these cycles.
    pub fn of(times: &[Duration]) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let ms = |part, whole| metrics::at(&sorted, part, whole).unwrap_or_default().as_secs_f64() * 1000.0;
        Self { p50: ms(1, 2), p99: ms(99, 100), max: ms(1, 1) }
    }
}

/// What a report says beside the figures.
#[derive(Clone, Debug, Default)]
pub struct Heading {
    /// The trace, as it was named.
    pub trace: String,
    /// The scheduling policy.
    pub policy: String,
    /// The priority policy.
    pub priority: Option<String>,
    /// The accounting policy.
    pub accounting: Option<String>,
    /// Their settings.
    pub settings: Map<String, Value>,
    /// What was taken for estimates.
    pub estimates: String,
    /// Nodes of the cluster.
    pub nodes: u32,
    /// Processors of the cluster.
    pub processors: u32,
    /// Thousandths of a GPU of the cluster.
    pub milli_gpus: i64,
    /// Of the free GPUs the part on nodes that were partly taken.
    pub gpu_fragmentation: Option<f64>,
    /// How each queue fared.
    pub queues: Vec<QueueReport>,
    /// How full the cluster became.
    pub fill: Option<FillReport>,
    /// Seconds of preparation.
    pub prepare_s: f64,
    /// Seconds of the simulation.
    pub wall_s: f64,
}

impl Report {
    /// The report on a run.
    pub fn of(workload: &Workload, outcome: &Outcome, heading: Heading) -> Self {
        let ran: Vec<Ran> = ran_jobs(workload, outcome).into_iter().map(|(_, ran)| ran).collect();
        let capacity = match workload.unit {
            Unit::Processors => i64::from(heading.processors),
            Unit::MilliGpus => heading.milli_gpus,
        };
        let metrics = Metrics::of(&ran, capacity);
        Self {
            trace: heading.trace,
            policy: heading.policy,
            priority: heading.priority,
            accounting: heading.accounting,
            settings: heading.settings,
            estimates: heading.estimates,
            nodes: heading.nodes,
            processors: heading.processors,
            gpus: heading.milli_gpus as f64 / 1000.0,
            unit: workload.unit.name().to_owned(),
            jobs: metrics.jobs,
            dropped: workload.dropped,
            never_runnable: workload.never_runnable,
            never_started: (workload.jobs.len() - ran.len()) as u64,
            total_wait_s: metrics.total_wait,
            mean_wait_s: metrics.mean_wait,
            mean_bounded_slowdown: metrics.mean_bounded_slowdown,
            p90_wait_s: metrics.p90_wait,
            p99_wait_s: metrics.p99_wait,
            max_wait_s: metrics.max_wait,
            utilisation: metrics.utilisation,
            loss_of_capacity: metrics.loss_of_capacity,
            gpu_fragmentation: heading.gpu_fragmentation,
            start_fnv: metrics.start_fnv,
            cycles: outcome.cycles,
            cycles_out_of_budget: outcome.out_of_budget,
            groups_dropped: outcome.groups_dropped,
            evictions: outcome.evictions,
            promises_kept: queues::kept(&heading.queues),
            queues: if heading.queues.len() > 1 { heading.queues } else { Vec::new() },
            decision_ms: Decisions::of(&outcome.decisions),
            fill: heading.fill,
            prepare_s: heading.prepare_s,
            wall_s: heading.wall_s,
        }
    }

    /// Names and values for people, in order; empty values are to be left out. Counts that should be 0 are only there where they are not.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let settings = self.settings.iter().map(|(key, value)| format!("{key}={value}"));
        let mut fields = vec![
            ("Trace", self.trace.clone()),
            ("Nodes", if self.nodes > 1 { self.nodes.to_string() } else { String::new() }),
            ("Processors", self.processors.to_string()),
            ("GPUs", if self.gpus > 0.0 { self.gpus.to_string() } else { String::new() }),
            ("Scheduling", self.policy.clone()),
            ("Priority", self.priority.clone().unwrap_or_else(|| "submission order".into())),
            ("Accounting", self.accounting.clone().unwrap_or_default()),
            ("Settings", settings.collect::<Vec<_>>().join(" ")),
            ("Estimates", if self.fill.is_none() { self.estimates.clone() } else { String::new() }),
            ("Jobs", self.jobs.to_string()),
        ];
        let odd = [
            ("Entries dropped", u64::from(self.dropped), "without a run time or processors"),
            ("Never runnable", u64::from(self.never_runnable), "ask for more than the cluster has"),
            ("Never started", self.never_started, "left waiting by the policy"),
            ("Out of budget", self.cycles_out_of_budget, "cycles whose work units ended early"),
            ("Groups dropped", self.groups_dropped, "refused by the core"),
            ("Evictions", self.evictions, "attempts that gave way to others"),
        ];
        fields
            .extend(odd.into_iter().filter(|(_, n, _)| *n > 0).map(|(name, n, what)| (name, format!("{n} ({what})"))));
        match &self.fill {
            Some(fill) => fields.extend(filled(fill)),
            None => fields.extend(self.waits()),
        }
        let decisions = self.decision_ms;
        let text = format!("{:.2} ms, {:.2} ms, {:.2} ms", decisions.p50, decisions.p99, decisions.max);
        fields.extend([
            ("Fingerprint of starts", self.start_fnv.clone()),
            ("Cycles", self.cycles.to_string()),
            ("Decision, p50, p99, max", text),
            ("Time", format!("{:.2} s, and {:.2} s to prepare", self.wall_s, self.prepare_s)),
        ]);
        fields
    }

    fn waits(&self) -> Vec<(&'static str, String)> {
        let percent = |part: f64| format!("{:.2} %", part * 100.0);
        let utilisation = match self.unit == Unit::MilliGpus.name() {
            true => format!("{} of GPUs", percent(self.utilisation)),
            false => percent(self.utilisation),
        };
        vec![
            ("Wait, total", format!("{} s", self.total_wait_s)),
            ("Wait, mean", format!("{:.1} s", self.mean_wait_s)),
            ("Wait, 90th percentile", format!("{} s", self.p90_wait_s)),
            ("Wait, 99th percentile", format!("{} s", self.p99_wait_s)),
            ("Wait, longest", format!("{} s", self.max_wait_s)),
            ("Bounded slowdown, mean", format!("{:.3}", self.mean_bounded_slowdown)),
            ("Utilisation", utilisation),
            ("Loss of capacity", percent(self.loss_of_capacity)),
            ("Free GPUs on broken nodes", self.gpu_fragmentation.map(percent).unwrap_or_default()),
            ("Promised to queues and kept", self.promises_kept.map(percent).unwrap_or_default()),
        ]
    }
}

fn filled(fill: &FillReport) -> Vec<(&'static str, String)> {
    let percent = |part: f64| format!("{:.1} % of the GPUs", part * 100.0);
    vec![
        ("Demand", percent(fill.demand)),
        ("Demand at first refusal", fill.demand_at_first_refusal.map_or_else(|| "no refusal".into(), percent)),
        ("Pods refused", format!("{} of {}", fill.refused, fill.pods)),
        ("GPUs allocated", format!("{:.1}", fill.allocated_gpus)),
        ("GPUs unallocated", format!("{:.1}", fill.unallocated_gpus)),
        ("GPUs fragmented", format!("{:.1}", fill.fragmented_gpus)),
    ]
}

/// The jobs that ran, in the order of submission, with their places in the workload.
pub fn ran_jobs(workload: &Workload, outcome: &Outcome) -> Vec<(usize, Ran)> {
    let jobs = workload.jobs.iter().zip(&outcome.starts).enumerate();
    jobs.filter_map(|(place, (job, start))| {
        let ran = Ran {
            submit: job.submit.0 / 1000,
            start: (*start)?.0 / 1000,
            run: job.run.0 / 1000,
            size: workload.unit.size(&job.spec.request),
        };
        Some((place, ran))
    })
    .collect()
}
