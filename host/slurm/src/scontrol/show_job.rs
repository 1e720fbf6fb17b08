//! `scontrol show job`: the fields of a job, several on a line, or all on one with `-o`.

use crate::job::{DependencyView, JobView};
use crate::value::{memory, time};
use ephor_model::submit::hostlist;
use ephor_model::{Span, Timestamp};

/// What the fields are shown against.
#[derive(Clone, Copy, Debug)]
pub struct Against {
    /// The time now.
    pub now: Timestamp,
    /// How far the reader's clock is ahead of UTC.
    pub offset: Span,
}

/// Writes a job.
pub fn show(job: &JobView, against: Against, one_line: bool) -> String {
    let lines = lines(job, against);
    match one_line {
        true => format!("{} ", lines.join(" ")),
        false => format!("{}\n", lines.join("\n   ")),
    }
}

/// Nothing, as Slurm writes it.
fn or_null(text: &str) -> &str {
    if text.is_empty() { "(null)" } else { text }
}

fn lines(job: &JobView, against: Against) -> Vec<String> {
    let at = |t: Option<Timestamp>| t.map(|t| t.to_iso(against.offset));
    let known = |t| at(t).unwrap_or_else(|| "Unknown".into());
    let r = &job.request;
    let mut first = format!("JobId={} ", job.id);
    if let Some(array) = &job.array {
        let index = task_id(job).unwrap_or_default();
        first.push_str(&format!("ArrayJobId={} ArrayTaskId={index} ", array.id));
        if let Some((_, throttle)) = array.pending.as_deref().and_then(|list| list.split_once('%')) {
            first.push_str(&format!("ArrayTaskThrottle={throttle} "));
        }
    }
    first.push_str(&format!("JobName={}", job.name));
    let (min_memory, mib) = job.min_memory();
    let state = job.state.name();
    let start = job.started.or(job.begin.filter(|t| *t > against.now)).or(job.promised_start);
    let end = job.ended.or(job.expected_end).or_else(|| match (start, job.time_limit) {
        (Some(start), Some(limit)) if time::long(Some(limit)) != "UNLIMITED" => Some(start + limit),
        _ => None,
    });
    let eligible = job.eligible.filter(|_| !job.reason.starts_with("JobHeld")).or(job.begin);
    let mut lines = vec![
        first,
        format!("UserId={}({}) GroupId={}({}) MCS_label=N/A", job.user, job.uid, job.group, job.gid),
        format!(
            "Priority={} Nice={} Account={} QOS={}",
            if job.reason.starts_with("JobHeld") { 0 } else { job.priority.max(0) },
            job.nice,
            or_null(&job.account),
            or_null(job.qos.as_deref().unwrap_or_default()),
        ),
        format!("JobState={state} Reason={} Dependency={}", or_none(&job.reason), or_null(&dependencies(job))),
        format!(
            "Requeue={} Restarts={} BatchFlag=1 Reboot=0 ExitCode={}:{}",
            u8::from(job.requeue),
            job.attempts.saturating_sub(1),
            job.exit_code,
            job.exit_signal
        ),
        format!(
            "RunTime={} TimeLimit={} TimeMin=N/A",
            Span(job.ran(against.now).0 / 1000 * 1000).to_clock(),
            time::long(job.time_limit)
        ),
        format!("SubmitTime={} EligibleTime={}", known(Some(job.submitted)), known(eligible)),
        format!("AccrueTime={}", known(eligible.filter(|t| *t <= against.now))),
        format!(
            "StartTime={} EndTime={} Deadline={}",
            known(start),
            known(end),
            at(job.deadline).unwrap_or_else(|| "N/A".into())
        ),
        format!(
            "SuspendTime=None SecsPreSuspend=0 LastSchedEval={} Scheduler=Main",
            known(Some(job.started.unwrap_or(job.submitted)))
        ),
        format!("Partition={} AllocNode:Sid=N/A", job.queue),
        format!("ReqNodeList={} ExcNodeList={}", or_null(&sorted(&r.node_list)), or_null(&sorted(&r.exclude))),
        format!("NodeList={}", hostlist::fold(&job.nodes)),
    ];
    if let Some(first) = job.nodes.first() {
        lines.push(format!("BatchHost={first}"));
    }
    lines.extend([
        format!(
            "NumNodes={} NumCPUs={} NumTasks={} CPUs/Task={} ReqB:S:C:T=0:0:*:*",
            node_count(job),
            job.cpus(),
            job.tasks(),
            r.cpus_per_task
        ),
        format!("TRES={}", tres(job)),
        format!("Socks/Node=* NtasksPerN:B:S:C={}:0:*:* CoreSpec=*", r.tasks_per_node.unwrap_or(0)),
        format!("MinCPUsNode={} {min_memory}={} MinTmpDiskNode=0", job.min_cpus(), amount(mib)),
        format!("Features={} DelayBoot=00:00:00", or_null(&features(job))),
    ]);
    lines.extend(job.reservation.iter().map(|name| format!("Reservation={name}")));
    lines.push(format!(
        "OverSubscribe={} Contiguous=0 Licenses={} Network=(null)",
        oversubscribe(job),
        or_null(&licences(job))
    ));
    lines.push(format!("Command={}", command(job)));
    lines.push(format!("WorkDir={}", job.work_dir));
    lines.extend(job.comment.iter().map(|comment| format!("Comment={comment} ")));
    let stdout = path(job, &job.stdout);
    lines.extend([
        format!("StdErr={}", job.stderr.as_ref().map_or_else(|| stdout.clone(), |pattern| path(job, pattern))),
        format!("StdIn={}", job.stdin.as_ref().map_or_else(|| "/dev/null".into(), |pattern| path(job, pattern))),
        format!("StdOut={stdout}"),
        "Power=".into(),
    ]);
    lines.extend(job.word("MemPerTres").map(|text| format!("MemPerTres={text}")));
    lines.extend(job.gpus().into_iter().map(|(name, text)| format!("{name}={text}")));
    if let Some(events) = job.word("MailType") {
        let user = job.word("MailUser").filter(|user| !user.is_empty()).unwrap_or(&job.user);
        lines.push(format!("MailUser={user} MailType={events}"));
    }
    lines
}

/// `NO` where it shares its nodes with nobody.
pub fn oversubscribe(job: &JobView) -> &str {
    if job.request.exclusive { "NO" } else { job.word("OverSubscribe").unwrap_or("OK") }
}

/// The index, or the indices that it stands for, in an array.
pub fn task_id(job: &JobView) -> Option<String> {
    let array = job.array.as_ref()?;
    Some(array.pending.clone().unwrap_or_else(|| array.index.unwrap_or(0).to_string()))
}

/// The script's path, as whoever submitted it gave it, or the program.
pub fn command(job: &JobView) -> &str {
    job.word("Command").unwrap_or_else(|| or_null(job.command.as_deref().unwrap_or_default()))
}

fn or_none(reason: &str) -> &str {
    if reason.is_empty() { "None" } else { reason }
}

fn amount(mib: u64) -> String {
    if mib == 0 { "0".into() } else { memory::show(mib) }
}

/// `MIN-MAX` while it waits, where both were named; else a number.
fn node_count(job: &JobView) -> String {
    match job.request.nodes_max.filter(|_| job.is_pending()) {
        Some(max) => format!("{}-{max}", job.request.nodes_min),
        None => job.foreseen_nodes().to_string(),
    }
}

/// What it asks for or holds: `cpu=1,mem=100M,node=1,billing=1`.
pub fn tres(job: &JobView) -> String {
    let cpus = job.cpus();
    let memory = job.memory();
    let memory = if memory == 0 { String::new() } else { format!("mem={},", memory::show(memory)) };
    format!("cpu={cpus},{memory}node={},billing={cpus}", job.node_count())
}

fn sorted(names: &[String]) -> String {
    hostlist::fold(names)
}

/// The features that its nodes must have.
pub fn features(job: &JobView) -> String {
    let all = job.request.features.join("&");
    match (&job.request.constraint, all.as_str()) {
        (None, _) => all,
        // Alone it needs no brackets.
        (Some(constraint), "") => {
            let text = constraint.to_string();
            let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
            inner.filter(|inner| !inner.contains(['(', ')'])).unwrap_or(&text).to_owned()
        }
        (Some(constraint), _) => format!("{constraint}&{all}"),
    }
}

/// Its licences with their counts.
pub fn licences(job: &JobView) -> String {
    let each: Vec<String> = job.licences.iter().map(|(name, n)| format!("{name}:{n}")).collect();
    each.join(",")
}

/// What it waits for, while it does.
pub fn dependencies(job: &JobView) -> String {
    if !job.is_pending() {
        return String::new();
    }
    let one = |d: &DependencyView| {
        let DependencyView { kind, job, index, array } = d;
        match (job, index) {
            (0, _) => format!("{kind}(unfulfilled)"),
            (_, Some(index)) => format!("{kind}:{job}_{index}(unfulfilled)"),
            (_, None) => format!("{kind}:{job}{}(unfulfilled)", if *array { "_*" } else { "" }),
        }
    };
    let all: Vec<String> = job.dependencies.iter().map(one).collect();
    all.join(if job.dependency_any { "?" } else { "," })
}

/// A path of output or input as `scontrol` shows it: absolute, with what is known before the job runs.
pub fn path(job: &JobView, pattern: &str) -> String {
    let mut out = String::new();
    if !pattern.starts_with('/') {
        out.push_str(job.work_dir.trim_end_matches('/'));
        out.push('/');
    }
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let mut chars = after.chars();
        let known = match chars.next() {
            Some('A') => Some(job.array.as_ref().map_or(job.id, |array| array.id).to_string()),
            // What an array shows before it is split: no index.
            Some('a') => {
                Some(job.array.as_ref().and_then(|array| array.index).map_or(NO_INDEX.into(), |n| n.to_string()))
            }
            Some('j') => Some(job.id.to_string()),
            Some('u') => Some(job.user.clone()),
            Some('x') => Some(job.name.clone()),
            Some('%') => Some("%".into()),
            _ => None,
        };
        match known {
            Some(text) => {
                out.push_str(&text);
                rest = chars.as_str();
            }
            None => {
                out.push('%');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Slurm's number for no index.
const NO_INDEX: &str = "4294967294";
