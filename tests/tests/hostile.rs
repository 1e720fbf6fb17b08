//! Law 6: whatever a policy does, other clients are answered within 100 ms, running jobs end normally, the role falls to
//! its stated verdict, `ephor policy show` names the fault, and root can go back.
//!
//! The latencies are printed, not asserted: a busy machine is no reason to fail.

use ephor_proto::v1;
use ephor_tests::{Options, TestCluster, hostile, request, wait_for};
use std::time::{Duration, Instant};

/// Worst answer to a cheap query of another client while `during` runs, in milliseconds.
fn worst_answer(cluster: &TestCluster, during: impl FnOnce()) -> f64 {
    std::thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let prober = scope.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut client = cluster.client().await;
                let mut worst = Duration::ZERO;
                loop {
                    let begun = Instant::now();
                    // Where authentication itself is hostile the answer is a refusal; it must come all the same.
                    let _ = client.list_policies(v1::Empty {}).await;
                    worst = worst.max(begun.elapsed());
                    match stopped.recv_timeout(Duration::from_millis(2)) {
                        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                        _ => return worst,
                    }
                }
            })
        });
        during();
        stop.send(()).unwrap();
        prober.join().unwrap().as_secs_f64() * 1000.0
    })
}

fn activate(cluster: &TestCluster, slot: &str, fault: &str) {
    let role = slot.split('/').next().unwrap();
    let config = cluster.folder().join("fault.json");
    std::fs::write(&config, format!("{{\"fault\": \"{fault}\"}}")).unwrap();
    let component = hostile(role);
    cluster.ephor_ok(&["policy", "activate", slot, component.to_str().unwrap(), "--config", config.to_str().unwrap()]);
}

fn faults(cluster: &TestCluster, slot: &str) -> u64 {
    cluster.json(&["policy", "show", slot])["policies"][0]["faults"].as_u64().unwrap_or(0)
}

#[test]
fn a_hostile_policy_of_any_role_is_contained() {
    if !hostile("scheduling").is_file() {
        println!("skipped: build the hostile policies with 'make hostile'");
        return;
    }
    let cluster = TestCluster::start(Options { cpus: 64, ..Options::default() });
    let slots = ["scheduling", "priority", "accounting", "admission/50-main", "authentication/local"];
    for slot in slots {
        for fault in ["loop", "memory", "trap", "flood"] {
            let marker = cluster.folder().join(format!("go-{}-{fault}", slot.replace('/', "-")));
            let line = format!("while [ ! -e {} ]; do sleep 0.05; done", marker.display());
            let running = cluster.submit(&["--", "/bin/sh", "-c", &line]);
            cluster.wait_for_state(running, "RUNNING");
            activate(&cluster, slot, fault);
            let mut submitted = None;
            let worst = worst_answer(&cluster, || {
                let output = cluster.ephor(&["--json", "job", "submit", "--", "/bin/true"]);
                if output.status.success() {
                    let reply: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                    submitted = reply["job"].as_u64();
                }
                std::fs::write(&marker, "").unwrap();
                wait_for("the fault to be counted", || (faults(&cluster, slot) > 0).then_some(()));
            });
            println!(
                "{{\"name\":\"hostile_latency\",\"slot\":\"{slot}\",\"fault\":\"{fault}\",\"value\":{worst:.1},\"unit\":\"ms\"}}"
            );
            let refusing = slot.starts_with("admission") || slot.starts_with("authentication");
            assert_eq!(submitted.is_none(), refusing, "{slot} under {fault}: the verdict of law 6");
            let shown = cluster.ephor_ok(&["policy", "show", slot]);
            assert!(shown.contains("hostile"), "{shown}");
            cluster.ephor_ok(&["policy", "rollback", slot]);
            cluster.wait_for_state(running, "COMPLETED");
            if let Some(id) = submitted {
                cluster.wait_for_state(id, "COMPLETED");
            }
        }
    }
}

#[test]
fn charges_that_failed_are_made_good() {
    if !hostile("accounting").is_file() {
        println!("skipped: build the hostile policies with 'make hostile'");
        return;
    }
    let cluster = TestCluster::start(Options::default());
    activate(&cluster, "accounting", "trap");
    let id = cluster.submit(&["--", "/bin/sleep", "0.2"]);
    cluster.wait_for_state(id, "COMPLETED");
    wait_for("the fault to be counted", || (faults(&cluster, "accounting") > 0).then_some(()));
    assert!(cluster.job(id)["charge"].is_null());
    cluster.ephor_ok(&["policy", "rollback", "accounting"]);
    wait_for("the charge", || cluster.job(id)["charge"].as_i64().filter(|c| *c > 0));
}

#[test]
fn without_a_scheduling_policy_the_site_may_choose_to_pause() {
    if !hostile("scheduling").is_file() {
        println!("skipped: build the hostile policies with 'make hostile'");
        return;
    }
    let cluster =
        TestCluster::start(Options { config: "on_scheduling_failure = \"pause\"".into(), ..Options::default() });
    cluster.ephor_ok(&["policy", "disable", "scheduling"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let id = runtime.block_on(async {
        let job = request(&["/bin/true"], cluster.folder());
        cluster.client().await.submit(job).await.unwrap().into_inner().job
    });
    wait_for("the pause to be told", || (cluster.job(id)["reason"] == "SchedulingPaused").then_some(()));
    cluster.ephor_ok(&["policy", "rollback", "scheduling"]);
    cluster.wait_for_state(id, "COMPLETED");
}
