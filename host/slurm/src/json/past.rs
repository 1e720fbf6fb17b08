//! A job as `sacct --json` writes it, its batch script as its one step.

use super::{PAST, Rows, array, minutes, seconds, text, throttle};
use crate::job::JobView;
use crate::sacct::{Row, recorded};
use crate::show::Shown;
use ephor_model::JobState;
use ephor_model::submit::hostlist;
use serde::Serialize;

#[derive(Serialize)]
struct Job<'a> {
    account: &'a str,
    comment: Comment<'a>,
    allocation_nodes: usize,
    array: Array,
    time: Time,
    association: Association<'a>,
    cluster: &'a str,
    constraints: String,
    derived_exit_code: Exit,
    exit_code: Exit,
    flags: [(); 0],
    group: &'a str,
    het: Het,
    job_id: u64,
    name: &'a str,
    mcs: Label,
    nodes: String,
    partition: &'a str,
    priority: i64,
    qos: &'a str,
    required: Required,
    kill_request_user: Option<()>,
    reservation: Reservation<'a>,
    state: State<'a>,
    steps: Vec<Step<'a>>,
    tres: Tres,
    user: &'a str,
    wckey: Wckey,
    working_directory: &'a str,
}

#[derive(Serialize)]
struct Comment<'a> {
    administrator: Option<()>,
    job: Option<&'a str>,
    system: Option<()>,
}

#[derive(Serialize)]
struct Array {
    job_id: u64,
    limits: Limits,
    task: Option<String>,
    task_id: Option<u32>,
}

#[derive(Serialize)]
struct Limits {
    max: Most,
}

#[derive(Serialize)]
struct Most {
    running: Tasks,
}

#[derive(Serialize)]
struct Tasks {
    tasks: u32,
}

#[derive(Serialize)]
struct Time {
    elapsed: i64,
    eligible: i64,
    end: i64,
    start: i64,
    submission: i64,
    suspended: i64,
    system: Moment,
    total: Moment,
    user: Moment,
    /// Minutes.
    limit: Option<i64>,
}

#[derive(Clone, Copy, Default, Serialize)]
struct Moment {
    microseconds: i64,
    seconds: i64,
}

impl Moment {
    fn of(ms: i64) -> Self {
        Self { microseconds: ms % 1000 * 1000, seconds: ms / 1000 }
    }
}

#[derive(Serialize)]
struct Association<'a> {
    account: &'a str,
    cluster: &'a str,
    partition: Option<()>,
    user: &'a str,
}

#[derive(Clone, Serialize)]
struct Exit {
    status: &'static str,
    return_code: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<Signal>,
}

#[derive(Clone, Serialize)]
struct Signal {
    signal_id: i32,
}

#[derive(Serialize)]
struct Het {
    job_id: u64,
    job_offset: Option<()>,
}

#[derive(Serialize)]
struct Label {
    label: &'static str,
}

#[derive(Serialize)]
struct Required {
    #[serde(rename = "CPUs")]
    cpus: i64,
    /// MiB on all nodes.
    memory: u64,
}

#[derive(Serialize)]
struct Reservation<'a> {
    id: u64,
    name: &'a str,
}

#[derive(Serialize)]
struct State<'a> {
    current: &'static str,
    reason: &'a str,
}

#[derive(Serialize)]
struct Wckey {
    wckey: &'static str,
    flags: [(); 0],
}

#[derive(Serialize)]
struct Tres {
    allocated: Vec<Amount>,
    requested: Vec<Amount>,
}

#[derive(Serialize)]
struct Amount {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    id: u32,
    count: i64,
}

#[derive(Serialize)]
struct Step<'a> {
    time: StepTime,
    exit_code: Exit,
    nodes: StepNodes<'a>,
    tasks: Count,
    kill_request_user: Option<()>,
    state: &'static str,
    step: StepId,
    tres: StepTres,
}

#[derive(Serialize)]
struct StepTime {
    elapsed: i64,
    end: i64,
    start: i64,
    suspended: i64,
    system: Moment,
    total: Moment,
    user: Moment,
}

#[derive(Serialize)]
struct StepNodes<'a> {
    list: Vec<&'a str>,
    count: usize,
    range: &'a str,
}

#[derive(Serialize)]
struct Count {
    count: u32,
}

#[derive(Serialize)]
struct StepId {
    job_id: u64,
    het: Component,
    id: &'static str,
    name: &'static str,
}

#[derive(Serialize)]
struct Component {
    component: Option<()>,
}

#[derive(Serialize)]
struct StepTres {
    requested: Measured,
    allocated: Vec<Amount>,
}

/// What was measured of a step.
#[derive(Serialize)]
struct Measured {
    max: Vec<Amount>,
}

/// The jobs of the rows, each with its script where the rows have that.
pub fn jobs(rows: &[Row], cluster: &str, shown: &Shown) -> String {
    let jobs: Vec<Job> = rows
        .iter()
        .filter(|row| !row.batch)
        .map(|row| {
            let scripts = rows.iter().filter(|other| other.batch && other.job.id == row.job.id);
            job(&row.job, cluster, shown, scripts.map(|script| step(&script.job, shown)).collect())
        })
        .collect();
    text(PAST, Rows::Jobs(&jobs))
}

fn job<'a>(job: &'a JobView, cluster: &'a str, shown: &Shown, steps: Vec<Step<'a>>) -> Job<'a> {
    let (array_job, task_id, tasks) = array(job);
    Job {
        account: &job.account,
        comment: Comment { administrator: None, job: job.comment.as_deref(), system: None },
        allocation_nodes: job.nodes.len(),
        array: Array {
            job_id: array_job,
            limits: Limits { max: Most { running: Tasks { tasks: throttle(&tasks) } } },
            task: Some(tasks).filter(|tasks| !tasks.is_empty()),
            task_id,
        },
        time: Time {
            elapsed: job.ran(shown.now).0 / 1000,
            eligible: seconds(job.eligible),
            end: seconds(job.ended),
            start: seconds(job.started),
            submission: seconds(Some(job.submitted)),
            suspended: 0,
            // Agents measure the sum.
            system: Moment::default(),
            total: Moment::of(job.cpu_ms),
            user: Moment::default(),
            limit: minutes(job),
        },
        association: Association { account: &job.account, cluster, partition: None, user: &job.user },
        cluster,
        constraints: crate::scontrol::show_job::features(job),
        derived_exit_code: Exit { status: "SUCCESS", return_code: 0, signal: None },
        exit_code: exit(job),
        flags: [],
        group: &job.group,
        het: Het { job_id: 0, job_offset: None },
        job_id: job.id,
        name: &job.name,
        mcs: Label { label: "" },
        nodes: if job.nodes.is_empty() { "None assigned".into() } else { hostlist::fold(&job.nodes) },
        partition: &job.queue,
        priority: job.priority,
        qos: job.qos.as_deref().unwrap_or_default(),
        required: Required { cpus: job.cpus(), memory: job.memory() },
        kill_request_user: None,
        reservation: Reservation { id: 0, name: job.reservation.as_deref().unwrap_or_default() },
        state: State {
            current: recorded(job.state).name(),
            reason: if job.reason.is_empty() { "None" } else { &job.reason },
        },
        steps,
        tres: Tres {
            allocated: if job.started.is_some() { amounts(job) } else { Vec::new() },
            requested: amounts(job),
        },
        user: &job.user,
        wckey: Wckey { wckey: "", flags: [] },
        working_directory: &job.work_dir,
    }
}

fn exit(job: &JobView) -> Exit {
    let signal = (job.exit_signal > 0).then_some(Signal { signal_id: job.exit_signal });
    let status = match (recorded(job.state), &signal, job.exit_code) {
        (JobState::Pending | JobState::Running, ..) => "PENDING",
        (_, Some(_), _) => "SIGNALED",
        (_, None, 0) => "SUCCESS",
        _ => "ERROR",
    };
    Exit { status, return_code: job.exit_code, signal }
}

fn step<'a>(job: &'a JobView, shown: &Shown) -> Step<'a> {
    let host = job.nodes.first().map_or("", String::as_str);
    Step {
        time: StepTime {
            elapsed: job.ran(shown.now).0 / 1000,
            end: seconds(job.ended),
            start: seconds(job.started),
            suspended: 0,
            system: Moment::default(),
            total: Moment::of(job.cpu_ms),
            user: Moment::default(),
        },
        exit_code: exit(job),
        nodes: StepNodes { list: job.nodes.first().map(String::as_str).into_iter().collect(), count: 1, range: host },
        tasks: Count { count: 1 },
        kill_request_user: None,
        state: recorded(job.state).name(),
        step: StepId { job_id: job.id, het: Component { component: None }, id: "batch", name: "batch" },
        tres: StepTres {
            // Bytes, as Slurm counts what was measured.
            requested: Measured {
                max: vec![Amount { kind: "mem", name: "", id: MEM, count: job.peak_mem.saturating_mul(1 << 20) }],
            },
            allocated: amounts(job),
        },
    }
}

/// The ids that these kinds have in every database of Slurm.
const CPU: u32 = 1;
const MEM: u32 = 2;
const NODE: u32 = 4;

fn amounts(job: &JobView) -> Vec<Amount> {
    let memory = i64::try_from(job.memory()).unwrap_or(i64::MAX);
    let nodes = i64::try_from(job.node_count()).unwrap_or(i64::MAX);
    let all = [("cpu", CPU, job.cpus()), ("mem", MEM, memory), ("node", NODE, nodes)];
    all.into_iter()
        .filter(|(.., count)| *count > 0)
        .map(|(kind, id, count)| Amount { kind, name: "", id, count })
        .collect()
}
