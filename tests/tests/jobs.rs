//! Jobs through the real binaries: what a user does on the first day, and the mistakes that users make.

use ephor_tests::{Options, TestCluster, plugin, wait_for};
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn script(cluster: &TestCluster, name: &str, text: &str) -> String {
    let path = cluster.folder().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path.to_string_lossy().into_owned()
}

fn read(cluster: &TestCluster, name: &str) -> String {
    fs::read_to_string(cluster.folder().join(name)).unwrap_or_default()
}

#[test]
fn scripts_run_and_end_as_they_should() {
    let cluster = TestCluster::start(Options { agents: 2, cpus: 2, ..Options::default() });
    let ok = script(&cluster, "ok.sh", "#!/bin/sh\n#EPHOR -J ok -o %x-%j.out\necho \"$EPHOR_JOB_ID on $(pwd)\"\n");
    let id = cluster.submit(&[&ok]);
    let job = cluster.wait_for_state(id, "COMPLETED");
    assert_eq!(job["exit_code"], 0);
    let folder = cluster.folder().canonicalize().unwrap();
    assert_eq!(read(&cluster, &format!("ok-{id}.out")), format!("{id} on {}\n", folder.display()));

    let failing =
        script(&cluster, "bad.sh", "#!/bin/bash\n#SBATCH -o bad.out -e bad.err\necho out; echo err >&2; exit 3\n");
    let id = cluster.submit(&[&failing]);
    let job = cluster.wait_for_state(id, "FAILED");
    assert_eq!((job["exit_code"].as_i64(), job["reason"].as_str()), (Some(3), Some("NonZeroExitCode")));
    assert_eq!((read(&cluster, "bad.out").as_str(), read(&cluster, "bad.err").as_str()), ("out\n", "err\n"));

    let long = script(
        &cluster,
        "long.sh",
        "#!/bin/sh\n#EPHOR -t 0:01 -o long.out\ntrap '' TERM\nwhile :; do sleep 0.05; done\n",
    );
    let id = cluster.submit(&[&long]);
    cluster.wait_for_state(id, "TIMEOUT");

    let array = script(&cluster, "array.sh", "#!/bin/sh\n#SBATCH -a 1-3 -o a-%a.out\necho $SLURM_ARRAY_TASK_ID\n");
    let id = cluster.submit(&[&array]);
    for index in 1..=3 {
        cluster.wait_for_state(format!("{id}_{index}"), "COMPLETED");
        assert_eq!(read(&cluster, &format!("a-{index}.out")), format!("{index}\n"));
    }

    let first = cluster.submit(&["--", "/bin/false"]);
    let only_ok = cluster.submit(&["-d", &format!("afterok:{first}"), "--", "/bin/true"]);
    let clean_up = cluster.submit(&["-d", &format!("afternotok:{first}"), "--", "/bin/true"]);
    cluster.wait_for_state(clean_up, "COMPLETED");
    assert_eq!(cluster.job(only_ok)["reason"], "DependencyNeverSatisfied");
    cluster.ephor_ok(&["job", "cancel", &only_ok.to_string()]);

    // The history answers by name and state, the ledger has charged them.
    let list = cluster.json(&["job", "list", "--all", "--name", "ok"]);
    assert_eq!(list["jobs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_signal_before_the_time_limit_reaches_the_script_or_the_rest_of_the_job() {
    let cluster = TestCluster::start(Options { agents: 1, cpus: 2, ..Options::default() });
    // Eight seconds before the limit of ten: it has time to write down how far it came.
    let save = "#!/bin/sh\n#EPHOR -t 0:10 --signal=B:USR1@8 -o saves.out\ntrap 'echo saved; exit 3' USR1\n\
        echo ready; while :; do sleep 0.05; done\n";
    let saves = cluster.submit(&[&script(&cluster, "saves.sh", save)]);
    // The shell does not take the signal itself, and sees that what it started ended well.
    let child = "#!/bin/sh\n#SBATCH --signal=USR2@58 -t 1 -o child.out\n\
        sh -c 'trap \"echo saved; exit 0\" USR2; while :; do sleep 0.05 & wait; done'\necho then $?\n";
    let rest = cluster.submit(&[&script(&cluster, "child.sh", child)]);
    let job = cluster.wait_for_state(saves, "FAILED");
    assert_eq!((job["exit_code"].as_i64(), read(&cluster, "saves.out").as_str()), (Some(3), "ready\nsaved\n"));
    cluster.wait_for_state(rest, "COMPLETED");
    assert_eq!(read(&cluster, "child.out"), "saved\nthen 0\n");
    // A job whose whole time is shorter than that gets it at once; here nobody asked for another end.
    let at_once = cluster.submit(&["-t", "0:30", "--signal=TERM@600", "--", "/bin/sleep", "60"]);
    assert_eq!(cluster.wait_for_state(at_once, "FAILED")["exit_signal"], 15);
}

#[test]
fn a_signal_reaches_the_script_the_rest_of_the_job_or_both() {
    let cluster = TestCluster::start(Options { agents: 1, cpus: 2, ..Options::default() });
    let text = "#!/bin/bash\n#EPHOR -o told.out\ntrap 'echo script USR1' USR1\n\
        trap 'echo script USR2; until test -e seen; do sleep 0.02; done; exit 4' USR2\n\
        (trap 'echo child USR1' USR1; trap 'echo child USR2; touch seen' USR2; echo ready; while :; do sleep 0.05 & wait; done) &\n\
        while :; do wait; done\n";
    // The script waits for its child, which would be killed with its end.
    let id = cluster.submit(&[&script(&cluster, "told.sh", text)]);
    let signal = |words: &[&str]| cluster.ephor_ok(&[&["job", "signal"], words, &[&id.to_string()]].concat());
    let told = |lines: &[&str]| {
        wait_for(&format!("{lines:?}"), || {
            let text = read(&cluster, "told.out");
            let mut found: Vec<&str> = text.lines().collect();
            found.sort_unstable();
            (found == lines).then_some(())
        });
    };
    told(&["ready"]);
    signal(&["USR1"]);
    told(&["child USR1", "ready"]);
    signal(&["--to", "script", "10"]);
    told(&["child USR1", "ready", "script USR1"]);
    signal(&["--to", "all", "SIGUSR2"]);
    told(&["child USR1", "child USR2", "ready", "script USR1", "script USR2"]);
    assert_eq!(cluster.wait_for_state(id, "FAILED")["exit_code"], 4);
    let held = cluster.submit(&["-H", "--", "/bin/true"]).to_string();
    for (words, says) in [
        (["USR1", &id.to_string()], "it has ended"),
        (["USR1", &held], "it does not run yet"),
        (["USR1", "999"], "there is no such job"),
        (["FOO", &held], "'FOO' is no signal"),
    ] {
        let (code, said) = cluster.ephor_fails(&["job", "signal", words[0], words[1]]);
        assert!(code != 0 && said.contains(says), "{words:?}: {said}");
    }
}

#[test]
fn cancel_hold_release_requeue_and_why() {
    let cluster = TestCluster::start(Options { agents: 1, cpus: 1, ..Options::default() });
    let running = cluster.submit(&["--", "/bin/sleep", "600"]);
    cluster.wait_for_state(running, "RUNNING");
    let waiting = cluster.submit(&["--", "/bin/true"]);
    wait_for("the scheduler to say why", || (cluster.job(waiting)["reason"] == "Resources").then_some(()));
    let why = cluster.ephor_ok(&["job", "why", &waiting.to_string()]);
    assert!(why.contains("scheduling"), "names the policy: {why}");
    assert!(why.contains("core"), "says what is lacking: {why}");
    let held = cluster.submit(&["-H", "--", "/bin/true"]);
    assert_eq!(cluster.job(held)["reason"], "JobHeldUser");

    cluster.ephor_ok(&["job", "requeue", &running.to_string()]);
    wait_for("the second attempt", || (cluster.job(running)["attempts"] == 2).then_some(()));
    cluster.ephor_ok(&["job", "cancel", &running.to_string()]);
    cluster.wait_for_state(running, "CANCELLED");
    cluster.wait_for_state(waiting, "COMPLETED");
    cluster.ephor_ok(&["job", "release", &held.to_string()]);
    cluster.wait_for_state(held, "COMPLETED");
}

#[test]
fn mistakes_get_a_clear_word_and_leave_nothing_behind() {
    let cluster = TestCluster::start(Options { agents: 1, cpus: 2, ..Options::default() });
    let cases: &[(&str, &[u8], &[&str])] = &[
        ("unknown directive", b"#!/bin/sh\n#SBATCH --frobnicate=3\ntrue\n", &["frobnicate"]),
        ("bad number", b"#!/bin/sh\n#SBATCH -n many\ntrue\n", &["many"]),
        ("carriage returns", b"#!/bin/sh\r\n#SBATCH -n 1\r\ntrue\r\n", &["DOS"]),
        ("a NUL byte", b"#!/bin/sh\ntrue \0\n", &["NUL"]),
        ("no interpreter", b"echo hello\n", &["#!"]),
        ("unknown queue", b"#!/bin/sh\n#SBATCH -p nowhere\ntrue\n", &["nowhere", "main"]),
        ("more than any node has", b"#!/bin/sh\n#SBATCH -c 64\ntrue\n", &["64"]),
    ];
    for (what, text, parts) in cases {
        fs::write(cluster.folder().join("case.sh"), text).unwrap();
        let (code, said) = cluster.ephor_fails(&["job", "submit", "case.sh"]);
        assert!(code != 0 && parts.iter().all(|p| said.contains(p)), "{what}: exit {code}: {said}");
    }
    let (_, said) = cluster.ephor_fails(&["job", "submit", "missing.sh"]);
    assert!(said.contains("missing.sh"), "{said}");
    let (_, said) = cluster.ephor_fails(&["job", "cancel", "4711"]);
    assert!(said.contains("4711"), "{said}");
    assert_eq!(cluster.json(&["job", "list", "--all"])["jobs"].as_array().map(Vec::len), Some(0));

    let corrupt = cluster.folder().join("corrupt.wasm");
    fs::write(&corrupt, b"\0asm nonsense").unwrap();
    let (_, said) = cluster.ephor_fails(&["policy", "activate", "scheduling", corrupt.to_str().unwrap()]);
    assert!(said.contains("component"), "{said}");
    let other = plugin("auth-local");
    let (_, said) = cluster.ephor_fails(&["policy", "activate", "scheduling", other.to_str().unwrap()]);
    assert!(said.contains("authentication"), "{said}");
    let config = cluster.folder().join("config.json");
    fs::write(&config, r#"{"reservations": "sometimes"}"#).unwrap();
    let args = [
        "policy",
        "activate",
        "scheduling",
        plugin("scheduling-backfill").to_str().unwrap(),
        "--config",
        "config.json",
    ]
    .map(str::to_owned);
    let (_, said) = cluster.ephor_fails(&args.each_ref().map(String::as_str));
    assert!(said.contains("reservations"), "{said}");

    // A second controller on the same folder, and a port in use.
    let second = cluster.controller_command().output().unwrap();
    assert!(!second.status.success());
    assert!(String::from_utf8_lossy(&second.stderr).contains("in use"), "{}", String::from_utf8_lossy(&second.stderr));
}

#[test]
fn objects_are_applied_exported_and_deleted() {
    let cluster = TestCluster::start(Options { agents: 1, ..Options::default() });
    let text = "[[queue]]\nname = \"gpu\"\nmax_time = \"1:00:00\"\n[[account]]\nname = \"physics\"\n";
    fs::write(cluster.folder().join("site.toml"), text).unwrap();
    cluster.ephor_ok(&["apply", "site.toml"]);
    let exported = cluster.ephor_ok(&["export"]);
    assert!(exported.contains("gpu") && exported.contains("physics"), "{exported}");
    fs::write(cluster.folder().join("again.toml"), &exported).unwrap();
    let again = cluster.json(&["apply", "again.toml"]);
    assert_eq!((again["created"].as_i64(), again["changed"].as_i64()), (Some(0), Some(0)), "{again}");
    fs::write(cluster.folder().join("bad.toml"), "[[queue]]\nname = \"x\"\nspeed = 3\n").unwrap();
    let (_, said) = cluster.ephor_fails(&["apply", "bad.toml"]);
    assert!(said.contains("speed"), "{said}");
    let (_, said) = cluster.ephor_fails(&["job", "submit", "-p", "gpu", "-t", "2:00:00", "--", "/bin/true"]);
    assert!(said.contains("01:00:00"), "{said}");
    cluster.ephor_ok(&["queue", "delete", "gpu"]);
}

#[test]
fn a_drained_node_takes_no_jobs_until_it_is_resumed() {
    let cluster = TestCluster::start(Options { agents: 1, ..Options::default() });
    cluster.ephor_ok(&["node", "drain", "n1", "--reason", "disk"]);
    let id = cluster.submit(&["--", "/bin/true"]);
    wait_for("a reason", || {
        cluster.job(id)["reason"].as_str().filter(|r| *r != "None" && *r != "Priority").map(|_| ())
    });
    assert_eq!(cluster.job(id)["state"], "PENDING");
    cluster.ephor_ok(&["node", "resume", "n1"]);
    cluster.wait_for_state(id, "COMPLETED");
}

#[test]
fn a_job_of_a_higher_queue_makes_a_lower_one_give_way_and_that_one_runs_again() {
    let cluster = TestCluster::start(Options { agents: 1, cpus: 2, ..Options::default() });
    let text = "[[queue]]\nname = \"low\"\npriority = 1\n[[queue]]\nname = \"high\"\npriority = 9\n";
    fs::write(cluster.folder().join("site.toml"), text).unwrap();
    cluster.ephor_ok(&["apply", "site.toml"]);
    fs::write(cluster.folder().join("config.json"), r#"{"preempt": "queue", "preempt_grace_s": 20}"#).unwrap();
    let component = plugin("scheduling-backfill");
    let component = component.to_str().unwrap();
    cluster.ephor_ok(&["policy", "activate", "scheduling", component, "--config", "config.json"]);

    // It ends in its own way when it is asked to, the second time at once.
    let victim = script(
        &cluster,
        "victim.sh",
        "#!/bin/sh\n#EPHOR -c 2 -p low --requeue\n\
         trap 'echo saved >> seen; exit 0' TERM\n\
         echo begun >> seen\n[ \"$(grep -c begun seen)\" = 2 ] && exit 0\nwhile :; do sleep 0.05; done\n",
    );
    let victim = cluster.submit(&[&victim]);
    wait_for("the victim to run", || read(&cluster, "seen").contains("begun").then_some(()));
    let urgent = cluster.submit(&["-c", "2", "-p", "high", "--", "/bin/true"]);
    cluster.wait_for_state(urgent, "COMPLETED");
    assert!(read(&cluster, "seen").contains("saved"), "it had its grace: {}", read(&cluster, "seen"));
    let job = cluster.wait_for_state(victim, "COMPLETED");
    assert_eq!(job["attempts"], 2);
    assert_eq!(read(&cluster, "seen"), "begun\nsaved\nbegun\n");
}

#[test]
fn a_queue_takes_back_what_another_uses_beyond_its_share_and_all_can_read_why() {
    let cluster = TestCluster::start(Options { agents: 1, cpus: 2, ..Options::default() });
    let text = "[[queue]]\nname = \"vision\"\nquota = { cpu = 1 }\n[[queue]]\nname = \"speech\"\nquota = { cpu = 1 }\n";
    fs::write(cluster.folder().join("site.toml"), text).unwrap();
    cluster.ephor_ok(&["apply", "site.toml"]);
    fs::write(cluster.folder().join("config.json"), r#"{"resources": ["cpu"], "grace_s": 20}"#).unwrap();
    let component = plugin("scheduling-fairshare");
    let component = component.to_str().unwrap();
    let config = ["--grant", "ephor:host/names", "--config", "config.json"];
    cluster.ephor_ok(&[&["policy", "activate", "scheduling", component][..], &config[..]].concat());

    let runs = |id: u64| cluster.job(id)["state"] == "RUNNING";
    let long = ["-p", "speech", "--requeue", "--", "/bin/sleep", "1000"];
    let borrowers = [cluster.submit(&long), cluster.submit(&long)];
    wait_for("both to run", || borrowers.iter().all(|id| runs(*id)).then_some(()));
    let of_queue = |name: &str| {
        let tree = cluster.json(&["queue", "tree", "--resource", "cpu"]);
        tree["queues"].as_array().unwrap().iter().find(|queue| queue["queue"] == name).unwrap().clone()
    };
    wait_for("its share of all to be shown", || (of_queue("speech")["fair"] == 2_000).then_some(()));

    let owner = cluster.submit(&["-p", "vision", "--requeue", "--", "/bin/sleep", "1000"]);
    cluster.wait_for_state(owner, "RUNNING");
    // The younger one gave way, and waits for its turn.
    assert!(runs(borrowers[0]));
    let victim = cluster.wait_for_state(borrowers[1], "PENDING");
    assert_eq!(victim["attempts"], 1);
    let speech = wait_for("the shares of now", || {
        let speech = of_queue("speech");
        (speech["fair"] == 1_000 && speech["allocated"] == 1_000).then_some(speech)
    });
    assert_eq!((&speech["wanted"], &speech["over"]), (&1_000.into(), &false.into()));
    let drawn = cluster.ephor_ok(&["queue", "tree", "--resource", "cpu"]);
    assert!(drawn.contains("speech") && drawn.contains("cpu: # allocated"), "{drawn}");
    let why = cluster.ephor_ok(&["job", "why", &borrowers[1].to_string()]);
    assert!(why.contains("queue speech has 1 cpu in use"), "{why}");
}
