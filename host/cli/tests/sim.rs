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
    assert!(shown.contains("\nScheduling              scheduling-fifo "), "{shown}");
    assert!(shown.contains("\nNever runnable          1 (ask for more"), "{shown}");
    assert!(shown.contains("\nWait, total             8 s\n"), "{shown}");
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
