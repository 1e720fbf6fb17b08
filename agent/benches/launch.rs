//! How fast the real agent runs `/bin/true` for a controller that does nothing else, and how much a shim weighs.
//! Prints one JSON object a line.

#[path = "../tests/agent/controller.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod controller;
#[path = "../tests/agent/wait.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod wait;
#[path = "../tests/agent/world.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod world;

use controller::{Say, Session};
use ephor_proto::v1;
use std::time::{Duration, Instant};
use v1::report::What;
use world::World;

/// Jobs of one run.
const JOBS: u64 = 1_000;
/// Runs of each setting.
const RUNS: usize = 3;

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for confine in ["walk", "auto"] {
        for slots in [1, 2, 512] {
            runtime.block_on(launches(confine, slots));
        }
    }
    runtime.block_on(weight());
}

fn print(name: &str, unit: &str, mut values: Vec<f64>, settings: serde_json::Value) {
    values.sort_by(f64::total_cmp);
    let line = serde_json::json!({
        "name": name, "value": values[values.len() / 2], "unit": unit, "runs": values.len(),
        "min": values[0], "max": values[values.len() - 1], "settings": settings,
    });
    println!("{line}");
}

async fn launches(confine: &str, slots: u64) {
    let (world, mut session) = World::with_agent(&["--confine", confine]).await;
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    for run in 0..RUNS as u64 {
        let (start, before) = (Instant::now(), cpu(&world));
        all(&world, &mut session, run * JOBS, slots).await;
        let wall = start.elapsed();
        rates.push(JOBS as f64 / wall.as_secs_f64());
        costs.push((cpu(&world) - before).as_secs_f64() * 1000.0 / JOBS as f64);
    }
    let settings = serde_json::json!({ "confine": confine, "slots": slots, "jobs": JOBS });
    print("agent_launches", "jobs/s", rates, settings.clone());
    print("agent_launch_cpu", "ms of CPU per job: agent, shim and job", costs, settings);
}

async fn all(world: &World, session: &mut Session, before: u64, slots: u64) {
    let job = |n: u64| v1::Launch { stdout: "/dev/null".into(), ..world.program(before + n, &["/bin/true"]) };
    let mut next = 1;
    while next <= slots {
        session.say(Say::Launch(job(next)));
        next += 1;
    }
    let mut ended = 0;
    while ended < JOBS {
        let report = session.report().await;
        session.acknowledge(report.number);
        let Some(What::Ended(end)) = report.what else { continue };
        assert_eq!((end.cause.as_str(), end.exit_code), ("exited", 0), "{}", end.message);
        ended += 1;
        if next <= JOBS {
            session.say(Say::Launch(job(next)));
            next += 1;
        }
    }
}

/// CPU time of the agent and of everything it started and collected: shims and jobs.
fn cpu(world: &World) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", world.agent_pid())).expect("the agent is there");
    let fields: Vec<i64> = stat.rsplit(") ").next().expect("fields").split(' ').flat_map(str::parse).collect();
    // utime, stime, cutime, cstime of proc(5), in hundredths of a second: every number after the state is parsed.
    Duration::from_millis(u64::try_from(fields[10..14].iter().sum::<i64>()).expect("time goes on") * 10)
}

async fn weight() {
    let (world, mut session) = World::with_agent(&[]).await;
    let idle = resident(world.agent_pid().as_raw(), "VmRSS:");
    session.say(Say::Launch(world.program(1, &["sleep", "1000"])));
    session.began(1).await;
    // Its own process, and the job's beside it.
    wait::until("the job", || {
        world.shim("1.1").is_some_and(|shim| !ephor_agent::confine::walk::descendants(shim).is_empty())
    })
    .await;
    let shim = world.shim("1.1").expect("the job runs").as_raw();
    print("agent_idle_rss", "MiB", vec![idle], serde_json::json!({}));
    print("shim_rss", "MiB", vec![resident(shim, "VmRSS:")], serde_json::json!({}));
    print("shim_private", "MiB", vec![resident(shim, "RssAnon:")], serde_json::json!({}));
}

fn resident(pid: i32, what: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let line = status.lines().find_map(|l| l.strip_prefix(what)).expect("the kernel tells its memory");
    line.trim().trim_end_matches("kB").trim().parse::<f64>().expect("a number") / 1024.0
}
