//! The result of a simulation as it is shown: JSON for programs, names and values for people.

use crate::driver::Outcome;
use crate::metrics::{Metrics, Ran};
use crate::workload::Workload;
use serde::Serialize;
use serde_json::{Map, Value};

/// See the module. All times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The trace, as it was named.
    pub trace: String,
    /// The scheduling policy: name and version.
    pub policy: String,
    /// The priority policy; `None`: submission order.
    pub priority: Option<String>,
    /// Settings of the policies; those of the priority policy as `priority.key`.
    pub settings: Map<String, Value>,
    /// What was taken for estimates.
    pub estimates: String,
    /// Processors of the cluster.
    pub processors: u32,
    /// Jobs that ran.
    pub jobs: u64,
    /// Entries of the trace that are no jobs.
    pub dropped: u32,
    /// Jobs that ask for more processors than there are; left out.
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
    /// Longest wait.
    pub max_wait_s: i64,
    /// Processor seconds used, of those from the first submit to the last end.
    pub utilisation: f64,
    /// FNV-1a-64 over the start seconds as little-endian i64, in the order of submission.
    pub start_fnv: String,
    /// Cycles that ran.
    pub cycles: u64,
    /// Cycles whose work units ended before the policy did.
    pub cycles_out_of_budget: u64,
    /// Groups of plans that the core refused; 0 unless something is wrong.
    pub groups_dropped: u64,
    /// Time for reading the trace and loading the policies.
    pub prepare_s: f64,
    /// Time of the simulation itself.
    pub wall_s: f64,
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
    /// Their settings.
    pub settings: Map<String, Value>,
    /// What was taken for estimates.
    pub estimates: String,
    /// Processors of the cluster.
    pub processors: u32,
    /// Seconds of preparation.
    pub prepare_s: f64,
    /// Seconds of the simulation.
    pub wall_s: f64,
}

impl Report {
    /// The report on a run.
    pub fn of(workload: &Workload, outcome: &Outcome, heading: Heading) -> Self {
        let ran = ran(workload, outcome);
        let metrics = Metrics::of(&ran, i64::from(heading.processors));
        Self {
            trace: heading.trace,
            policy: heading.policy,
            priority: heading.priority,
            settings: heading.settings,
            estimates: heading.estimates,
            processors: heading.processors,
            jobs: metrics.jobs,
            dropped: workload.dropped,
            never_runnable: workload.never_runnable,
            never_started: (workload.jobs.len() - ran.len()) as u64,
            total_wait_s: metrics.total_wait,
            mean_wait_s: metrics.mean_wait,
            mean_bounded_slowdown: metrics.mean_bounded_slowdown,
            p90_wait_s: metrics.p90_wait,
            max_wait_s: metrics.max_wait,
            utilisation: metrics.utilisation,
            start_fnv: metrics.start_fnv,
            cycles: outcome.cycles,
            cycles_out_of_budget: outcome.out_of_budget,
            groups_dropped: outcome.groups_dropped,
            prepare_s: heading.prepare_s,
            wall_s: heading.wall_s,
        }
    }

    /// Names and values for people, in order; empty values are to be left out. Counts that should be 0 are only there where they are not.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let settings = self.settings.iter().map(|(key, value)| format!("{key}={value}"));
        let mut fields = vec![
            ("Trace", self.trace.clone()),
            ("Processors", self.processors.to_string()),
            ("Scheduling", self.policy.clone()),
            ("Priority", self.priority.clone().unwrap_or_else(|| "submission order".into())),
            ("Settings", settings.collect::<Vec<_>>().join(" ")),
            ("Estimates", self.estimates.clone()),
            ("Jobs", self.jobs.to_string()),
        ];
        let odd = [
            ("Entries dropped", u64::from(self.dropped), "without a run time or processors"),
            ("Never runnable", u64::from(self.never_runnable), "ask for more processors than there are"),
            ("Never started", self.never_started, "left waiting by the policy"),
            ("Out of budget", self.cycles_out_of_budget, "cycles whose work units ended early"),
            ("Groups dropped", self.groups_dropped, "refused by the core"),
        ];
        fields
            .extend(odd.into_iter().filter(|(_, n, _)| *n > 0).map(|(name, n, what)| (name, format!("{n} ({what})"))));
        fields.extend([
            ("Wait, total", format!("{} s", self.total_wait_s)),
            ("Wait, mean", format!("{:.1} s", self.mean_wait_s)),
            ("Wait, 90th percentile", format!("{} s", self.p90_wait_s)),
            ("Wait, longest", format!("{} s", self.max_wait_s)),
            ("Bounded slowdown, mean", format!("{:.3}", self.mean_bounded_slowdown)),
            ("Utilisation", format!("{:.2} %", self.utilisation * 100.0)),
            ("Fingerprint of starts", self.start_fnv.clone()),
            ("Cycles", self.cycles.to_string()),
            ("Time", format!("{:.2} s, and {:.2} s to prepare", self.wall_s, self.prepare_s)),
        ]);
        fields
    }
}

/// The jobs that ran, in the order of submission.
fn ran(workload: &Workload, outcome: &Outcome) -> Vec<Ran> {
    let jobs = workload.jobs.iter().zip(&outcome.starts);
    jobs.filter_map(|(job, start)| {
        Some(Ran {
            submit: job.submit.0 / 1000,
            start: (*start)?.0 / 1000,
            run: job.run.0 / 1000,
            processors: job.spec.request.cpu_count() as i64,
        })
    })
    .collect()
}
