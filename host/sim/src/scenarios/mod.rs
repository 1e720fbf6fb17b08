//! Runs files of scenarios: small clusters with jobs that run and wait, and what must have become of them.

mod build;
mod check;
mod fair;
mod file;

use crate::driver::{self, Observer, Settled};
use crate::policies::Policies;
use build::Built;
use ephor_core::Stamped;
use serde::Serialize;
use serde_json::{Value, json};

/// Cycles without a change after which a case has settled.
const QUIET: u32 = 5;
/// Cycles after which a case that never settles is given up.
const MOST: u32 = 200;

/// How a file went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScenarioReport {
    /// The file, as it was named.
    pub file: String,
    /// The scheduling policy.
    pub policy: String,
    /// Cases in which everything was as expected.
    pub passed: u32,
    /// The others.
    pub failed: u32,
    /// All of them, in the order of the file.
    pub cases: Vec<CaseReport>,
}

/// How a case went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseReport {
    /// Its name.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// Whether everything was as expected.
    pub passed: bool,
    /// What was not; a case that cannot be said in Ephor's words fails with what is missing.
    pub why: Vec<String>,
    /// Cycles until it had settled.
    pub cycles: u64,
}

/// Runs every case of a file under these policies. `watch` is shown the events of each case, with its name.
///
/// # Errors
/// The text is no file of scenarios.
pub fn run(
    text: &str,
    file: &str,
    policy: &str,
    policies: &mut Policies,
    watch: &mut dyn FnMut(&str, &[Stamped]),
) -> Result<ScenarioReport, String> {
    let mut report =
        ScenarioReport { file: file.to_owned(), policy: policy.to_owned(), passed: 0, failed: 0, cases: Vec::new() };
    for read in file::read(text)? {
        let case = match read {
            Ok(case) => {
                let (cycles, why) = run_case(&case, policies, &mut Watch { case: &case.id, watch });
                CaseReport { id: case.id, title: case.title, passed: why.is_empty(), why, cycles }
            }
            Err((id, why)) => CaseReport { id, title: String::new(), passed: false, why: vec![why], cycles: 0 },
        };
        match case.passed {
            true => report.passed += 1,
            false => report.failed += 1,
        }
        report.cases.push(case);
    }
    Ok(report)
}

struct Watch<'a> {
    case: &'a str,
    watch: &'a mut dyn FnMut(&str, &[Stamped]),
}

impl Observer for Watch<'_> {
    fn events(&mut self, events: &[Stamped]) {
        (self.watch)(self.case, events);
    }
}

/// What the policy is set to for a case, where it knows such settings and nobody set them otherwise: who gives way is gone
/// in the next cycle, any number may move, and only the step that the case is about is done.
fn settings(case: &file::Case) -> Vec<(&'static str, Value)> {
    let mut settings = vec![("grace_s", json!(0)), ("consolidation_limit", json!(-1))];
    let actions = match case.action.as_deref() {
        Some(fair::ACTION) => json!([]),
        Some("consolidation") => json!(["consolidate"]),
        Some(action) => json!([action]),
        None => return settings,
    };
    settings.push(("actions", actions));
    // Where a case tells of past use but not how much it counts, it counts in full.
    let told = case.shares.iter().any(|share| share.usage > 0.0).then_some(1.0);
    settings.extend(case.k.or(told).map(|k| ("k_thousandths", json!((k * 1_000.0).round() as i64))));
    settings
}

/// Cycles, and what was not as expected.
fn run_case(case: &file::Case, policies: &mut Policies, observer: &mut dyn Observer) -> (u64, Vec<String>) {
    if let Err(error) = policies.set_beside(&settings(case)) {
        return (0, vec![error.to_string()]);
    }
    if case.action.as_deref() == Some(fair::ACTION) {
        return fair::run(case, policies, observer);
    }
    let built = match Built::of(case) {
        Ok(built) => built,
        Err(why) => return (0, why),
    };
    let settled = driver::settle(&built.workload, &built.cluster, &built.running, policies, observer, (QUIET, MOST));
    match settled {
        Ok(Settled { outcome, settled: false, .. }) => {
            (outcome.cycles, vec![format!("it had not settled after {MOST} cycles")])
        }
        Ok(settled) => (settled.outcome.cycles, check::check(case, &built, &settled)),
        Err(error) => (0, vec![error.to_string()]),
    }
}
