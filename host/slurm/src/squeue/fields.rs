//! The fields of a job that `squeue` can show, by letter and by name.

use crate::columns::Column;
use crate::job::JobView;
use crate::scontrol::show_job;
use crate::show::Shown;
use crate::value::{memory, time};
use ephor_model::submit::hostlist;
use ephor_model::{JobState, Span};

type Value = fn(&JobView, &Shown) -> String;

const fn field(code: char, long: &'static str, heading: &'static str, value: Value) -> Column<JobView> {
    Column { code: Some(code), long, heading, value }
}

const fn named(long: &'static str, heading: &'static str, value: Value) -> Column<JobView> {
    Column { code: None, long, heading, value }
}

fn null(text: &str) -> String {
    if text.is_empty() { "(null)".into() } else { text.to_owned() }
}

fn not_there(_: &JobView, _: &Shown) -> String {
    "N/A".into()
}

fn no_text(_: &JobView, _: &Shown) -> String {
    "(null)".into()
}

fn zero(_: &JobView, _: &Shown) -> String {
    "0".into()
}

fn any(_: &JobView, _: &Shown) -> String {
    "*".into()
}

fn nodes(job: &JobView) -> String {
    hostlist::fold(&job.nodes)
}

/// Nodes, or in brackets why there are none.
fn nodes_or_reason(job: &JobView) -> String {
    let by_reason = [JobState::Pending, JobState::Timeout, JobState::OutOfMemory, JobState::Deadline, JobState::Failed];
    if by_reason.contains(&job.state) { format!("({})", reason(job)) } else { nodes(job) }
}

fn reason(job: &JobView) -> &str {
    if job.reason.is_empty() { "None" } else { &job.reason }
}

fn limit(job: &JobView) -> String {
    let clock = time::long(job.time_limit);
    match job.time_limit {
        Some(span) if clock != "UNLIMITED" => time::short(span),
        _ => "UNLIMITED".into(),
    }
}

fn left(job: &JobView, shown: &Shown) -> String {
    match (limit(job).as_str(), job.time_limit) {
        ("UNLIMITED", _) | (_, None) => "UNLIMITED".into(),
        (_, Some(limit)) => time::short(Span((limit.0 - job.ran(shown.now).0).max(0))),
    }
}

fn priority(job: &JobView) -> i64 {
    if job.reason.starts_with("JobHeld") { 0 } else { job.priority.max(0) }
}

fn tres(job: &JobView, name: &str) -> String {
    job.gpus().into_iter().find(|(other, _)| *other == name).map_or_else(|| "N/A".into(), |(_, text)| text)
}

fn min_memory(job: &JobView) -> String {
    match job.min_memory().1 {
        0 => "0".into(),
        mib => memory::show(mib),
    }
}

/// Every field, in the order of `%all`.
#[rustfmt::skip]
pub const FIELDS: &[Column<JobView>] = &[
    field('a', "account", "ACCOUNT", |j, _| null(&j.account)),
    field('b', "tres-per-node", "TRES_PER_NODE", |j, _| tres(j, "TresPerNode")),
    field('c', "mincpus", "MIN_CPUS", |j, _| j.min_cpus().to_string()),
    field('d', "mintmpdisk", "MIN_TMP_DISK", zero),
    field('e', "endtime", "END_TIME", |j, s| s.time(j.ended.or(j.expected_end), "N/A")),
    field('f', "feature", "FEATURES", |j, _| null(&show_job::features(j))),
    field('G', "groupid", "GROUP", |j, _| j.gid.to_string()),
    field('h', "oversubscribe", "OVER_SUBSCRIBE", |j, _| show_job::oversubscribe(j).to_owned()),
    field('i', "jobarrayid", "JOBID", |j, _| j.display_id()),
    field('j', "name", "NAME", |j, _| j.name.clone()),
    field('k', "comment", "COMMENT", |j, _| null(j.comment.as_deref().unwrap_or_default())),
    field('l', "timelimit", "TIME_LIMIT", |j, _| limit(j)),
    field('m', "minmemory", "MIN_MEMORY", |j, _| min_memory(j)),
    field('n', "reqnodes", "REQ_NODES", |j, _| hostlist::fold(&j.request.node_list)),
    field('o', "command", "COMMAND", |j, _| show_job::command(j).to_owned()),
    field('p', "priority", "PRIORITY", |j, _| format!("{:.14}", priority(j) as f64 / f64::from(u32::MAX))),
    field('q', "qos", "QOS", |j, _| null(j.qos.as_deref().unwrap_or_default())),
    field('r', "reason", "REASON", |j, _| reason(j).to_owned()),
    field('s', "selectjobinfo", "", |_, _| String::new()),
    field('t', "statecompact", "ST", |j, _| j.state.code().to_owned()),
    field('u', "username", "USER", |j, _| j.user.clone()),
    field('v', "reservation", "RESERVATION", |j, _| null(j.reservation.as_deref().unwrap_or_default())),
    field('w', "wckey", "WCKEY", no_text),
    field('x', "excnodes", "EXC_NODES", |j, _| hostlist::fold(&j.request.exclude)),
    field('y', "nice", "NICE", |j, _| j.nice.to_string()),
    field('z', "sct", "S:C:T", |_, _| "*:*:*".into()),
    field('A', "jobid", "JOBID", |j, _| j.id.to_string()),
    field('B', "batchhost", "EXEC_HOST", |j, _| j.nodes.first().cloned().unwrap_or_else(|| "n/a".into())),
    field('C', "numcpus", "CPUS", |j, _| j.cpus().to_string()),
    field('D', "numnodes", "NODES", |j, _| j.foreseen_nodes().to_string()),
    field('E', "dependency", "DEPENDENCY", |j, _| null(&show_job::dependencies(j))),
    field('F', "arrayjobid", "ARRAY_JOB_ID", |j, _| j.array.as_ref().map_or(j.id, |a| a.id).to_string()),
    field('g', "groupname", "GROUP", |j, _| j.group.clone()),
    field('H', "sockets", "SOCKETS_PER_NODE", any),
    field('I', "cores", "CORES_PER_SOCKET", any),
    field('J', "threads", "THREADS_PER_CORE", any),
    field('K', "arraytaskid", "ARRAY_TASK_ID", |j, _| show_job::task_id(j).unwrap_or_else(|| "N/A".into())),
    field('L', "timeleft", "TIME_LEFT", left),
    field('M', "timeused", "TIME", |j, s| time::short(j.ran(s.now))),
    field('N', "nodelist", "NODELIST", |j, _| nodes(j)),
    field('O', "contiguous", "CONTIGUOUS", zero),
    field('P', "partition", "PARTITION", |j, _| j.queue.clone()),
    field('Q', "prioritylong", "PRIORITY", |j, _| priority(j).to_string()),
    field('R', "reasonlist", "NODELIST(REASON)", |j, _| nodes_or_reason(j)),
    field('S', "starttime", "START_TIME", |j, s| s.time(j.started.or(j.promised_start), "N/A")),
    field('T', "state", "STATE", |j, _| j.state.name().to_owned()),
    field('U', "userid", "UID", |j, _| j.uid.to_string()),
    field('V', "submittime", "SUBMIT_TIME", |j, s| s.at(j.submitted)),
    field('W', "licenses", "LICENSES", |j, _| null(&show_job::licences(j))),
    field('X', "corespec", "CORE_SPEC", not_there),
    field('Y', "schednodes", "SCHEDNODES", no_text),
    field('Z', "workdir", "WORK_DIR", |j, _| j.work_dir.clone()),
    named("accruetime", "ACCRUE_TIME", |j, s| s.time(j.eligible, "N/A")),
    named("admin_comment", "ADMIN_COMMENT", no_text),
    named("batchflag", "BATCH_FLAG", |_, _| "1".into()),
    named("cpus-per-task", "CPUS_PER_TASK", |j, _| j.request.cpus_per_task.to_string()),
    named("deadline", "DEADLINE", |j, s| s.time(j.deadline, "N/A")),
    named("delayboot", "DELAY_BOOT", |_, _| "0:00".into()),
    named("derivedec", "DERIVED_EC", zero),
    named("eligibletime", "ELIGIBLE_TIME", |j, s| s.time(j.eligible, "N/A")),
    named("exit_code", "EXIT_CODE", |j, _| j.exit_code.to_string()),
    named("hetjobid", "HET_JOB_ID", not_there),
    named("hetjobidset", "HET_JOB_ID_SET", not_there),
    named("hetjoboffset", "HET_JOB_OFFSET", not_there),
    named("maxnodes", "MAX_NODES", |j, _| j.request.nodes_max.unwrap_or(0).to_string()),
    named("mcslabel", "MCSLABEL", no_text),
    named("mem-per-tres", "MEM_PER_TRES", |j, _| j.word("MemPerTres").unwrap_or("N/A").to_owned()),
    named("network", "NETWORK", no_text),
    named("ntpernode", "NTASKS_PER_NODE", |j, _| j.request.tasks_per_node.unwrap_or(0).to_string()),
    named("ntpersocket", "NTASKS_PER_SOCKET", not_there),
    named("ntpercore", "NTASKS_PER_CORE", not_there),
    named("numtasks", "TASKS", |j, _| j.tasks().to_string()),
    named("pendingtime", "PENDING_TIME", |j, s| ((j.started.unwrap_or(s.now) - j.submitted).0.max(0) / 1000).to_string()),
    named("profile", "PROFILE", |_, _| "NotSet".into()),
    named("reboot", "REBOOT", zero),
    named("requeue", "REQUEUE", |j, _| u8::from(j.requeue).to_string()),
    named("restartcnt", "RESTART_COUNT", |j, _| j.attempts.saturating_sub(1).to_string()),
    named("stderr", "STDERR", |j, _| show_job::path(j, j.stderr.as_ref().unwrap_or(&j.stdout))),
    named("stdin", "STDIN", |j, _| j.stdin.as_ref().map_or_else(|| "/dev/null".into(), |path| show_job::path(j, path))),
    named("stdout", "STDOUT", |j, _| show_job::path(j, &j.stdout)),
    named("system_comment", "SYSTEM_COMMENT", no_text),
    named("tres", "TRES_ALLOC", |j, _| show_job::tres(j)),
    named("tres-alloc", "TRES_ALLOC", |j, _| show_job::tres(j)),
    named("tres-per-job", "TRES_PER_JOB", |j, _| tres(j, "TresPerJob")),
    named("tres-per-socket", "TRES_PER_SOCKET", not_there),
    named("tres-per-task", "TRES_PER_TASK", |j, _| tres(j, "TresPerTask")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_letter_and_no_name_is_taken_twice() {
        let mut letters: Vec<char> = FIELDS.iter().filter_map(|field| field.code).collect();
        let mut names: Vec<&str> = FIELDS.iter().map(|field| field.long).collect();
        let count = (letters.len(), names.len());
        letters.sort_unstable();
        letters.dedup();
        names.sort_unstable();
        names.dedup();
        assert_eq!((letters.len(), names.len()), count);
    }
}
