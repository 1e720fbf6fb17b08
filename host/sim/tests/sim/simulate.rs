//! The whole way from a file to a report, through the Wasm policies, and what goes wrong on it.

use crate::common::{Recorder, no_policies, run, seconds, swf_text, trace, workload};
use ephor_sim::policies::Policies;
use ephor_sim::report::{Decisions, Report};
use ephor_sim::settings::Settings;
use ephor_sim::simulate::{Choice, Options, simulate};
use ephor_sim::workload::Estimates;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

fn options(trace: &Path) -> Options {
    Options { trace: trace.to_owned(), processors: Some(4), ..Options::default() }
}

fn file(text: &[u8]) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("log.swf");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

/// A log whose schedule was worked out by hand in `small`.
fn small() -> String {
    swf_text(&[(0, 10, 3, 10), (1, 5, 4, 5), (2, 4, 1, 8), (3, 20, 1, 20), (4, 2, 1, 2)])
}

fn report(options: &Options) -> Report {
    let mut recorder = Recorder::default();
    let report = simulate(options, &mut recorder).unwrap();
    assert_eq!(recorder.auditor.findings(), &[] as &[String]);
    report
}

fn error(options: &Options) -> String {
    simulate(options, &mut ()).unwrap_err().to_string()
}

#[test]
fn a_small_log_through_the_policies() {
    if no_policies() {
        return;
    }
    let (_folder, path) = file(small().as_bytes());
    let backfill = report(&options(&path));
    assert_eq!((backfill.jobs, backfill.total_wait_s, backfill.max_wait_s), (5, 9 + 12 + 2, 12));
    assert!(backfill.policy.starts_with("scheduling-backfill "), "{}", backfill.policy);
    let fifo = report(&Options { choice: Choice { scheduling: "fifo".into(), ..Choice::default() }, ..options(&path) });
    assert_eq!((fifo.jobs, fifo.total_wait_s), (5, 9 + 13 + 12 + 11));
}

#[test]
fn gzip_is_told_by_content_and_processors_by_the_header() {
    if no_policies() {
        return;
    }
    let (_folder, path) = file(b"");
    let mut gzip = flate2::write::GzEncoder::new(std::fs::File::create(&path).unwrap(), flate2::Compression::fast());
    gzip.write_all(format!("; MaxProcs: 4\n{}", small()).as_bytes()).unwrap();
    gzip.finish().unwrap();
    let report = report(&Options { processors: None, ..options(&path) });
    assert_eq!((report.processors, report.total_wait_s), (4, 23));
}

#[test]
fn a_priority_policy_changes_the_order() {
    if no_policies() {
        return;
    }
    // While job 1 runs, job 2 and job 3 come; job 2 is nice, so job 3 goes first where nice counts.
    let mut workload = workload(&[(0, 10, 4, 10), (1, 7, 4, 7), (1, 5, 4, 5)], 4, Estimates::Max);
    Arc::make_mut(&mut workload.jobs[1].spec).nice = 100;
    let mut settings = Settings::default();
    settings.set("priority.nice_weight=5").unwrap();
    let fifo = Choice { scheduling: "fifo".into(), ..Choice::default() };
    let with = Choice { priority: Some("multifactor".into()), settings, ..fifo.clone() };
    let (mut with, chosen) = Policies::load(&with).unwrap();
    assert!(chosen.priority.is_some_and(|name| name.starts_with("priority-multifactor ")));
    assert_eq!(seconds(&run(&workload, 4, &mut with).0), [Some(0), Some(15), Some(10)]);
    let (mut without, _) = Policies::load(&fifo).unwrap();
    assert_eq!(seconds(&run(&workload, 4, &mut without).0), [Some(0), Some(10), Some(17)]);
}

#[test]
fn a_priority_policy_is_named_in_the_report() {
    if no_policies() {
        return;
    }
    let (_folder, path) = file(small().as_bytes());
    let with =
        Options { choice: Choice { priority: Some("multifactor".into()), ..Choice::default() }, ..options(&path) };
    assert!(report(&with).priority.is_some_and(|name| name.starts_with("priority-multifactor ")));
}

#[test]
fn settings_reach_the_policy() {
    if no_policies() {
        return;
    }
    let (_folder, path) = file(small().as_bytes());
    let mut wrong = options(&path);
    wrong.choice.settings.set("reservations=0").unwrap();
    assert!(error(&wrong).contains("scheduling-backfill"), "{}", error(&wrong));
    let mut unknown = options(&path);
    unknown.choice.settings.set("depth=3").unwrap();
    assert!(error(&unknown).contains("depth"));
    let mut all = options(&path);
    all.choice.settings.set("reservations=all").unwrap();
    assert_eq!(report(&all).settings["reservations"], "all");
}

#[test]
fn errors_say_what_would_work() {
    let (folder, path) = file(small().as_bytes());
    let with = |change: &dyn Fn(&mut Options)| {
        let mut options = options(&path);
        change(&mut options);
        error(&options)
    };
    let missing = folder.path().join("missing.swf");
    assert!(with(&|o| o.trace = missing.clone()).contains("cannot read the trace"));
    assert!(with(&|o| o.trace = folder.path().to_owned()).contains("cannot read the trace"));
    assert!(with(&|o| o.processors = Some(0)).contains("take 1 to"));
    assert!(with(&|o| o.processors = Some(u32::MAX)).contains("take 1 to"));
    assert!(with(&|o| o.processors = None).contains("--processors"));
    assert!(
        with(&|o| o.choice.scheduling = "bakfill".into()).contains("no scheduling policy 'bakfill'; built in are: ")
    );
    assert!(with(&|o| o.choice.priority = Some("x".into())).contains("no priority policy 'x'"));
    assert!(with(&|o| o.choice.scheduling = "missing.wasm".into()).contains("cannot read the scheduling policy"));
    let log = path.display().to_string();
    assert!(with(&|o| o.choice.scheduling = log.clone()).contains("does not begin with"));
    assert!(with(&|o| o.choice.settings.set("priority.a=1").unwrap()).contains("--priority"));
    if !no_policies() {
        assert!(with(&|o| o.choice.scheduling = "priority-multifactor".into()).contains("priority"));
    }

    let (_folder, path) = file(b"name,cpu\npod-1,4\n");
    assert!(error(&options(&path)).contains("not in the Standard Workload Format: line 1"));
    let (_folder, path) = file(b"\x1f\x8b\x08 cut off");
    assert!(error(&options(&path)).contains("cannot be unpacked"));
    let (_folder, path) = file(b"");
    assert!(error(&options(&path)).contains("no job line"));
}

#[test]
fn the_same_twice_but_for_the_time_it_took() {
    let Some(path) = trace(crate::kth::FILE).filter(|_| !no_policies()) else { return };
    let options = Options {
        processors: None,
        choice: Choice { estimates: Estimates::Kill, ..Choice::default() },
        ..options(&path)
    };
    let again = || Report { wall_s: 0.0, prepare_s: 0.0, decision_ms: Decisions::default(), ..report(&options) };
    assert_eq!(again(), again());
}
