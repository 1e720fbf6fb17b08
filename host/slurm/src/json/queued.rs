//! A job as `squeue --json` writes it.

use super::Nothing::{List, No, Null, Text, Zero};
use super::{Absent, LIVE, Nothing, Rows, array, command, minutes, seconds, text, throttle};
use crate::job::JobView;
use crate::scontrol::show_job;
use ephor_model::MemRequest;
use ephor_model::submit::hostlist;
use serde::Serialize;

#[derive(Serialize)]
struct Job<'a> {
    account: &'a str,
    accrue_time: i64,
    array_job_id: u64,
    array_task_id: Option<u32>,
    array_max_tasks: u32,
    array_task_string: String,
    batch_flag: bool,
    batch_host: &'a str,
    flags: Vec<&'static str>,
    cluster: &'a str,
    command: &'a str,
    comment: &'a str,
    cpus_per_task: u32,
    deadline: i64,
    dependency: String,
    eligible_time: i64,
    end_time: i64,
    excluded_nodes: String,
    /// As the kernel gives it: the code in the upper byte, the signal in the lower one.
    exit_code: i32,
    features: String,
    group_id: u32,
    group_name: &'a str,
    job_id: u64,
    job_resources: Resources<'a>,
    job_state: &'static str,
    licenses: String,
    max_nodes: u32,
    memory_per_tres: &'a str,
    name: &'a str,
    nodes: String,
    nice: Option<i64>,
    tasks_per_node: u32,
    cpus: i64,
    node_count: u64,
    tasks: u32,
    partition: &'a str,
    memory_per_node: Option<u64>,
    memory_per_cpu: Option<u64>,
    minimum_cpus_per_node: u32,
    priority: i64,
    qos: &'a str,
    required_nodes: String,
    requeue: bool,
    restart_cnt: u32,
    resv_name: &'a str,
    shared: Option<&'static str>,
    start_time: i64,
    state_reason: &'a str,
    standard_error: String,
    standard_input: String,
    standard_output: String,
    submit_time: i64,
    time_limit: Option<i64>,
    tres_per_job: String,
    tres_per_node: String,
    tres_per_task: String,
    tres_req_str: String,
    tres_alloc_str: String,
    user_id: u32,
    user_name: &'a str,
    current_working_directory: &'a str,
    #[serde(flatten)]
    absent: Absent,
}

/// What it holds. Slurm leaves it out of a waiting job, and readers fall over that; here it is empty then.
#[derive(Serialize)]
struct Resources<'a> {
    nodes: String,
    allocated_cores: i64,
    allocated_hosts: usize,
    allocated_nodes: Vec<Allocated<'a>>,
}

#[derive(Serialize)]
struct Allocated<'a> {
    nodename: &'a str,
    /// Cores and MiB of the job on that node; null where only those on all nodes together are known.
    cpus_used: Option<i64>,
    memory_used: Option<u64>,
    memory_allocated: Option<u64>,
}

#[rustfmt::skip]
const ABSENT: &[(&str, Nothing)] = &[
    ("admin_comment", Text), ("association_id", Zero), ("batch_features", Text), ("burst_buffer", Text),
    ("burst_buffer_state", Text), ("cluster_features", Text), ("container", Text), ("contiguous", No),
    ("core_spec", Null), ("thread_spec", Null), ("cores_per_socket", Null), ("billable_tres", Null),
    ("cpu_frequency_minimum", Null), ("cpu_frequency_maximum", Null), ("cpu_frequency_governor", Null),
    ("cpus_per_tres", Text), ("delay_boot", Zero), ("derived_exit_code", Zero), ("federation_origin", Text),
    ("federation_siblings_active", Text), ("federation_siblings_viable", Text), ("gres_detail", List),
    ("last_sched_evaluation", Zero), ("max_cpus", Zero), ("mcs_label", Text), ("tasks_per_core", Null),
    ("tasks_per_socket", Null), ("tasks_per_board", Zero), ("het_job_id", Zero), ("het_job_id_set", Text),
    ("het_job_offset", Zero), ("prefer", Text), ("minimum_tmp_disk_per_node", Zero), ("preempt_time", Zero),
    ("pre_sus_time", Zero), ("profile", Null), ("reboot", No), ("resize_time", Zero), ("show_flags", List),
    ("sockets_per_board", Zero), ("sockets_per_node", Null), ("state_description", Text), ("suspend_time", Zero),
    ("system_comment", Text), ("time_minimum", Zero), ("threads_per_core", Null), ("tres_bind", Text),
    ("tres_freq", Text), ("tres_per_socket", Text), ("wckey", Text),
];

/// The jobs, in their order.
pub fn jobs(jobs: &[JobView], cluster: &str) -> String {
    let rows: Vec<Job> = jobs.iter().map(|job| row(job, cluster)).collect();
    text(LIVE, Rows::Jobs(&rows))
}

fn row<'a>(job: &'a JobView, cluster: &'a str) -> Job<'a> {
    let (array_job_id, array_task_id, array_task_string) = array(job);
    let (per_node, per_cpu) = match job.request.mem {
        MemRequest::PerNode(mib) => (Some(mib), None),
        MemRequest::PerCpu(mib) => (None, Some(mib)),
        MemRequest::Unset => (None, None),
    };
    let gpus = job.gpus();
    let tres = |name: &str| gpus.iter().find(|(n, _)| *n == name).map_or(String::new(), |(_, text)| text.clone());
    let asked = show_job::tres(job);
    Job {
        account: &job.account,
        accrue_time: seconds(job.eligible),
        array_job_id,
        array_task_id,
        array_max_tasks: throttle(&array_task_string),
        array_task_string,
        batch_flag: job.command.is_some() || job.word("Command").is_some(),
        batch_host: job.nodes.first().map_or("", String::as_str),
        flags: if per_node.or(per_cpu).is_some() { vec!["JOB_MEM_SET"] } else { Vec::new() },
        cluster,
        command: command(job),
        comment: job.comment.as_deref().unwrap_or_default(),
        cpus_per_task: job.request.cpus_per_task,
        deadline: seconds(job.deadline),
        dependency: show_job::dependencies(job),
        eligible_time: seconds(job.eligible),
        end_time: seconds(job.ended.or(job.expected_end)),
        excluded_nodes: hostlist::fold(&job.request.exclude),
        exit_code: (job.exit_code << 8) | job.exit_signal,
        features: show_job::features(job),
        group_id: job.gid,
        group_name: &job.group,
        job_id: job.id,
        job_resources: resources(job),
        job_state: job.state.name(),
        licenses: show_job::licences(job),
        max_nodes: job.request.nodes_max.unwrap_or(0),
        memory_per_tres: job.word("MemPerTres").unwrap_or_default(),
        name: &job.name,
        nodes: hostlist::fold(&job.nodes),
        nice: Some(job.nice).filter(|nice| *nice != 0),
        tasks_per_node: job.request.tasks_per_node.unwrap_or(0),
        cpus: job.cpus(),
        node_count: job.foreseen_nodes(),
        tasks: job.tasks(),
        partition: &job.queue,
        memory_per_node: per_node,
        memory_per_cpu: per_cpu,
        minimum_cpus_per_node: job.min_cpus(),
        priority: if job.reason.starts_with("JobHeld") { 0 } else { job.priority.max(0) },
        qos: job.qos.as_deref().unwrap_or_default(),
        required_nodes: hostlist::fold(&job.request.node_list),
        requeue: job.requeue,
        restart_cnt: job.attempts.saturating_sub(1),
        resv_name: job.reservation.as_deref().unwrap_or_default(),
        shared: job.request.exclusive.then_some("none"),
        start_time: seconds(job.started.or(job.promised_start)),
        state_reason: if job.reason.is_empty() { "None" } else { &job.reason },
        standard_error: show_job::path(job, job.stderr.as_ref().unwrap_or(&job.stdout)),
        standard_input: job.stdin.as_ref().map_or_else(|| "/dev/null".into(), |path| show_job::path(job, path)),
        standard_output: show_job::path(job, &job.stdout),
        submit_time: seconds(Some(job.submitted)),
        time_limit: minutes(job),
        tres_per_job: tres("TresPerJob"),
        tres_per_node: tres("TresPerNode"),
        tres_per_task: tres("TresPerTask"),
        tres_alloc_str: if job.started.is_some() { asked.clone() } else { String::new() },
        tres_req_str: asked,
        user_id: job.uid,
        user_name: &job.user,
        current_working_directory: &job.work_dir,
        absent: Absent(ABSENT),
    }
}

fn resources(job: &JobView) -> Resources<'_> {
    let alone = job.nodes.len() == 1;
    let memory = match job.request.mem {
        MemRequest::PerNode(mib) => Some(mib),
        _ => alone.then(|| job.memory()),
    };
    let allocated = job.nodes.iter().map(|name| Allocated {
        nodename: name,
        cpus_used: alone.then(|| job.cpus()),
        memory_used: memory,
        memory_allocated: memory,
    });
    Resources {
        nodes: hostlist::fold(&job.nodes),
        allocated_cores: if job.nodes.is_empty() { 0 } else { job.cpus() },
        allocated_hosts: job.nodes.len(),
        allocated_nodes: allocated.collect(),
    }
}
