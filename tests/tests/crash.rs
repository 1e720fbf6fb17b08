//! Laws 1, 3 and 8 against SIGKILL: what was acknowledged exists once, runs once, and the log folds to the state.

use ephor_proto::v1;
use ephor_tests::{Options, TestCluster, request, wait_for};
use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const KILLS: usize = 5;
const CLIENTS: usize = 4;
const JOBS_BETWEEN_KILLS: usize = 40;

/// Submits as fast as it can until told to stop; remembers what was acknowledged, and comes back after each kill.
async fn submit_for_ever(
    cluster: Arc<Mutex<TestCluster>>,
    acknowledged: Arc<Mutex<BTreeSet<u64>>>,
    stop: Arc<AtomicBool>,
) {
    let (socket, folder) = {
        let cluster = cluster.lock().unwrap();
        (cluster.socket(), cluster.folder().to_owned())
    };
    let ran = folder.join("ran");
    let line = format!("echo $EPHOR_JOB_ID.$EPHOR_ATTEMPT >> {}", ran.display());
    let job = request(&["/bin/sh", "-c", &line], &folder);
    while !stop.load(Ordering::Relaxed) {
        let path = socket.clone();
        let connector = tower::service_fn(move |_| {
            let path = path.clone();
            async move { tokio::net::UnixStream::connect(path).await.map(hyper_util::rt::TokioIo::new) }
        });
        let endpoint = tonic::transport::Endpoint::from_static("http://controller.invalid");
        let Ok(channel) = endpoint.connect_with_connector(connector).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let mut client = v1::ephor_client::EphorClient::new(channel);
        while !stop.load(Ordering::Relaxed) {
            match client.submit(job.clone()).await {
                Ok(reply) => drop(acknowledged.lock().unwrap().insert(reply.into_inner().job)),
                Err(_) => break,
            }
        }
    }
}

#[test]
fn what_was_acknowledged_survives_sigkill_and_runs_once() {
    let cluster = Arc::new(Mutex::new(TestCluster::start(Options { agents: 1, cpus: 8, ..Options::default() })));
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| runtime.spawn(submit_for_ever(cluster.clone(), acknowledged.clone(), stop.clone())))
        .collect();
    for round in 1..=KILLS {
        wait_for("submits to be acknowledged", || {
            (acknowledged.lock().unwrap().len() >= round * JOBS_BETWEEN_KILLS).then_some(())
        });
        let mut cluster = cluster.lock().unwrap();
        cluster.kill_controller();
        cluster.start_controller();
    }
    stop.store(true, Ordering::Relaxed);
    runtime.block_on(async {
        for client in clients {
            client.await.unwrap();
        }
    });
    let acknowledged = acknowledged.lock().unwrap().clone();
    let cluster = Arc::into_inner(cluster).unwrap().into_inner().unwrap();
    wait_for("all jobs to end", || {
        let status = cluster.json(&["status"]);
        (status["pending"] == 0 && status["running"] == 0).then_some(())
    });
    let list = cluster.json(&["job", "list", "--all"]);
    let jobs = list["jobs"].as_array().unwrap();
    let ids: BTreeSet<u64> = jobs.iter().map(|j| j["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), jobs.len(), "a job is listed twice");
    let lost: Vec<&u64> = acknowledged.difference(&ids).collect();
    assert!(lost.is_empty(), "acknowledged and gone: {lost:?}");
    assert!(jobs.iter().all(|j| j["state"] == "COMPLETED"), "{list}");
    let ran = fs::read_to_string(cluster.folder().join("ran")).unwrap();
    let lines: Vec<&str> = ran.lines().collect();
    let once: BTreeSet<&&str> = lines.iter().collect();
    assert_eq!(once.len(), lines.len(), "an attempt ran twice");
    assert_eq!(lines.len(), ids.len(), "each job ran in one attempt");
    println!("{} jobs acknowledged, {} there, {KILLS} kills", acknowledged.len(), ids.len());
    // Law 3: the log folds to the rows, byte for byte.
    let copy = cluster.folder().join("copy");
    cluster.ephor_ok(&["backup", copy.to_str().unwrap()]);
    println!("{}", cluster.ephor_ok(&["backup", "check", copy.to_str().unwrap()]));
}

#[test]
fn a_job_outlives_both_sides() {
    let mut cluster = TestCluster::start(Options::default());
    let marker = cluster.folder().join("go");
    let line = format!("echo $$; while [ ! -e {} ]; do sleep 0.05; done; exit 7", marker.display());
    let id = cluster.submit(&["-o", "out", "--", "/bin/sh", "-c", &line]);
    cluster.wait_for_state(id, "RUNNING");
    cluster.kill_controller();
    cluster.kill_agent("n1");
    cluster.start_controller();
    cluster.start_agent("n1");
    cluster.wait_for_state(id, "RUNNING");
    cluster.kill_agent("n1");
    // It ends while nobody of ours is there to see it.
    fs::write(&marker, "").unwrap();
    cluster.start_agent("n1");
    let job = cluster.wait_for_state(id, "FAILED");
    assert_eq!((job["exit_code"].as_i64(), job["attempts"].as_i64()), (Some(7), Some(1)));
}

#[test]
fn a_silent_node_goes_down_with_a_reason_and_its_job_is_not_run_again() {
    let mut cluster = TestCluster::start(Options { config: "node_silence_s = 1".into(), ..Options::default() });
    let id = cluster.submit(&["--requeue", "--", "/bin/sleep", "600"]);
    cluster.wait_for_state(id, "RUNNING");
    cluster.kill_agent("n1");
    wait_for("the node to go down", || {
        let node = &cluster.json(&["node", "list"])["nodes"][0];
        (node["state"] == "DOWN" && !node["reason"].as_str()?.is_empty()).then_some(())
    });
    let job = cluster.job(id);
    assert_eq!((job["state"].as_str(), job["attempts"].as_i64()), (Some("RUNNING"), Some(1)));
    assert_eq!(job["reason"], "NodeSilent");
    cluster.start_agent("n1");
    wait_for("the node to come back", || {
        (cluster.json(&["node", "list"])["nodes"][0]["state"] != "DOWN").then_some(())
    });
    wait_for("the job to be found again", || (cluster.job(id)["reason"] != "NodeSilent").then_some(()));
    assert_eq!(cluster.job(id)["attempts"], 1);
}

#[test]
fn a_backup_is_restored_with_a_higher_epoch() {
    let mut cluster = TestCluster::start(Options::default());
    let id = cluster.submit(&["--", "/bin/true"]);
    cluster.wait_for_state(id, "COMPLETED");
    let held = cluster.submit(&["-H", "--", "/bin/true"]);
    let copy = cluster.folder().join("copy");
    cluster.ephor_ok(&["backup", copy.to_str().unwrap()]);
    let epoch = cluster.json(&["status"])["epoch"].as_u64().unwrap();
    cluster.stop_controller();
    fs::remove_dir_all(cluster.data().join("../old")).ok();
    fs::rename(cluster.data(), cluster.folder().join("old")).unwrap();
    let output = cluster.ephor(&["backup", "restore", copy.to_str().unwrap(), cluster.data().to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Without being told that it is a recovery, the controller refuses.
    let refused = cluster.controller_command().output().unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--recover"));
    let mut command = cluster.controller_command();
    command.arg("--recover");
    let _recovered = ephor_tests::Process::start("recovered", &mut command, &cluster.folder().join("recovered.log"));
    wait_for("the recovered controller", || cluster.ephor(&["status"]).status.success().then_some(()));
    assert!(cluster.json(&["status"])["epoch"].as_u64().unwrap() > epoch + 1);
    assert_eq!(cluster.job(held)["state"], "PENDING");
}
