//! What the tests of the simulator share: native twins of the policies, recorders, and hand-made logs.

pub mod native;

use ephor_core::{Stamped, State};
use ephor_model::Timestamp;
use ephor_sim::auditor::Auditor;
use ephor_sim::cluster::SimCluster;
use ephor_sim::driver::{self, Observer, Outcome};
use ephor_sim::policies::Policies;
use ephor_sim::swf::Swf;
use ephor_sim::workload::{Estimates, Workload};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Keeps the log and has it audited.
#[derive(Default)]
pub struct Recorder {
    pub log: Vec<Stamped>,
    pub auditor: Auditor,
}

impl Observer for Recorder {
    fn events(&mut self, events: &[Stamped]) {
        self.log.extend_from_slice(events);
        self.auditor.observe(events);
    }
}

/// Runs a workload on one node; the auditor must be content and the log must fold to the same state.
pub fn run(workload: &Workload, processors: u32, policies: &mut Policies) -> (Outcome, Recorder) {
    let mut recorder = Recorder::default();
    let outcome = driver::run(workload, &SimCluster::one_node(processors), policies, &mut recorder).unwrap();
    assert_eq!(recorder.auditor.findings(), &[] as &[String]);
    assert_eq!(outcome.groups_dropped, 0);
    assert!(fold(&recorder.log) == outcome.state, "the log folds to another state");
    (outcome, recorder)
}

/// The state that a log makes.
pub fn fold(log: &[Stamped]) -> State {
    let mut state = State::default();
    let mut touched = BTreeSet::new();
    log.iter().for_each(|event| state.apply(event, &mut touched).unwrap());
    state
}

/// Start seconds, in the order of submission.
pub fn seconds(outcome: &Outcome) -> Vec<Option<i64>> {
    outcome.starts.iter().map(|start| start.map(|Timestamp(ms)| ms / 1000)).collect()
}

/// A log of jobs (submit, run, processors, estimate).
pub fn log(jobs: &[(i64, i64, u32, i64)]) -> Swf {
    Swf::parse(swf_text(jobs).as_bytes()).unwrap()
}

/// The same as text.
pub fn swf_text(jobs: &[(i64, i64, u32, i64)]) -> String {
    let line = |(i, (submit, run, processors, estimate)): (usize, &(i64, i64, u32, i64))| {
        format!("{} {submit} -1 {run} -1 -1 -1 {processors} {estimate} -1 1 1 1 -1 -1 -1 -1 -1\n", i + 1)
    };
    jobs.iter().enumerate().map(line).collect()
}

/// The workload of such a log.
pub fn workload(jobs: &[(i64, i64, u32, i64)], processors: u32, estimates: Estimates) -> Workload {
    Workload::of_swf(&log(jobs), processors, estimates).unwrap()
}

/// A trace that lies beside the project; `None`, with a printed line, where it does not.
pub fn trace(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: there is no ../shared/traces/{name} beside the project");
    None
}

/// Whether this build has no policies in it (`make plugins` was not run); prints a line then.
pub fn no_policies() -> bool {
    let none = ephor_sim::policies::built_in(ephor_model::Role::Scheduling).is_empty();
    if none {
        println!("skipped: no policies are built in; `make build` makes them first");
    }
    none
}
