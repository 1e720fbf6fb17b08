//! The runner of scenarios: what it reads, what it finds, and that it lets nothing pass that it did not look at.

use crate::common::native::{Easy, Idle};
use ephor_sim::auditor::Auditor;
use ephor_sim::policies::Policies;
use ephor_sim::scenarios::{CaseReport, ScenarioReport, run};
use ephor_sim::simulate::Choice;
use std::collections::BTreeMap;
use std::path::Path;

fn report(cases: &str, policies: &mut Policies) -> ScenarioReport {
    let text = format!("meta: {{format: ephor-scenarios/1}}\nscenarios:\n{cases}");
    audited(&text, policies)
}

fn audited(text: &str, policies: &mut Policies) -> ScenarioReport {
    let mut auditors: BTreeMap<String, Auditor> = BTreeMap::new();
    let mut watch = |case: &str, events: &[ephor_core::Stamped]| {
        auditors.entry(case.to_owned()).or_default().observe(events);
    };
    let report = run(text, "test", "native", policies, &mut watch).unwrap();
    for (case, auditor) in auditors {
        assert_eq!(auditor.findings(), &[] as &[String], "{case}");
    }
    assert_eq!(report.passed + report.failed, report.cases.len() as u32);
    report
}

fn why(cases: &str) -> String {
    let report = report(cases, &mut Policies::native(Easy));
    report.cases[0].why.join("; ")
}

#[test]
fn a_case_that_comes_out_as_expected_passes() {
    let case = "
- id: A
  title: two halves share a GPU, the third job waits
  cluster: {n0: {gpus: 1}, n1: {gpus: 2}}
  queues: [{name: top, quota: 2}, {name: q, parent: top, quota: 1, limit: 4, priority: 101}]
  running: [{job: r, queue: q, class: build, gpu: 0.5, at: [n0], device: 0}, {job: w, queue: q, class: train, gpu: 1, pods: 2, at: [n1, n1]}]
  pending: [{job: a, queue: q, class: train, gpu: 0.5}, {job: b, queue: q, class: train, gpu: 0.5}]
  expect: {r: {run: true, at: [n0], device: 0}, w: {run_pods: 2, at: [n1, n1]}, a: {run: true, at: [n0], device: 0}, b: {wait: true, reason: Resources}}
";
    let found = report(case, &mut Policies::native(Easy));
    assert_eq!((found.passed, found.failed, found.cases[0].why.clone()), (1, 0, Vec::new()));
    let found = report(case, &mut Policies::native(Idle));
    assert_eq!((found.passed, found.failed), (0, 1));
    assert!(found.cases[0].why[0].starts_with("a waits"), "{:?}", found.cases[0].why);
}

#[test]
fn what_is_not_as_expected_is_said() {
    let with = |expect: &str| {
        why(&format!(
            "
- id: A
  cluster: {{n0: {{gpus: 2, labels: {{zone: a}}}}, n1: {{gpus: 2}}}}
  queues: [{{name: q}}]
  pending: [{{job: a, queue: q, class: train, gpu: 2}}, {{job: b, queue: q, class: train, gpu: 9}}]
  expect: {{{expect}}}
"
        ))
    };
    assert_eq!(with("a: {run: true, at: [n0], within: {zone: a}}, b: {wait: true}"), "");
    assert!(with("a: {wait: true}").contains("a runs on n0"));
    assert!(with("a: {run: true, at: [n1]}").contains("a runs on n0, not on n1"));
    assert!(with("a: {within: {zone: b}}").contains("outside zone b"));
    assert!(with("a: {run_pods: 2}").contains("1 pods of a run, not 2"));
    assert!(with("b: {run: true}").contains("b waits: "));
    assert!(with("b: {wait: true, reason: Other}").contains("not Other"));
    assert!(with("c: {wait: true}").contains("no job 'c'"));
    assert!(with("").contains("nothing is expected"));
}

#[test]
fn what_cannot_be_said_fails_with_what_is_missing() {
    let with = |pending: &str| {
        why(&format!(
            "
- id: A
  cluster: {{n0: {{gpus: 2}}}}
  queues: [{{name: q}}]
  pending: [{{job: a, queue: q, class: train, {pending}}}]
  expect: {{a: {{wait: true}}}}
"
        ))
    };
    assert!(with("gpu: 1, pods: 4, min: 1").contains("fewer pods"));
    assert!(with("gpu: 1, required: a=b").contains("not a level of the topology"));
    assert!(with("pod_mig: [{1g.5gb: 1}]").contains("MIG"));
    assert!(with("gpu: 1.5").contains("parts of one"));
    assert!(with("gpu: 1, colour: red").contains("unknown field `colour`"));
    assert!(why("- {id: B, action: stale_gang}").contains("'stale_gang' cannot be said yet"));
    assert!(why("- {id: B, action: fair_share, total: 8, shares: []}").contains("nothing is expected"));
    let shares =
        "- {id: B, action: fair_share, total: 8, shares: [{q: a, request: 9, expect: 8}], expect_remaining: 0}";
    assert!(why(shares).contains("does not say what each queue is due"));
    let crowded = "
- id: C
  cluster: {n0: {gpus: 1}}
  queues: [{name: q}]
  running: [{job: a, queue: q, class: train, gpu: 2, at: [n0]}]
  expect: {a: {run: true}}
";
    assert!(why(crowded).contains("no free GPU on node 'n0'"));
}

#[test]
fn the_shared_cases_are_all_understood() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/scenarios/queues.yaml");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: there is no ../shared/scenarios/queues.yaml beside the project");
        return;
    };
    let found = audited(&text, &mut Policies::native(Easy));
    assert_eq!(found.cases.len(), 48);
    for case in &found.cases {
        assert_eq!(case.passed, case.why.is_empty());
        assert!(!case.why.iter().any(|why| why.contains("not understood")), "{}: {:?}", case.id, case.why);
    }
    let passed: Vec<_> = found.cases.iter().filter(|c| c.passed).map(|c| c.id.as_str()).collect();
    // These need neither quotas nor evictions, whatever the policy.
    for id in ["ALLOC-03", "ALLOC-11", "PREE-04", "CONS-02", "GANG-01", "FRAC-02"] {
        assert!(passed.contains(&id), "{id}: {passed:?}");
    }
}

/// What has no words yet: elastic gangs, stale gangs, MIG.
const NOT_SAID: [&str; 4] = ["RECL-16", "GANG-04", "GANG-06", "FRAC-06"];

#[test]
fn the_shared_cases_pass_through_the_component() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/scenarios/queues.yaml");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: there is no ../shared/scenarios/queues.yaml beside the project");
        return;
    };
    if !ephor_sim::policies::built_in(ephor_model::Role::Scheduling).contains(&"fairshare") {
        println!("skipped: the policies were not built before the host");
        return;
    }
    let fairshare = Choice { scheduling: "fairshare".into(), ..Choice::default() };
    let (mut policies, _) = Policies::load(&fairshare).unwrap();
    let found = audited(&text, &mut policies);
    let unsaid = |id: &str| NOT_SAID.contains(&id);
    let missing = |why: &[String]| !why.is_empty() && why.iter().all(|why| why.contains("yet"));
    let fails = |case: &&CaseReport| !(case.passed || unsaid(&case.id) && missing(&case.why));
    let wrong: Vec<_> = found.cases.iter().filter(fails).map(|case| (&case.id, &case.why)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let new: Vec<_> = found.cases.iter().filter(|case| case.passed && unsaid(&case.id)).map(|case| &case.id).collect();
    assert!(new.is_empty(), "these can be said now: {new:?}");
}
