//! The fields of a job that `sacct` can show.

use super::{Row, recorded};
use crate::job::JobView;
use crate::scontrol::show_job;
use crate::show::Shown;
use crate::value::{memory, time};
use ephor_model::Span;
use ephor_model::submit::hostlist;

/// A field.
pub struct Field {
    /// Its name, which is its heading too.
    pub name: &'static str,
    /// Characters; negative: filled on the right.
    pub width: i32,
    /// Its text.
    pub value: fn(&Row, &Shown) -> String,
}

const fn field(name: &'static str, width: i32, value: fn(&Row, &Shown) -> String) -> Field {
    Field { name, width, value }
}

/// What only the job itself says, and not its batch script.
fn of_job(row: &Row, text: impl Fn(&JobView) -> String) -> String {
    if row.batch { String::new() } else { text(&row.job) }
}

/// What only the batch script says.
fn of_batch(row: &Row, text: impl Fn(&JobView) -> String) -> String {
    if row.batch { text(&row.job) } else { String::new() }
}

fn id(row: &Row, plain: String) -> String {
    if row.batch { format!("{plain}.batch") } else { plain }
}

fn elapsed(row: &Row, shown: &Shown) -> Span {
    row.job.ran(shown.now)
}

/// Cores times the time that the job had them.
fn core_seconds(row: &Row, shown: &Shown) -> i64 {
    elapsed(row, shown).0 / 1000 * allocated(&row.job)
}

fn allocated(job: &JobView) -> i64 {
    if job.started.is_some() { job.cpus() } else { 0 }
}

/// `MM:SS.mmm`, or `[D-]HH:MM:SS` from an hour on.
fn cpu_time(ms: i64) -> String {
    match ms {
        ..3_600_000 => format!("{:02}:{:02}.{:03}", ms / 60_000, ms / 1000 % 60, ms % 1000),
        _ => clock(Span(ms)),
    }
}

fn clock(span: Span) -> String {
    Span(span.0 / 1000 * 1000).to_clock()
}

fn nodes(job: &JobView) -> String {
    if job.nodes.is_empty() { "None assigned".into() } else { hostlist::fold(&job.nodes) }
}

fn exit_code(row: &Row) -> String {
    format!("{}:{}", row.job.exit_code, row.job.exit_signal)
}

fn allocated_tres(row: &Row) -> String {
    if row.job.started.is_some() { show_job::tres(&row.job) } else { String::new() }
}

/// Every field, in the order of the names.
#[rustfmt::skip]
pub const FIELDS: &[Field] = &[
    field("Account", 10, |r, _| r.job.account.clone()),
    field("AllocCPUS", 10, |r, _| allocated(&r.job).to_string()),
    field("AllocNodes", 10, |r, _| r.job.nodes.len().to_string()),
    field("AllocTRES", 10, |r, _| allocated_tres(r)),
    field("Comment", 14, |r, _| of_job(r, |j| j.comment.clone().unwrap_or_default())),
    field("CPUTime", 10, |r, s| clock(Span(core_seconds(r, s) * 1000))),
    field("CPUTimeRAW", 10, |r, s| core_seconds(r, s).to_string()),
    field("DerivedExitCode", 15, |r, _| of_job(r, |_| "0:0".into())),
    field("Elapsed", 10, |r, s| clock(elapsed(r, s))),
    field("ElapsedRaw", 10, |r, s| (elapsed(r, s).0 / 1000).to_string()),
    field("Eligible", 19, |r, s| s.time(r.job.eligible, "Unknown")),
    field("End", 19, |r, s| s.time(r.job.ended, "Unknown")),
    field("ExitCode", 8, |r, _| exit_code(r)),
    field("GID", 6, |r, _| of_job(r, |j| j.gid.to_string())),
    field("Group", 9, |r, _| of_job(r, |j| j.group.clone())),
    field("JobID", -12, |r, _| id(r, r.job.display_id())),
    field("JobIDRaw", -12, |r, _| id(r, r.job.id.to_string())),
    field("JobName", 10, |r, _| if r.batch { "batch".into() } else { r.job.name.clone() }),
    field("MaxRSS", 10, |r, _| of_batch(r, |j| format!("{}K", j.peak_mem * 1024))),
    field("NCPUS", 10, |r, _| allocated(&r.job).to_string()),
    field("NNodes", 8, |r, _| if r.batch { "1".into() } else { r.job.node_count().to_string() }),
    field("NodeList", 15, |r, _| nodes(&r.job)),
    field("NTasks", 8, |r, _| of_batch(r, |_| "1".into())),
    field("Partition", 10, |r, _| of_job(r, |j| j.queue.clone())),
    field("Planned", 10, |r, s| of_job(r, |j| clock(Span((j.started.or(j.ended).unwrap_or(s.now) - j.submitted).0.max(0))))),
    field("Priority", 10, |r, _| of_job(r, |j| j.priority.to_string())),
    field("QOS", 10, |r, _| of_job(r, |j| j.qos.clone().unwrap_or_default())),
    field("Reason", 22, |r, _| of_job(r, |j| if j.reason.is_empty() { "None".into() } else { j.reason.clone() })),
    field("ReqCPUS", 8, |r, _| r.job.cpus().to_string()),
    field("ReqMem", 10, |r, _| of_job(r, |j| memory::show(j.memory()))),
    field("ReqNodes", 8, |r, _| of_job(r, |j| j.request.nodes_min.to_string())),
    field("ReqTRES", 10, |r, _| of_job(r, show_job::tres)),
    field("Reservation", 20, |r, _| of_job(r, |j| j.reservation.clone().unwrap_or_default())),
    field("Start", 19, |r, s| s.time(r.job.started, "Unknown")),
    field("State", 10, |r, _| recorded(r.job.state).name().to_owned()),
    field("Submit", 19, |r, s| s.at(r.job.submitted)),
    field("Timelimit", 10, |r, _| of_job(r, |j| time::long(j.time_limit))),
    field("TimelimitRaw", 12, |r, _| of_job(r, |j| j.time_limit.map_or("UNLIMITED".into(), |t| (t.0 / 60_000).to_string()))),
    field("TotalCPU", 10, |r, _| cpu_time(r.job.cpu_ms)),
    field("UID", 6, |r, _| of_job(r, |j| j.uid.to_string())),
    field("User", 9, |r, _| of_job(r, |j| j.user.clone())),
    field("WCKey", 10, |_, _| String::new()),
    field("WorkDir", 20, |r, _| of_job(r, |j| j.work_dir.clone())),
];
