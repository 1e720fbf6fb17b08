//! GPUs through the real agent and controller, over scenes that a stand-in library plays: what is found, how it is
//! doing, and what becomes of a GPU that goes bad and of the jobs on it.

use ephor_tests::gpus::{library, older_library, play, scene};
use ephor_tests::{Options, TestCluster, wait_for};
use serde_json::Value;
use std::fs;

fn options(name: &str) -> Options {
    let agent_config = format!("[gpus]\nlibrary = \"{}\"\npoll_ms = 100\n", library().display());
    Options { agents: 1, cpus: 8, agent_config, gpus: Some(scene(name)), ..Options::default() }
}

fn start(name: &str) -> TestCluster {
    TestCluster::start(options(name))
}

fn node(cluster: &TestCluster) -> Value {
    cluster.json(&["node", "show", "n1"])["nodes"][0].clone()
}

/// Waits until the node's GPUs are so.
fn node_when(cluster: &TestCluster, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    wait_for(what, || Some(node(cluster)).filter(|node| is(node)))
}

fn devices(node: &Value) -> &Vec<Value> {
    node["devices"].as_array().unwrap()
}

/// Which are out of service.
fn out(node: &Value) -> Vec<usize> {
    devices(node).iter().enumerate().filter(|(_, d)| d["out"].is_object()).map(|(i, _)| i).collect()
}

fn has_report(node: &Value) -> bool {
    devices(node).iter().any(|d| d["now"].is_object())
}

/// NVLinks and PCI path from one GPU to another.
fn link(node: &Value, from: usize, to: usize) -> (u64, String) {
    let links = devices(node)[from]["links"].as_array().unwrap();
    let link = links.iter().find(|l| l["to"].as_u64().unwrap_or(0) == to as u64).unwrap();
    (link["nvlinks"].as_u64().unwrap_or(0), link["path"].as_str().unwrap().to_owned())
}

/// Runs a job that writes down which GPUs it sees.
fn visible(cluster: &TestCluster, args: &[&str]) -> String {
    let file = cluster.folder().join("seen");
    let _ = fs::remove_file(&file);
    let line = format!("echo \"$CUDA_DEVICE_ORDER/$CUDA_VISIBLE_DEVICES\" > {}", file.display());
    let mut all = args.to_vec();
    all.extend(["--", "/bin/sh", "-c", &line]);
    let id = cluster.submit(&all);
    cluster.wait_for_state(id, "COMPLETED");
    fs::read_to_string(file).unwrap().trim().to_owned()
}

/// Starts a job that runs until it is ended, and gives its id.
fn hold(cluster: &TestCluster, gpus: &str) -> u64 {
    let id = cluster.submit(&["--gpus-per-node", gpus, "--", "/bin/sleep", "600"]);
    cluster.wait_for_state(id, "RUNNING");
    id
}

#[test]
fn eight_gpus_with_nvlink() {
    let cluster = start("nvlink-8");
    let node = node_when(&cluster, "the first report", has_report);
    let all = devices(&node);
    assert_eq!(all.len(), 8);
    for (i, device) in all.iter().enumerate() {
        assert_eq!(device["kind"], "h100");
        assert_eq!(device["name"], "NVIDIA H100 80GB HBM3");
        assert_eq!(device["mem_mib"], 81_559);
        assert_eq!(device["numa"].as_u64().unwrap_or(0), (i / 4) as u64);
        assert_eq!(device["now"]["temperature"], 30 + i);
        assert_eq!(device["now"]["power_mw"], 70_000 + 1000 * i);
        assert_eq!(device["links"].as_array().unwrap().len(), 7);
    }
    assert_eq!((all[0]["pci"].as_str(), all[1]["now"]["utilisation"].as_u64()), (Some("0000:1b:00.0"), Some(10)));
    // All go over switches; PCI tells near from far.
    assert_eq!(link(&node, 0, 1), (18, "host-bridge".into()));
    assert_eq!(link(&node, 0, 2), (18, "numa".into()));
    assert_eq!(link(&node, 0, 7), (18, "system".into()));
    let processes = all[7]["now"]["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2);
    assert_eq!((processes[0]["pid"].as_u64(), processes[0]["mem_mib"].as_u64()), (Some(4001), Some(700)));
    assert_eq!(processes[0]["utilisation"], 60);
    assert!(node["device_source"].as_str().unwrap().contains("driver 570.86.15"), "{node}");
    let energy = |node: &Value| devices(node)[3]["now"]["energy_mj"].as_u64().unwrap();
    let before = energy(&node);
    node_when(&cluster, "the counters to move", |node| energy(node) > before);
    assert_eq!(node["capacity"].as_array().unwrap().iter().find(|a| a["resource"] == "gpu").unwrap()["value"], 8000);

    let shown = cluster.ephor_ok(&["node", "show", "n1"]);
    assert!(shown.contains("8 h100") && shown.contains("NVLink x18 to 1,2,3,4,5,6,7"), "{shown}");
    let first = devices(&node)[0]["uuid"].as_str().unwrap();
    assert_eq!(visible(&cluster, &["--gpus-per-node", "1"]), format!("/{first}"));
    assert_eq!(visible(&cluster, &["--gpus-per-node", "0.5"]), format!("/{first}"), "a share sees its GPU");
    assert_eq!(visible(&cluster, &["--gpus-per-node", "h100:2"]).split(',').count(), 2);
    assert_eq!(visible(&cluster, &[]), "/", "who asked for none sees none");
}

#[test]
fn a_pcie_box_with_bridges() {
    let mut options = options("pcie");
    options.agent_config.push_str("visible = \"index\"\n");
    let cluster = TestCluster::start(options);
    let node = node_when(&cluster, "the first report", has_report);
    assert_eq!(devices(&node).iter().filter(|d| d["kind"] == "rtxa6000").count(), 4);
    assert_eq!(link(&node, 0, 1), (4, "switch".into()));
    assert_eq!(link(&node, 2, 3), (3, "numa".into()), "a link that is down does not count");
    assert_eq!(link(&node, 0, 2), (0, "system".into()));
    assert_eq!(devices(&node)[3]["now"]["ecc_corrected"], 3);
    assert!(out(&node).is_empty(), "corrected errors are no reason to take a GPU out");
    assert_eq!(visible(&cluster, &["--gpus-per-node", "2"]), "PCI_BUS_ID/0,1");
}

#[test]
fn mig_on_two_of_eight() {
    let cluster = start("mig");
    let node = node_when(&cluster, "the first report", has_report);
    let count = |kind: &str| devices(&node).iter().filter(|d| d["kind"] == kind).count();
    assert_eq!((count("a100-1g.10gb"), count("a100-3g.40gb"), count("a100-4g.40gb"), count("a100")), (7, 1, 1, 6));
    let part = devices(&node).iter().find(|d| d["kind"] == "a100-1g.10gb").unwrap();
    assert_eq!((part["mem_mib"].as_u64(), part["part_of"].as_str().unwrap().starts_with("GPU-")), (Some(9728), true));
    assert_eq!(link(&node, 9, 10), (12, "host-bridge".into()));
    let seen = visible(&cluster, &["--gpus-per-node", "a100-3g.40gb:1"]);
    assert!(seen.starts_with("/MIG-"), "{seen}");
    assert!(visible(&cluster, &["--gpus-per-node", "a100:1"]).starts_with("/GPU-"));

    // What happens to a GPU happens to all its parts, and to nothing else.
    let text = scene("mig") + "\n[[event]]\ndevice = 0\nxid = 95\n";
    play(&cluster.gpu_scene("n1"), &text);
    let node = node_when(&cluster, "the parts to be taken out", |node| out(node).len() >= 7);
    assert_eq!(out(&node), [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_card_that_falls_off_is_taken_out_alone() {
    let cluster = start("falling-off");
    let node = node_when(&cluster, "the card to fall off", |node| !out(node).is_empty());
    assert_eq!((out(&node), node["state"].as_str()), (vec![2], Some("IDLE")));
    let node = node_when(&cluster, "the report of it", |node| {
        devices(node)[2]["now"]["faults"].as_array().is_some_and(|faults| faults.len() == 2)
    });
    let gone = &devices(&node)[2];
    let faults = gone["now"]["faults"].to_string();
    assert!(faults.contains("XID 79") && faults.contains("fell off the bus"), "{faults}");
    let events = gone["now"]["events"].as_array().unwrap();
    assert!(events.iter().any(|e| e["what"].as_str().unwrap().starts_with("XID 79")), "{events:?}");
    assert!(devices(&node)[1]["now"].get("faults").is_none_or(|f| f.as_array().unwrap().is_empty()));
    // Three can be had, and a fourth never comes.
    hold(&cluster, "3");
    let wide = cluster.submit(&["--gpus-per-node", "4", "--", "/bin/true"]);
    let why = wait_for("the scheduler to say why", || {
        Some(cluster.ephor_ok(&["job", "why", &wide.to_string()])).filter(|why| why.contains("out of service"))
    });
    assert!(why.contains("GPU 2 of n1") && (why.contains("XID 79") || why.contains("fell off")), "{why}");
}

#[test]
fn an_xid_in_the_middle_of_a_job_drains_its_gpu_and_requeues_the_job() {
    let quiet = scene("falling-off").split("[[event]]").next().unwrap().to_owned();
    let options =
        Options { config: "on_gpu_fault = \"requeue\"\n".into(), gpus: Some(quiet.clone()), ..options("falling-off") };
    let mut cluster = TestCluster::start(options);
    let jobs: Vec<u64> = (0..3).map(|_| hold(&cluster, "1")).collect();
    // One that a program causes by itself is noted, and nothing more.
    let harmless = quiet.clone() + "[[event]]\ndevice = 1\nxid = 31\n";
    play(&cluster.gpu_scene("n1"), &harmless);
    node_when(&cluster, "the harmless event", |node| devices(node)[1]["now"]["events"].to_string().contains("XID 31"));
    assert!(out(&node(&cluster)).is_empty());

    let struck = quiet.clone() + "[[event]]\ndevice = 1\nxid = 119\n";
    play(&cluster.gpu_scene("n1"), &struck);
    let after = node_when(&cluster, "the GPU to be taken out", |node| !out(node).is_empty());
    assert_eq!(out(&after), [1]);
    assert!(devices(&after)[1]["out"]["reason"].as_str().unwrap().starts_with("XID 119"), "{after}");
    let job = wait_for("the second attempt", || {
        Some(cluster.job(jobs[1])).filter(|job| job["attempts"] == 2 && job["state"] == "RUNNING")
    });
    assert_eq!(job["devices"][0], "n1:3", "it runs on the GPU that was left");
    for job in [jobs[0], jobs[2]] {
        let job = cluster.job(job);
        assert_eq!((job["state"].as_str(), job["attempts"].as_u64()), (Some("RUNNING"), Some(1)), "{job}");
    }
    let next = cluster.submit(&["--gpus-per-node", "1", "--", "/bin/true"]);
    wait_for("the next job to wait", || (cluster.job(next)["reason"] == "Resources").then_some(()));

    // The controller may start anew: what is out stays out, with its reason.
    cluster.kill_controller();
    cluster.start_controller();
    let after = node_when(&cluster, "the agent to be back", |node| {
        devices(node)[1]["now"]["faults"].as_array().is_some_and(|faults| !faults.is_empty())
    });
    assert_eq!(out(&after), [1]);

    let (code, said) = cluster.ephor_fails(&["node", "resume", "n1", "--gpu", "7"]);
    assert!(code != 0 && said.contains("it has 4"), "{said}");
    cluster.ephor_ok(&["node", "resume", "n1", "--gpu", "1"]);
    cluster.wait_for_state(next, "COMPLETED");
    // Its agent goes on saying what was known when it was taken back.
    let at = |node: &Value| node["devices_at"].as_i64().unwrap_or(0);
    let before = at(&node(&cluster));
    let later = node_when(&cluster, "another report", |node| at(node) > before);
    assert!(out(&later).is_empty(), "{later}");

    cluster.ephor_ok(&["node", "drain", "n1", "--gpu", "0", "--reason", "loud fan"]);
    let drained = node(&cluster);
    assert_eq!((out(&drained), drained["state"].as_str()), (vec![0], Some("MIXED")));
    assert_eq!(devices(&drained)[0]["out"]["reason"], "loud fan");
    assert_eq!(cluster.job(jobs[0])["state"], "RUNNING", "people take a GPU out without ending jobs");
    let shown = cluster.ephor_ok(&["node", "show", "n1"]);
    assert!(shown.contains("4 a100 (1 out of service)") && shown.contains("loud fan"), "{shown}");
}

#[test]
fn trouble_in_memory() {
    let cluster = start("ecc");
    let node = node_when(&cluster, "the first report", has_report);
    assert_eq!(out(&node), [1, 2], "before any job could be given them");
    let reason = |i: usize| devices(&node)[i]["out"]["reason"].as_str().unwrap().to_owned();
    assert!(
        reason(1).contains("2 memory errors could not be corrected") && reason(1).contains("reset"),
        "{}",
        reason(1)
    );
    assert!(reason(2).contains("could not be replaced"), "{}", reason(2));
    let now = |i: usize| &devices(&node)[i]["now"];
    assert_eq!((now(0)["ecc_corrected"].as_u64(), now(0)["rows"]["correctable"].as_u64()), (Some(17), Some(3)));
    assert_eq!(now(1)["rows"]["pending"], true);
    assert_eq!(now(3)["slowed_by"], serde_json::json!(["power limit", "hardware slowdown", "heat (hardware)"]));
    let seen = visible(&cluster, &["--gpus-per-node", "2"]);
    let uuid = |i: usize| devices(&node)[i]["uuid"].as_str().unwrap().to_owned();
    assert_eq!(seen, format!("/{},{}", uuid(0), uuid(3)));
    let wide = cluster.submit(&["--gpus-per-node", "3", "--", "/bin/true"]);
    wait_for("the wide job to wait", || (cluster.job(wide)["reason"] == "BadConstraints").then_some(()));
}

#[test]
fn without_a_driver_the_list_counts() {
    let listed = "[[gpu]]\nkind = \"h100\"\nuuid = \"GPU-listed\"\nmem_mib = 80000\n";
    let mut options = options("no-driver");
    options.agent_config.push_str(listed);
    let cluster = TestCluster::start(options);
    let node = node_when(&cluster, "the first report", has_report);
    assert_eq!((devices(&node).len(), devices(&node)[0]["uuid"].as_str()), (1, Some("GPU-listed")));
    assert_eq!(node["device_source"], "the agent's configuration");
    let notes = node["device_notes"].to_string();
    assert!(notes.contains("NVML cannot be used") && notes.contains("driver is not loaded"), "{notes}");
    assert_eq!(visible(&cluster, &["--gpus-per-node", "1"]), "/GPU-listed");

    // Who insists on NVML is told why not.
    let config = cluster.folder().join("insist.toml");
    fs::write(&config, "[gpus]\nsource = \"nvml\"\nlibrary = \"/nowhere/libnvidia-ml.so.1\"\n").unwrap();
    let token = cluster.ephor_ok(&["node", "token"]);
    let mut agent = std::process::Command::new(ephor_tests::binary("ephor-agent"));
    agent.args(["--name", "n2", "--join", token.trim(), "--config"]).arg(&config);
    let output = agent.arg("--data").arg(cluster.folder().join("n2")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("NVML cannot be used") && said.contains("/nowhere"), "{said}");
}

#[test]
fn an_old_driver_tells_less_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let text = scene("old-driver");
    let old = older_library(folder.path(), &text);
    let agent_config = format!("[gpus]\nlibrary = \"{}\"\npoll_ms = 100\ncount = 4\n", old.display());
    let cluster = TestCluster::start(Options { agent_config, ..options("old-driver") });
    let node = node_when(&cluster, "the first report", has_report);
    let all = devices(&node);
    assert_eq!((all.len(), all[0]["kind"].as_str(), all[0]["mem_mib"].as_u64()), (2, Some("v100"), Some(16_160)));
    assert_eq!(all[0]["numa"], -1);
    assert_eq!(all[1]["now"]["temperature"], 41);
    assert!(all[1]["now"].get("rows").is_none_or(Value::is_null), "{node}");
    let notes = node["device_notes"].to_string();
    assert!(notes.contains("2 GPUs are there and 4 are configured: 2 missing"), "{notes}");
    for lacking in ["MIG", "processes", "XID errors as they happen"] {
        assert!(notes.contains(lacking), "{lacking}: {notes}");
    }
    // Without events a GPU that is lost is still found out.
    play(&cluster.gpu_scene("n1"), &text.replacen("ecc = [0, 0]", "lost = true", 1));
    let node = node_when(&cluster, "the lost GPU", |node| !out(node).is_empty());
    assert_eq!(out(&node), [0]);
}

#[test]
fn an_index_stays_with_its_gpu_when_another_is_gone_at_the_next_start() {
    let quiet = scene("falling-off").split("[[event]]").next().unwrap().to_owned();
    let mut cluster = TestCluster::start(Options { gpus: Some(quiet.clone()), ..options("falling-off") });
    let before = node_when(&cluster, "the first report", has_report);
    let jobs: Vec<u64> = (0..2).map(|_| hold(&cluster, "1")).collect();
    cluster.kill_agent("n1");
    let gone = quiet.replacen("ecc = [0, 0]", "lost = true", 1);
    play(&cluster.gpu_scene("n1"), &gone);
    cluster.start_agent("n1");
    let after = node_when(&cluster, "the GPU that is gone", |node| !out(node).is_empty());
    assert_eq!(out(&after), [0]);
    let uuids = |node: &Value| devices(node).iter().map(|d| d["uuid"].clone()).collect::<Vec<_>>();
    assert_eq!(uuids(&after), uuids(&before));
    let notes = node_when(&cluster, "the note", |node| node["device_notes"].to_string().contains("3 of 4"));
    assert!(notes["device_notes"].to_string().contains("missing: GPU-"), "{notes}");
    for job in jobs {
        assert_eq!(cluster.job(job)["state"], "RUNNING", "the site keeps jobs, unless it says otherwise");
    }
    let others = hold(&cluster, "2");
    assert_eq!(cluster.job(others)["devices"][0], "n1:2-3");
}
