//! `ephor job` as a process, against a controller that gives fixed answers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod fake;

use ephor_proto::v1::{JobAction, JobRef};
use fake::{Fake, Ran, ephor};
use std::io::Write;
use std::process::Stdio;

#[test]
fn a_script_is_submitted_with_its_options_and_those_outside() {
    let fake = Fake::start();
    fake.file("job.sh", "#!/bin/sh\n#SBATCH -n 4 --mem=1G\n#SBATCH -t 5\necho \"$1\"\n");
    let ran = fake.run(&["job", "submit", "-J", "named", "--mem-per-cpu=100", "job.sh", "--flag", "x"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Submitted job 42\n"), "{}", ran.err);
    assert_eq!(ran.err, "memory was set to 4G\n");
    let sent = fake.asked.lock().unwrap().submits.remove(0);
    assert_eq!((sent.name.as_str(), sent.args), ("named", vec!["--flag".to_owned(), "x".to_owned()]));
    assert!(sent.script.unwrap().starts_with(b"#!/bin/sh\n#SBATCH"));
    let request = sent.request.unwrap();
    assert_eq!((request.tasks, request.mem_per_node, request.mem_per_cpu), (Some(4), None, Some(100)));
    assert_eq!(sent.time_limit, Some(300_000));
    assert_eq!(sent.work_dir, fake.folder.path().canonicalize().unwrap().to_str().unwrap());
    assert!(sent.environment.contains(&"MARK=here".to_owned()));
}

#[test]
fn a_command_is_submitted_without_a_shell() {
    let fake = Fake::start();
    let ran = fake.run(&["job", "submit", "--env", "A=1", "-H", "--json", "--", "/bin/echo", "-n", "a b", "--"]);
    assert_eq!((ran.code, ran.json()["job"].as_u64()), (0, Some(42)), "{}", ran.err);
    let sent = fake.asked.lock().unwrap().submits.remove(0);
    assert_eq!((sent.name.as_str(), sent.argv.join("|").as_str()), ("echo", "/bin/echo|-n|a b|--"));
    assert!(sent.hold && sent.script.is_none() && sent.environment.contains(&"A=1".to_owned()));
}

#[test]
fn a_script_comes_from_standard_input() {
    let fake = Fake::start();
    for args in [&["job", "submit"][..], &["job", "submit", "-", "arg"]] {
        let mut child =
            fake.ephor(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"#!/bin/sh\n#EPHOR -c 2\n").unwrap();
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.err);
        let sent = fake.asked.lock().unwrap().submits.remove(0);
        assert_eq!((sent.name.as_str(), sent.request.unwrap().cpus_per_task), ("stdin", 2));
        assert_eq!(sent.args.len(), args.len() - 2 - usize::from(args.len() > 2));
    }
}

#[test]
fn only_what_is_named_changes() {
    let fake = Fake::start();
    let ran =
        fake.run(&["job", "modify", "7", "99", "8", "--time-limit=5", "-N", "2-4", "--dependency=", "--thr", "3"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
    assert!(ran.err.contains("error: job 99: there is no such job"), "{}", ran.err);
    let changes = std::mem::take(&mut fake.asked.lock().unwrap().changes);
    let jobs: Vec<u64> = changes.iter().map(|c| c.job.unwrap().job).collect();
    assert_eq!(jobs, [7, 8]);
    assert_eq!(changes[0].fields, ["time-limit", "nodes", "dependencies", "throttle"]);
    let values = changes[0].values.clone().unwrap();
    assert_eq!((values.time_limit, values.throttle, values.dependencies.len()), (Some(300_000), 3, 0));
    let request = values.request.unwrap();
    assert_eq!((request.nodes_min, request.nodes_max), (2, Some(4)));
}

#[test]
fn what_cannot_change_is_no_option() {
    let fake = Fake::start();
    for (args, part) in [
        (&["job", "modify", "7"][..], "nothing is to be changed"),
        (&["job", "modify", "7", "--output", "x"], "--output"),
        (&["job", "modify", "7", "--time-limit", "soon"], "not a time limit"),
    ] {
        let ran = fake.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(part), "{args:?}: {}", ran.err);
    }
    assert!(fake.asked.lock().unwrap().changes.is_empty());
}

#[test]
fn what_cannot_be_submitted_says_why() {
    let fake = Fake::start();
    fake.file("bad.sh", "#!/bin/sh\n#SBATCH --pertition=x\n");
    fake.file("dos.sh", "#!/bin/sh\r\necho\r\n");
    fake.file("good.sh", "#!/bin/sh\n");
    for (args, code, part) in [
        (&["bad.sh"][..], 1, "error: bad.sh, line 2: there is no option --pertition; did you mean --partition?"),
        (&["dos.sh"], 1, "error: dos.sh, line 1: DOS line breaks"),
        (&["missing.sh"], 1, "error: cannot read missing.sh: No such file"),
        (&["-t", "2h", "good.sh"], 2, "error: '2h' is not a time limit"),
        (&["--tmie=1", "good.sh"], 2, "--time"),
        (&["-p", "none-such", "good.sh"], 1, "error: there is no queue none-such; the queues are main"),
        (&["--wrap", "x", "good.sh"], 1, "--wrap is the whole script"),
        (&["--env", "NOT_HERE", "good.sh"], 2, "there is no such variable here"),
    ] {
        let ran = fake.run(&[&["job", "submit"], args].concat());
        assert_eq!(ran.code, code, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(part), "{args:?}: {}", ran.err);
        assert_eq!(ran.out, "");
    }
    assert!(fake.asked.lock().unwrap().submits.is_empty());
}

#[test]
fn waiting_ends_with_the_exit_code_of_the_job() {
    let fake = Fake::start();
    let ran = fake.run(&["job", "submit", "--wait", "--wrap", "exit 3"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("Job 42: FAILED, exit code 3"), "{}", ran.err);
    assert!(fake.asked.lock().unwrap().queries[0].finished);
}

#[test]
fn a_list_is_a_table_or_the_message() {
    let fake = Fake::start();
    let ran = fake.run(&["job", "list", "--user", "ann", "--state", "pd,FAILED", "--since", "2026-01-01"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let rows: Vec<Vec<&str>> = ran.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["ID", "NAME", "USER", "QUEUE", "STATE", "TIME", "NODES", "REASON"]);
    assert_eq!(rows[1], ["41", "job41", "ann", "main", "PENDING", "-", "1", "Resources"]);
    assert_eq!(rows[2], ["42", "evil\u{fffd}[31m", "ann", "main", "FAILED", "00:01:05", "n[1-2]"]);
    assert!(ran.out.lines().all(|line| line == line.trim()));
    let query = fake.asked.lock().unwrap().queries.remove(0);
    assert_eq!(query.states, ["PENDING", "FAILED"]);
    assert_eq!((query.user.as_deref(), query.finished, query.since), (Some("ann"), true, Some(1_767_225_600_000)));

    let ran = fake.run(&["--json", "job", "list"]);
    assert_eq!(ran.json()["jobs"][1]["exit_code"], 3);
    assert_eq!(ran.json()["truncated"], false);
    assert!(!fake.asked.lock().unwrap().queries.remove(0).finished);
    assert_eq!(fake.run(&["job", "list", "--state", "SLEEPING"]).code, 2);
}

#[test]
fn one_unknown_job_fails_and_the_others_are_cancelled() {
    let fake = Fake::start();
    let ran = fake.run(&["job", "cancel", "41", "99", "7_3"]);
    assert_eq!((ran.code, ran.err.as_str(), ran.out.as_str()), (1, "error: job 99: there is no such job\n", ""));
    let sent = fake.asked.lock().unwrap().actions.remove(0);
    assert_eq!(sent.action(), JobAction::Cancel);
    assert_eq!(sent.jobs[2], JobRef { job: 7, index: Some(3) });
    assert_eq!(fake.run(&["job", "hold", "41"]).code, 0);
    assert_eq!(fake.asked.lock().unwrap().actions.remove(0).action(), JobAction::Hold);
    assert_eq!(fake.run(&["job", "cancel", "x"]).code, 2);
    assert_eq!(fake.run(&["job", "cancel"]).code, 2);
}

#[test]
fn a_job_is_explained_and_shown() {
    let fake = Fake::start();
    let ran = fake.run(&["job", "why", "41"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for part in ["Job 41 (job41) waits: Resources", "10 are free", "backfill, generation 4", "Could start now", "age"] {
        assert!(ran.out.contains(part), "{}", ran.out);
    }
    assert_eq!(fake.run(&["job", "why", "41", "--json"]).json()["policy"], "backfill, generation 4");
    let ran = fake.run(&["job", "why", "99"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, "error: there is no job 99\n"));

    let ran = fake.run(&["job", "show", "42", "98"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, "error: job 98: there is no such job\n"));
    assert!(ran.out.contains("State      FAILED, exit code 3\n"), "{}", ran.out);
    assert_eq!(fake.run(&["job", "show", "42", "--script"]).out, "#!/bin/sh\nexit 3\n");
}

#[test]
fn no_controller_is_one_clear_line() {
    let ran = Ran::of(ephor(&["--socket", "/nowhere/ephor.sock", "job", "list"]).output().unwrap());
    assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (3, "", 1));
    assert!(
        ran.err.starts_with("error: no controller answers: /nowhere/ephor.sock is not there; start one"),
        "{}",
        ran.err
    );
}

#[test]
fn a_running_dev_controller_is_found() {
    let fake = Fake::start();
    std::fs::create_dir(fake.path("ephor")).unwrap();
    std::os::unix::fs::symlink(fake.path("s"), fake.path("ephor/dev.sock")).unwrap();
    let output = ephor(&["status"]).env("XDG_RUNTIME_DIR", fake.folder.path()).output().unwrap();
    let ran = Ran::of(output);
    assert_eq!(ran.code, 0, "{}", ran.err);
    // A controller that belongs to the machine comes first, where the tests run beside one.
    if !std::path::Path::new("/run/ephor/ephor.sock").exists() {
        assert!(ran.out.contains("1 of 2"), "{}", ran.out);
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let fake = Fake::start();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    for args in [&["job", "list"][..], &["--version"], &["completion", "zsh"]] {
        let ran = Ran::of(fake.ephor(args).stdout(writer.try_clone().unwrap()).output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    }
}
