//! `ephor job show`.

use super::{list, reference, wait};
use crate::connect::Controller;
use crate::{Global, amount, clock, output};
use clap::Args;
use ephor_model::Span;
use ephor_model::submit::hostlist;
use ephor_proto::v1::{Job, JobQuery, JobRef, Request};
use std::process::ExitCode;

/// Shows jobs.
#[derive(Args)]
pub struct Show {
    /// Jobs: 123, or 123_4 for one element of an array
    #[arg(required = true, value_name = "ID", value_parser = reference::parse)]
    ids: Vec<JobRef>,
    /// Print the script of the one job instead
    #[arg(long)]
    script: bool,
}

impl Show {
    /// Runs the command. Ends with 1 where one of the jobs is not known; the others are shown.
    ///
    /// # Errors
    /// The query was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let mut controller = Controller::connect(global)?;
        if self.script {
            for id in &self.ids {
                let blob = controller.call(async |c| c.job_script(*id).await)?;
                output::raw(&blob.data)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let query = JobQuery { jobs: self.ids.clone(), finished: true, ..JobQuery::default() };
        let list = controller.call(async |c| c.list_jobs(query).await)?;
        if global.json {
            output::json(&list)?;
        } else {
            for (index, job) in list.jobs.iter().enumerate() {
                if index > 0 {
                    output::line("")?;
                }
                output::fields(&fields(job))?;
            }
        }
        let missing: Vec<&JobRef> =
            self.ids.iter().filter(|id| !list.jobs.iter().any(|job| reference::names(id, job))).collect();
        for id in &missing {
            output::problem(&format!("error: job {}: there is no such job", reference::show(id)));
        }
        Ok(if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn fields(job: &Job) -> Vec<(&'static str, String)> {
    let span = |ms: Option<i64>| ms.map(|ms| Span(ms).to_clock()).unwrap_or_default();
    let number = |n: i64| if n == 0 { String::new() } else { n.to_string() };
    let reason = match (job.reason.as_str(), job.reason_detail.as_str()) {
        ("" | "None", detail) => detail.to_owned(),
        (reason, "") => reason.to_owned(),
        (reason, detail) => format!("{reason}: {detail}"),
    };
    let state = if job.ended.is_some() { wait::end(job) } else { job.state.clone() };
    let depends: Vec<String> = job.dependencies.iter().map(|d| format!("{}:{}", d.kind, d.job)).collect();
    vec![
        ("Job", job.display_id.clone()),
        ("Name", job.name.clone()),
        ("User", format!("{} ({})", job.user, job.uid)),
        ("Account", job.account.clone()),
        ("Queue", job.queue.clone()),
        ("State", state),
        ("Reason", reason),
        ("Request", job.request.as_ref().map(request).unwrap_or_default()),
        ("Time limit", span(job.time_limit)),
        ("Submitted", clock::show(job.submitted)),
        ("Not before", clock::show_optional(job.begin)),
        ("Depends on", depends.join(", ")),
        ("Eligible", clock::show_optional(job.eligible)),
        ("Promised", clock::show_optional(job.promised_start)),
        ("Started", clock::show_optional(job.started)),
        ("Ends by", if job.ended.is_none() { clock::show_optional(job.expected_end) } else { String::new() }),
        ("Ended", clock::show_optional(job.ended)),
        ("Ran", list::ran(job, clock::now().0).map(Span::to_clock).unwrap_or_default()),
        ("Nodes", hostlist::fold(&job.nodes)),
        ("GPUs", job.devices.join(" ")),
        ("Attempts", number(job.attempts.into())),
        ("CPU time", if job.cpu_ms > 0 { Span(job.cpu_ms).to_clock() } else { String::new() }),
        ("Peak memory", if job.peak_mem_mib > 0 { amount::show("mem", job.peak_mem_mib) } else { String::new() }),
        ("Priority", job.priority.to_string()),
        ("Nice", number(job.nice)),
        ("Charge", job.charge.map(|c| c.to_string()).unwrap_or_default()),
        ("Requeue", if job.requeue { "yes" } else { "no" }.into()),
        ("Command", job.command.clone()),
        ("Folder", job.work_dir.clone()),
        ("Output", job.stdout.clone()),
        ("Errors", job.stderr.clone()),
        ("Comment", job.comment.clone().unwrap_or_default()),
    ]
}

/// What a job needs, in words.
fn request(r: &Request) -> String {
    let count = |n: u32, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let gpu = match r.gpu_types.join("|") {
        any if any.is_empty() => "GPU".to_owned(),
        types => format!("{types} GPU"),
    };
    let mut parts = vec![match r.nodes_max {
        Some(max) if max != r.nodes_min => format!("{}-{max} nodes", r.nodes_min),
        _ => count(r.nodes_min, "node"),
    }];
    parts.extend(r.tasks.map(|n| count(n, "task")));
    parts.extend(r.tasks_per_node.map(|n| format!("{} per node", count(n, "task"))));
    parts.push(match r.cpu_milli {
        Some(milli) => format!("{} per task", amount::show("cpu", milli.into())),
        None => format!("{} per task", count(r.cpus_per_task, "core")),
    });
    parts.extend(r.mem_per_node.map(|n| format!("{} per node", amount::show("mem", n.cast_signed()))));
    parts.extend(r.mem_per_cpu.map(|n| format!("{} per core", amount::show("mem", n.cast_signed()))));
    parts.extend(r.gpus_per_node.map(|n| format!("{} per node", count(n, &gpu))));
    parts.extend(r.gpus_per_task.map(|n| format!("{} per task", count(n, &gpu))));
    parts.extend(r.gpus_total.map(|n| count(n, &gpu)));
    parts.extend(r.gpu_share.map(|n| format!("{} of a {gpu} per node", amount::show("gpu", n.into()))));
    if !r.features.is_empty() {
        parts.push(format!("with {}", r.features.join("&")));
    }
    if !r.node_list.is_empty() {
        parts.push(format!("on {}", hostlist::fold(&r.node_list)));
    }
    if !r.exclude.is_empty() {
        parts.push(format!("not on {}", hostlist::fold(&r.exclude)));
    }
    if r.exclusive {
        parts.push("shared with nobody".into());
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_in_words() {
        let r = Request {
            nodes_min: 2,
            nodes_max: Some(2),
            tasks_per_node: Some(4),
            cpus_per_task: 1,
            mem_per_node: Some(4096),
            gpus_per_node: Some(2),
            gpu_types: vec!["a100".into()],
            exclude: vec!["n2".into(), "n1".into()],
            ..Request::default()
        };
        assert_eq!(
            request(&r),
            "2 nodes, 4 tasks per node, 1 core per task, 4G per node, 2 a100 GPUs per node, not on n[1-2]"
        );
    }
}
