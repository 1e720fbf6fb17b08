//! JSON has every name of the shape that it says it has: those of Slurm 22.05.8, measured, in `json/*.names`.

use ephor_model::submit::hostlist;
use ephor_model::{JobState, MemRequest, Request, Span, Timestamp};
use ephor_slurm::job::{ArrayPlace, JobView};
use ephor_slurm::json;
use ephor_slurm::sacct::Row;
use ephor_slurm::show::{Shown, TimeFormat};
use ephor_slurm::sinfo::{NodeState, NodeView, PartitionView, Query};
use serde_json::Value;
use std::path::Path;
use std::rc::Rc;

fn job(id: u64, state: JobState) -> JobView {
    let held = if state == JobState::Pending { vec![] } else { vec!["n1".to_owned()] };
    JobView {
        id,
        array: None,
        name: "work-0".into(),
        user: "ann".into(),
        uid: 1000,
        group: "staff".into(),
        gid: 50,
        account: "lab".into(),
        queue: "main".into(),
        qos: None,
        state,
        reason: String::new(),
        submitted: Timestamp(1_000_000),
        eligible: Some(Timestamp(1_000_000)),
        begin: None,
        started: (!held.is_empty()).then_some(Timestamp(2_000_000)),
        ended: None,
        expected_end: (!held.is_empty()).then_some(Timestamp(62_000_000)),
        promised_start: None,
        deadline: None,
        time_limit: Some(Span(60_000_000)),
        attempts: u32::from(!held.is_empty()),
        exit_code: 3,
        exit_signal: 0,
        nodes: held,
        request: Request { nodes_min: 1, cpus_per_task: 2, mem: MemRequest::PerNode(100), ..Request::default() },
        cpu_ms: 1500,
        peak_mem: 7,
        cpu_milli: 2000,
        priority: 5,
        nice: 0,
        work_dir: "/home/ann".into(),
        stdin: None,
        stdout: "out-%j".into(),
        stderr: None,
        command: Some("run.sh".into()),
        dependencies: Vec::new(),
        dependency_any: false,
        comment: None,
        requeue: true,
        licences: Vec::new(),
        reservation: None,
        words: Vec::new(),
        node_cpus: None,
        default_mem_per_cpu: None,
    }
}

fn names(file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/json").join(file);
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn rows(text: &str, kind: &str, parser: &str) -> Vec<Value> {
    let mut answer: Value = serde_json::from_str(text).unwrap();
    assert_eq!(answer["meta"]["plugin"]["type"], parser);
    assert_eq!(answer["meta"]["Slurm"]["release"], "22.05.8");
    assert_eq!(answer["errors"], Value::Array(Vec::new()));
    match answer[kind].take() {
        Value::Array(rows) => rows,
        other => panic!("{kind} is {other}"),
    }
}

fn same_names(row: &Value, file: &str) {
    let mut is: Vec<String> = row.as_object().unwrap().keys().cloned().collect();
    is.sort_unstable();
    assert_eq!(is, names(file));
}

#[test]
fn queued_jobs_have_the_shape() {
    let rest = ArrayPlace { id: 9, index: None, pending: Some("1-3%2".into()) };
    let jobs = [
        job(7, JobState::Running),
        JobView { reason: "JobHeldUser".into(), array: Some(rest), ..job(9, JobState::Pending) },
    ];
    let rows = rows(&json::queued::jobs(&jobs, "c1"), "jobs", "openapi/v0.0.38");
    rows.iter().for_each(|row| same_names(row, "job.names"));
    let (running, waiting) = (&rows[0], &rows[1]);
    let node = &running["job_resources"]["allocated_nodes"][0];
    assert_eq!(
        (&node["nodename"], &node["cpus_used"], &node["memory_allocated"]),
        (&"n1".into(), &2.into(), &100.into())
    );
    assert_eq!((&running["exit_code"], &running["end_time"]), (&768.into(), &62_000.into()));
    assert_eq!((&running["job_state"], &running["time_limit"]), (&"RUNNING".into(), &1000.into()));
    assert_eq!(running["standard_output"], "/home/ann/out-7");
    assert_eq!((&waiting["array_task_string"], &waiting["array_max_tasks"]), (&"1-3%2".into(), &2.into()));
    assert_eq!((&waiting["priority"], &waiting["job_resources"]["nodes"]), (&0.into(), &"".into()));
    assert_eq!((&waiting["array_task_id"], &waiting["state_reason"]), (&Value::Null, &"JobHeldUser".into()));
}

#[test]
fn nodes_have_the_shape() {
    let view = |name: &str, state| {
        Rc::new(NodeView {
            name: name.into(),
            address: "10.0.0.1".into(),
            state,
            cpus: 4,
            cpus_used: 1,
            memory: 2000,
            memory_used: 500,
            gpus: vec![("a100".into(), 2, 1)],
            features: vec!["fast".into(), "big".into()],
            reason: String::new(),
            reason_by: String::new(),
            reason_since: None,
            version: "0.1.0".into(),
        })
    };
    let all: Vec<_> = hostlist::expand("n[1-3]").unwrap();
    let states = [NodeState::Mixed, NodeState::Draining, NodeState::Down];
    let nodes: Vec<_> = all.iter().zip(states).map(|(name, state)| view(name, state)).collect();
    let main = Rc::new(PartitionView {
        name: "main".into(),
        default: true,
        available: "up",
        max_time: None,
        default_time: None,
        max_nodes: None,
        priority: 0,
        default_mem_per_cpu: None,
        nodes: vec![0, 1],
    });
    let words = |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    let ask = |line: &str| {
        let query = Query::read(&words(line), |_| None).unwrap();
        assert!(query.json);
        rows(&json::node::nodes(&query, std::slice::from_ref(&main), &nodes), "nodes", "openapi/v0.0.38")
    };
    let rows = ask("--json");
    rows.iter().for_each(|row| same_names(row, "node.names"));
    let flags = |at: usize| (rows[at]["state"].as_str().unwrap(), rows[at]["state_flags"].to_string());
    assert_eq!(
        [flags(0), flags(1), flags(2)],
        [("mixed", "[]".into()), ("mixed", "[\"DRAIN\"]".into()), ("down", "[\"NOT_RESPONDING\"]".into())]
    );
    assert_eq!((&rows[0]["features"], &rows[0]["gres_used"]), (&"fast,big".into(), &"gpu:a100:1".into()));
    assert_eq!((&rows[0]["tres_used"], &rows[0]["idle_cpus"]), (&"cpu=1,mem=500M,gres/gpu=1".into(), &3.into()));
    assert_eq!(ask("--json -p main").len(), 2);
    assert_eq!(ask("--json -t down").len(), 1);
}

#[test]
fn jobs_of_the_past_have_the_shape() {
    let shown = Shown { now: Timestamp(5_000_000), offset: Span(0), times: TimeFormat::Iso };
    let done = JobView { state: JobState::Failed, ended: Some(Timestamp(4_000_000)), ..job(7, JobState::Running) };
    let list = [Row { job: done.clone(), batch: false }, Row { job: done, batch: true }];
    let rows = rows(&json::past::jobs(&list, "c1", &shown), "jobs", "openapi/dbv0.0.38");
    let [row] = rows.as_slice() else { panic!("{} rows", rows.len()) };
    for name in names("past.names") {
        let found = name.split('/').try_fold(row, |value, part| value.get(part));
        assert!(found.is_some(), "{name} is not in {row}");
    }
    assert_eq!((&row["state"]["current"], &row["exit_code"]["status"]), (&"FAILED".into(), &"ERROR".into()));
    assert_eq!((&row["time"]["elapsed"], &row["time"]["total"]["microseconds"]), (&2000.into(), &500_000.into()));
    assert_eq!((&row["steps"][0]["step"]["id"], &row["tres"]["requested"][1]["count"]), (&"batch".into(), &100.into()));
}
