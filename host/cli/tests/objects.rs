//! `ephor apply`, `export`, `queue`, `user`, `node`, `policy`, `backup` as processes, against fixed answers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod fake;

use fake::Fake;

#[test]
fn a_file_is_applied_whole_or_not_at_all() {
    let fake = Fake::start();
    fake.file("good.toml", "[[queue]]\nname = \"q\"\nquota = { gpu = 0.5 }\n[[user]]\nname = \"ann\"\nuid = 7\n");
    let ran = fake.run(&["apply", "good.toml"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "1 created, 2 changed, 3 unchanged\n"), "{}", ran.err);
    let sent = fake.asked.lock().unwrap().applied.remove(0);
    assert_eq!((sent.queues[0].quota[0].value, sent.users[0].uid), (500, 7));

    fake.file("bad.toml", "[[queue]]\nname = \"q\"\n[[queue]]\nname = \"r\"\nstat = \"open\"\n");
    let ran = fake.run(&["apply", "bad.toml"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.err.contains("error: bad.toml: line 5: unknown field `stat`"), "{}", ran.err);
    assert!(fake.asked.lock().unwrap().applied.is_empty());
}

#[test]
fn a_site_of_slurm_becomes_a_file_that_can_be_applied() {
    let fake = Fake::start();
    fake.file("slurm.conf", "ClusterName=x\nInclude nodes.conf\nPartitionName=p Nodes=n[1-2] Colour=blue MaxTime=60\n");
    fake.file("nodes.conf", "NodeName=n[1-3] Feature=ib\n");
    let ran = fake.run(&["import", "slurm.conf", "-o", "cluster.toml"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("nodes.conf:1: taken: NodeName=n[1-3] Feature=ib\n"), "{}", ran.out);
    assert!(ran.out.contains("4 lines: 2 taken, 1 approximated, 1 without meaning here, 0 unknown\n"), "{}", ran.out);
    assert_eq!(fake.run(&["apply", "cluster.toml"]).code, 0);
    let sent = fake.asked.lock().unwrap().applied.remove(0);
    assert_eq!((sent.queues[0].max_time, &*sent.queues[0].node_features[0]), (Some(3_600_000), "partition-p"));
    assert_eq!(sent.nodes.iter().map(|node| node.features.len()).collect::<Vec<_>>(), [2, 2, 1]);
    let ran = fake.run(&["import", ".", "-o", "cluster.toml"]);
    assert!(ran.code == 1 && ran.err.contains("cluster.toml is there already"), "{}", ran.err);
    assert_eq!(fake.run(&["import", ".", "--json"]).json()["report"].as_array().unwrap().len(), 4);

    fake.file("nodes.conf", "NodeName=n[1-3\n");
    let ran = fake.run(&["import", ".", "-o", "other.toml"]);
    assert_eq!((ran.code, ran.out.as_str(), fake.path("other.toml").exists()), (1, "", false));
    assert!(ran.err.contains("error: nodes.conf:1: NodeName=n[1-3: the brackets"), "{}", ran.err);
}

#[test]
fn an_export_can_be_applied() {
    let fake = Fake::start();
    let ran = fake.run(&["export"]);
    assert!(ran.out.contains("max_time = \"01:00:00\"\nquota = { cpu = 2.5 }"), "{}", ran.out);
    fake.file("all.toml", &ran.out);
    assert_eq!(fake.run(&["apply", "all.toml"]).code, 0);
    let applied = serde_json::to_value(fake.asked.lock().unwrap().applied.remove(0)).unwrap();
    assert_eq!(applied, fake.run(&["export", "--json"]).json());
}

#[test]
fn a_queue_is_changed_only_where_the_options_say() {
    let fake = Fake::start();
    let ran = fake.run(&["queue", "set", "main", "--max-time", "none", "--quota", "cpu=1.5,mem=4G", "--priority=-1"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let sent = fake.asked.lock().unwrap().applied.remove(0).queues.remove(0);
    assert_eq!((sent.default, sent.weight, sent.priority, sent.max_time), (true, 1, -1, None));
    assert_eq!(sent.quota.iter().map(|a| a.value).collect::<Vec<_>>(), [1500, 4096]);
    for (args, part) in [
        (&["queue", "create", "main"][..], "there is a queue main already"),
        (&["queue", "set", "other"], "there is no queue other"),
        (&["user", "create", "no-such-user-here"], "name the user id too"),
        (&["queue", "delete", "gone", "main"], "error: queue main: the queue main has jobs"),
    ] {
        let ran = fake.run(args);
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains(part), "{}", ran.err);
    }
    assert!(fake.run(&["queue", "list"]).out.contains("main*"));
    assert!(fake.run(&["user", "list"]).out.contains("4321"));
}

#[test]
fn limits_are_changed_one_by_one() {
    let fake = Fake::start();
    let applied = |fake: &Fake| fake.asked.lock().unwrap().applied.remove(0);
    let args = ["account", "create", "lab", "--limits", "running=5,cpu=64", "--per-user", "gpu=0,cpu-minutes=100"];
    assert_eq!(fake.run(&args).code, 0);
    let account = applied(&fake).accounts.remove(0);
    assert_eq!(account.limits.map(|l| (l.running, l.in_use[0].value)), Some((Some(5), 64_000)));
    assert_eq!(account.per_user.map(|l| (l.in_use[0].value, l.minutes[0].value)), Some((0, 100_000)));
    assert_eq!(fake.run(&["user", "set", "ann", "--in-account", "lab:running=2", "--limits", "submitted=9"]).code, 0);
    let user = applied(&fake).users.remove(0);
    assert_eq!((user.uid, user.associations[0].account.as_str()), (4321, "lab"));
    assert_eq!(fake.run(&["qos", "create", "high", "--per-account", "wall=2-0", "--users", "ann,bob"]).code, 0);
    let qos = applied(&fake).qos.remove(0);
    assert_eq!((qos.per_account.and_then(|l| l.wall), qos.users.len()), (Some(2 * 86_400_000), 2));
    assert_eq!(fake.run(&["licence", "set", "solver", "--count", "7"]).code, 0);
    assert_eq!(applied(&fake).licences[0].count, 7);
    assert!(fake.run(&["licence", "list"]).out.contains("solver  5      2"), "{}", fake.run(&["licence", "list"]).out);
    assert!(fake.run(&["licence", "show", "solver"]).out.contains("2 of 5"));
    let ran = fake.run(&["licence", "show", "other"]);
    assert!(ran.code == 1 && ran.err.contains("there is no such licence"), "{}", ran.err);
    assert!(fake.run(&["qos", "create", "x", "--limits", "cpu"]).err.contains("KEY=VALUE"));
}

#[test]
fn nodes_are_listed_and_drained_by_range() {
    let fake = Fake::start();
    assert!(fake.run(&["node", "list"]).out.contains("0.5/4"));
    let ran = fake.run(&["node", "show", "n[2-3]"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, "error: node n3: there is no such node\n"));
    assert!(ran.out.contains("n2") && !ran.out.contains("n1"), "{}", ran.out);
    assert_eq!(fake.run(&["node", "drain", "n[1-2]", "--reason", "fan"]).code, 0);
    assert_eq!(fake.run(&["node", "drain", "n1"]).code, 2);
    assert_eq!(fake.run(&["node", "token"]).out, "secret\n");
}

#[test]
fn a_policy_is_shown_and_activated() {
    let fake = Fake::start();
    let ran = fake.run(&["policy", "show", "scheduling"]);
    assert!(ran.out.contains("Rolls back to  2, 3"), "{}", ran.out);
    assert!(ran.out.contains("generation 3  trap: unreachable"), "{}", ran.out);
    assert_eq!(fake.run(&["policy", "show", "priority"]).code, 1);

    fake.file("p.wasm", b"\0asm\x0d\0\x01\0");
    fake.file("p.toml", "depth = 3\n");
    let ran =
        fake.run(&["policy", "activate", "admission", "p.wasm", "--config", "p.toml", "--grant", "ephor:host/log"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "scheduling is now backfill 0.1.0, generation 4\n"), "{}", ran.err);
    let sent = fake.asked.lock().unwrap().uploads.remove(0);
    assert_eq!((sent.slot.as_str(), sent.config.as_str()), ("admission/50-main", "{\"depth\":3}"));
    assert_eq!(sent.grants, ["ephor:host/log"]);

    fake.file("module.wasm", b"\0asm\x01\0\0\0");
    let ran = fake.run(&["policy", "activate", "scheduling", "module.wasm"]);
    assert!(ran.code == 1 && ran.err.contains("not a component"), "{}", ran.err);
    assert_eq!(fake.run(&["policy", "rollback", "schedule"]).code, 2);
}

#[test]
fn a_backup_is_whole_and_overwrites_nothing() {
    let fake = Fake::start();
    let ran = fake.run(&["backup", "copy"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "copy has 6 bytes\n"));
    assert_eq!(std::fs::read(fake.path("copy")).unwrap(), b"onetwo");
    let ran = fake.run(&["backup", "copy"]);
    assert!(ran.code == 1 && ran.err.contains("copy is there already"), "{}", ran.err);
    assert_eq!(fake.run(&["backup", "--json", "other"]).json()["bytes"], 6);
    assert_eq!(fake.run(&["backup", "-"]).out, "onetwo");
    assert!(!fake.path("copy.part").exists());
}

#[test]
fn the_command_explains_itself() {
    let fake = Fake::start();
    assert_eq!(fake.run(&["--version"]).out, concat!("ephor ", env!("CARGO_PKG_VERSION"), "\n"));
    assert!(fake.run(&["--help"]).out.contains("3  no controller answers"));
    assert!(fake.run(&["job", "submit", "--help"]).out.contains("--gpus-per-node"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(fake.run(&["completion", shell]).out.contains("gpus-per-node"));
    }
    assert_eq!(fake.run(&["man", "--dir", "pages"]).code, 0);
    assert!(fake.path("pages/ephor-job-submit.1").exists());
    assert_eq!(fake.run(&["jobs"]).code, 2);
    assert_eq!(fake.run(&[]).code, 2);
}
