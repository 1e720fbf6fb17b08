//! `ephor sim` as a process.

use std::path::Path;
use std::process::{Command, Output};

fn sim(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ephor")).arg("sim").args(args).current_dir(folder).output().unwrap()
}

/// Three jobs on four processors: the second waits for the first, the third fits beside it.
const LOG: &str = "\
; MaxProcs: 4
1 0 -1 10 -1 -1 -1 3 10 -1 1 1 1 -1 -1 -1 -1 -1
2 1 -1 5 -1 -1 -1 4 5 -1 1 1 1 -1 -1 -1 -1 -1
3 2 -1 4 -1 -1 -1 1 8 -1 1 1 1 -1 -1 -1 -1 -1
";

#[test]
fn a_log_is_replayed_and_shown_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("log.swf"), LOG).unwrap();
    let ran = sim(folder.path(), &["--trace", "log.swf", "--json"]);
    let error = String::from_utf8_lossy(&ran.stderr).into_owned();
    if error.contains("none in this build") {
        println!("skipped: no policies are built in; `make build` makes them first");
        return;
    }
    assert_eq!((ran.status.code(), error.as_str()), (Some(0), ""));
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!((&report["jobs"], &report["total_wait_s"], &report["processors"]), (&3.into(), &9.into(), &4.into()));
    assert_eq!(report["start_fnv"].as_str().map(str::len), Some(16));

    let args = ["--trace", "log.swf", "--processors", "3", "--scheduling", "fifo", "--estimates", "kill"];
    let shown = String::from_utf8(sim(folder.path(), &args).stdout).unwrap();
    let value = |name: &str| shown.lines().find_map(|line| Some(line.strip_prefix(name)?.trim_start().to_owned()));
    assert!(value("Scheduling ").is_some_and(|v| v.starts_with("scheduling-fifo ")), "{shown}");
    assert!(value("Never runnable ").is_some_and(|v| v.starts_with("1 (ask for more")), "{shown}");
    assert_eq!(value("Wait, total ").as_deref(), Some("8 s"), "{shown}");
}

#[test]
fn what_cannot_be_simulated_says_why_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("log.swf"), LOG).unwrap();
    std::fs::write(folder.path().join("bad.swf"), LOG.replace("2 1 -1 5", "2 1 -1 five")).unwrap();
    for (args, code, part) in [
        (&["--trace", "none.swf"][..], 1, "error: cannot read the trace 'none.swf': No such file"),
        (&["--trace", "bad.swf"], 1, "line 3: field 4 is 'five', which is not a number"),
        (&["--trace", "log.swf", "--processors", "0"], 1, "a cluster of 0 processors"),
        (&["--trace", "log.swf", "--processors", "-1"], 2, "--processors"),
        (&["--trace", "log.swf", "--scheduling", "eas"], 1, "there is no scheduling policy 'eas'; built in are: "),
        (&["--trace", "log.swf", "--estimates", "none"], 2, "[possible values: max, kill, exact]"),
        (&["--trace", "log.swf", "--set", "reservations"], 1, "'reservations' is no setting"),
    ] {
        let ran = sim(folder.path(), args);
        let error = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(code), "{error}");
        assert_eq!(error.matches(part).count(), 1, "{error}");
        assert!(ran.stdout.is_empty());
    }
}

/// Whether this build has no policies in it.
fn no_policies(folder: &Path) -> bool {
    let error = sim(folder, &["--trace", "log.swf"]).stderr;
    let none = String::from_utf8_lossy(&error).contains("none in this build");
    if none {
        println!("skipped: no policies are built in; `make build` makes them first");
    }
    none
}

#[test]
fn runs_are_compared_in_one_table() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("log.swf"), LOG).unwrap();
    if no_policies(folder.path()) {
        return;
    }
    let compare = |args: &[&str]| {
        let common = ["compare", "--trace", "log.swf", "--run", "fifo", "--run", "backfill,reservations=all"];
        sim(folder.path(), &[&common, args].concat())
    };
    let shown = String::from_utf8(compare(&[]).stdout).unwrap();
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..4], ["RUN", "MEAN", "WAIT", "P90"]);
    // The third job starts with the second under fifo, and beside the first under backfill.
    assert_eq!((lines[1][0], lines[1][1]), ("fifo", "7.3"), "{shown}");
    assert_eq!((lines[2][0], lines[2][1]), ("backfill,reservations=all", "3.0"), "{shown}");
    let json = compare(&["--shake", "3", "--json"]).stdout;
    let report: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&report["shakes"], &report["runs"][1]["report"]["total_wait_s"]), (&3.into(), &9.into()));
    assert!(report["runs"][0]["spread"]["mean_wait_s"]["median"].is_f64());
    let error = String::from_utf8(compare(&["--run", "x=1"]).stderr).unwrap();
    assert!(error.contains("error: the run 'x=1' names no scheduling policy"), "{error}");
}

#[test]
fn runs_on_different_clusters_show_what_each_queue_got() {
    let folder = tempfile::tempdir().unwrap();
    if no_policies(folder.path()) {
        return;
    }
    // Two queues of two GPUs each: the first one asks for all four and keeps them for an hour, then the second wants its own.
    let log = "timestamp,duration,num_gpus,cluster\n2017-10-09 00:00:00,3600,1,a\n2017-10-09 00:00:01,3600,1,a\n\
               2017-10-09 00:00:02,3600,1,a\n2017-10-09 00:00:03,3600,1,a\n2017-10-09 00:10:00,600,2,b\n";
    let cluster = |limit: &str| {
        let queue = |name: &str| format!("[[queue]]\nname = \"{name}\"\nquota = {{ gpu = 2 }}\n{limit}");
        format!("[[nodes]]\nname = \"n[1-2]\"\ncpu = 8\ngpus = 2\n{}{}", queue("a"), queue("b"))
    };
    for (file, text) in
        [("log.csv", log.to_owned()), ("shared.toml", cluster("")), ("strict.toml", cluster("limit = { gpu = 2 }\n"))]
    {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    let runs = ["fifo", "backfill,cluster=strict.toml", "fairshare,requeue=yes,grace_s=0"];
    let runs: Vec<&str> = runs.iter().flat_map(|run| ["--run", *run]).collect();
    let common = ["compare", "--trace", "log.csv", "--cluster", "shared.toml", "--html", "page.html", "--json"];
    let ran = sim(folder.path(), &[&common[..], &runs].concat());
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let figures = |run: usize| {
        let report = &report["runs"][run]["report"];
        let b = report["queues"].as_array().unwrap().iter().find(|q| q["queue"] == "b").unwrap();
        (
            report["evictions"].as_u64().unwrap(),
            b["mean_wait_s"].as_f64().unwrap(),
            report["promises_kept"].as_f64().unwrap(),
        )
    };
    // Under fifo it waits until two of the four have ended; its own part is there at once where nobody else may have it, and
    // where others give way.
    assert_eq!((figures(0).0, figures(0).1), (0, 3001.0));
    assert_eq!((figures(1).0, figures(1).1), (0, 0.0));
    assert_eq!((figures(2).0, figures(2).1), (2, 0.0));
    assert!(figures(0).2 < 0.6 && figures(1).2 > 0.999 && figures(2).2 > 0.999, "{report}");
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("<h1>Runs of log.csv compared</h1>") && page.contains("Promised and missed"));
    assert!(page.contains("Mean wait by queue") && !page.contains("NaN"));
}

#[test]
fn a_page_needs_nothing_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("log.swf"), LOG).unwrap();
    if no_policies(folder.path()) {
        return;
    }
    let ran = sim(folder.path(), &["--trace", "log.swf", "--html", "page.html"]);
    assert_eq!(ran.status.code(), Some(0));
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("<h1>Simulation of log.swf</h1>") && page.contains("Queue length"));
    assert!(page.contains("prefers-color-scheme:dark") && page.contains("@media print"));
    for foreign in ["http://", "https://", "<script", "<link", "<img", "@import", "url(", "NaN"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    let ran = sim(folder.path(), &["--trace", "log.swf", "--html", "none/page.html"]);
    let error = String::from_utf8(ran.stderr).unwrap();
    assert!(error.contains("error: cannot write the page 'none/page.html'"), "{error}");
}

#[test]
fn scenarios_have_a_line_each_and_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("log.swf"), LOG).unwrap();
    if no_policies(folder.path()) {
        return;
    }
    let case = |id: &str, waits: bool| {
        format!(
            "- {{id: {id}, title: one job, cluster: {{n0: {{gpus: 1}}}}, queues: [{{name: q}}], \
             pending: [{{job: a, queue: q, class: train, gpu: 1}}], expect: {{a: {{wait: {waits}}}}}}}\n"
        )
    };
    let head = "meta: {format: ephor-scenarios/1}\nscenarios:\n";
    std::fs::write(folder.path().join("good.yaml"), format!("{head}{}", case("A", false))).unwrap();
    std::fs::write(folder.path().join("bad.yaml"), format!("{head}{}{}", case("A", false), case("B", true))).unwrap();
    let ran = sim(folder.path(), &["--scenarios", "bad.yaml"]);
    let shown = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(ran.status.code(), Some(1), "{shown}");
    assert!(
        shown.starts_with("ok    A  one job\nFAIL  B  one job: a runs on n0\n1 passed, 1 failed under "),
        "{shown}"
    );
    let ran = sim(folder.path(), &["--scenarios", "good.yaml", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!((ran.status.code(), &report["passed"], &report["failed"]), (Some(0), &1.into(), &0.into()));
    assert_eq!(report["cases"][0]["id"], "A");
    let ran = sim(folder.path(), &[]);
    assert_eq!(ran.status.code(), Some(2));
    let ran = sim(folder.path(), &["--scenarios", "good.yaml", "--trace", "log.swf"]);
    assert_eq!(ran.status.code(), Some(2));
}
