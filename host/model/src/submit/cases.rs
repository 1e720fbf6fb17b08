//! Runs `cases.txt`: scripts and options with what they must mean.

use super::directive::split;
use super::option::{Dialect, read_words};
use super::{Caller, Place, Work, draft};
use crate::job::{Draft, JobSpec, OpenMode, Payload};
use crate::request::{GpuRequest, MemRequest, Request};
use crate::time::{Span, Timestamp, days_from_civil};

#[derive(Default)]
struct Case {
    name: String,
    line: usize,
    script: Vec<String>,
    argv: String,
    fields: Vec<String>,
    error: Option<String>,
}

fn read(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (mark, rest) = line.split_at(line.len().min(1));
        let rest = rest.strip_prefix(' ').unwrap_or(rest);
        if mark == "[" {
            cases.push(Case { name: rest.trim_end_matches(']').into(), line: index + 1, ..Case::default() });
        }
        let Some(case) = cases.last_mut() else { continue };
        match mark {
            "|" => case.script.push(rest.into()),
            "$" => case.argv = rest.into(),
            "=" => case.fields.push(rest.trim().into()),
            "!" => case.error = Some(rest.trim().into()),
            "" | "#" | "[" => {}
            _ => panic!("cases.txt line {}: {line}", index + 1),
        }
    }
    cases
}

fn run(case: &Case) -> Result<Draft, String> {
    let now = Timestamp(days_from_civil(2026, 11, 30) * 86_400_000);
    let environment = ["HOME=/home/ann".to_owned(), "LANG=C".to_owned()];
    let caller = Caller { now, utc_offset: Span(0), work_dir: "/work", environment: &environment };
    let words = split(&case.argv).unwrap();
    let options = read_words(&words, Place::CommandLine, Dialect::Ephor).map_err(|e| e.to_string())?;
    let work = match case.script.is_empty() {
        true => Work::Nothing,
        false => {
            // The real bytes of what cannot stand in a text file.
            let lines: Vec<String> = case
                .script
                .iter()
                .map(|l| l.replace("<CR>", "\r").replace("<NUL>", "\0").replace("<TAB>", "\t"))
                .collect();
            let text = lines.join("\n");
            Work::Script { text: text.into_bytes(), args: Vec::new(), name: "job.sh".into() }
        }
    };
    draft(work, &options, &caller).map_err(|e| e.to_string())
}

/// Every field that differs from that of a job without options.
fn differing(draft: &Draft) -> Vec<String> {
    let s = &draft.spec;
    let plain = JobSpec::new("job.sh", Payload::Script { args: Vec::new() });
    let (r, p) = (&s.request, Request::default());
    let mut out = Vec::new();
    let mut put = |name: &str, differs: bool, value: String| {
        if differs {
            out.push(format!("{name} {value}").trim_end().to_owned());
        }
    };
    let opt = |v: &Option<String>| v.clone().unwrap_or_default();
    put("name", s.name != plain.name, s.name.clone());
    put("queue", s.queue != plain.queue, s.queue.clone());
    put("account", s.account != plain.account, s.account.clone());
    put("qos", s.qos.is_some(), opt(&s.qos));
    let licences: Vec<String> = s.licences.iter().map(|(name, n)| format!("{name}:{n}")).collect();
    put("licences", !licences.is_empty(), licences.join(","));
    put("reservation", s.reservation.is_some(), opt(&s.reservation));
    put("comment", s.comment.is_some(), opt(&s.comment));
    put("work_dir", s.work_dir != "/work", s.work_dir.clone());
    put("stdin", s.stdin.is_some(), opt(&s.stdin));
    put("stdout", s.stdout.is_some(), opt(&s.stdout));
    put("stderr", s.stderr.is_some(), opt(&s.stderr));
    put("append", s.open_mode == OpenMode::Append, "yes".into());
    put("time", s.time_limit.is_some(), s.time_limit.map(Span::to_clock).unwrap_or_default());
    put("nice", s.nice != 0, s.nice.to_string());
    put("hold", s.hold, "yes".into());
    put("begin", s.begin.is_some(), s.begin.map(|t| t.to_iso(Span(0))).unwrap_or_default());
    put("deadline", s.deadline.is_some(), s.deadline.map(|t| t.to_iso(Span(0))).unwrap_or_default());
    put("signal", s.signal.is_some(), s.signal.map(|signal| signal.to_string()).unwrap_or_default());
    let dependencies: Vec<String> = s.dependencies.iter().map(ToString::to_string).collect();
    put("depends", !dependencies.is_empty(), dependencies.join(if s.dependency_any { "?" } else { "," }));
    put("requeue", s.requeue.is_some(), s.requeue.unwrap_or_default().to_string());
    put("array", s.array.is_some(), s.array.as_ref().map(ToString::to_string).unwrap_or_default());
    let max = r.nodes_max.map(|m| format!("-{m}")).unwrap_or_default();
    put("nodes", (r.nodes_min, r.nodes_max) != (1, None), format!("{}{max}", r.nodes_min));
    put("tasks", r.tasks.is_some(), r.tasks.unwrap_or(0).to_string());
    put("tasks_per_node", r.tasks_per_node.is_some(), r.tasks_per_node.unwrap_or(0).to_string());
    put("cpus", r.cpus_per_task != p.cpus_per_task, r.cpus_per_task.to_string());
    match r.mem {
        MemRequest::Unset => {}
        MemRequest::PerNode(n) => put("mem", true, n.to_string()),
        MemRequest::PerCpu(n) => put("mem_per_cpu", true, n.to_string()),
    }
    match r.gpus {
        GpuRequest::None => {}
        GpuRequest::PerNode(n) => put("gpus_per_node", true, n.to_string()),
        GpuRequest::PerTask(n) => put("gpus_per_task", true, n.to_string()),
        GpuRequest::Total(n) => put("gpus", true, n.to_string()),
        GpuRequest::Share(n) => put("gpu_share", true, n.to_string()),
    }
    put("gpu_type", !r.gpu_types.is_empty(), r.gpu_types.join("|"));
    put("cpu_milli", r.cpu_milli.is_some(), r.cpu_milli.unwrap_or(0).to_string());
    put("features", !r.features.is_empty(), r.features.join("&"));
    put("constraint", r.constraint.is_some(), r.constraint.as_ref().map(ToString::to_string).unwrap_or_default());
    let level = r.topology.as_ref().map(|t| format!("{}{}", t.level, if t.required { "" } else { "?" }));
    put("topology", level.is_some(), level.unwrap_or_default());
    put("node_list", !r.node_list.is_empty(), r.node_list.join(","));
    put("exclude", !r.exclude.is_empty(), r.exclude.join(","));
    put("exclusive", r.exclusive, "yes".into());
    let environment = String::from_utf8_lossy(&draft.blobs.environment).replace('\0', " ");
    put("environment", environment != "HOME=/home/ann LANG=C ", environment.trim().to_owned());
    if let Some(script) = draft.blobs.script.as_deref().filter(|_| s.name == "wrap") {
        put("script", true, String::from_utf8_lossy(script).replace('\n', "\\n"));
    }
    out
}

#[test]
fn every_case_means_what_it_must() {
    let cases = read(include_str!("cases.txt"));
    assert!(cases.len() > 100, "{} cases were read", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let at = format!("cases.txt line {}, {}", case.line, case.name);
        match (run(case), &case.error) {
            (Ok(draft), None) => {
                let (mut is, mut must) = (differing(&draft), case.fields.clone());
                is.sort();
                must.sort();
                if is != must {
                    wrong.push(format!("{at}: is {is:?}, must be {must:?}"));
                }
            }
            (Err(error), Some(part)) if error.contains(part.as_str()) => {}
            (result, _) => wrong.push(format!("{at}: {:?}", result.map(|d| differing(&d)))),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
