//! Self-contained pages about a simulation and about a comparison: figures, charts and tables, without anything from
//! elsewhere.

mod comparison;
mod groups;
mod page;
mod plot;
mod steps;
mod text;

use crate::metrics::{Ran, bounded_slowdown};
use crate::report::ran_jobs;
use crate::simulate::Finished;
use crate::sweep;
use crate::workload::Unit;
use ephor_core::State;
use ephor_model::ResourceId;
use groups::Placed;
use page::Page;
use plot::{Axis, Series};
use std::collections::BTreeMap;
use steps::Steps;
use text::{number, percent, seconds};

pub use comparison::comparison;

/// Pieces into which the time of a chart is cut.
const PIECES: usize = 480;

/// The page, as HTML.
pub fn page(run: &Finished) -> String {
    let report = &run.report;
    let mut page = Page::begin(&format!("Simulation of {}", file_name(&report.trace)));
    page.about(&about(run));
    if let Some(fill) = &report.fill {
        page.cards(&[
            ("GPUs unallocated", number(fill.unallocated_gpus)),
            ("GPUs allocated", number(fill.allocated_gpus)),
            ("of the free ones fragmented", number(fill.fragmented_gpus)),
            ("demand, of all GPUs", percent(fill.demand)),
            ("demand at first refusal", fill.demand_at_first_refusal.map_or_else(|| "none".into(), percent)),
            (&format!("pods refused, of {}", number(fill.pods as f64)), number(fill.refused as f64)),
        ]);
        filled(&mut page, run);
        kinds(&mut page, &run.outcome.state);
        decisions(&mut page, run);
        return page.end();
    }
    page.cards(&[
        ("mean wait", seconds(report.mean_wait_s)),
        ("wait, 90th percentile", seconds(report.p90_wait_s as f64)),
        ("wait, 99th percentile", seconds(report.p99_wait_s as f64)),
        ("longest wait", seconds(report.max_wait_s as f64)),
        ("mean bounded slowdown", number(report.mean_bounded_slowdown)),
        (
            if run.workload.unit == Unit::MilliGpus { "GPU utilisation" } else { "utilisation" },
            percent(report.utilisation),
        ),
        ("loss of capacity", percent(report.loss_of_capacity)),
        ("decision, 99th percentile", format!("{} ms", number(report.decision_ms.p99))),
    ]);
    let jobs = ran_jobs(&run.workload, &run.outcome);
    over_time(&mut page, run, &jobs);
    waits(&mut page, run, &jobs);
    slowdowns(&mut page, &jobs);
    decisions(&mut page, run);
    page.end()
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn about(run: &Finished) -> Vec<(&'static str, String)> {
    let report = &run.report;
    let mut cluster =
        format!("{} nodes, {} processors", number(f64::from(report.nodes)), number(f64::from(report.processors)));
    if report.nodes == 1 {
        cluster = format!("{} processors", number(f64::from(report.processors)));
    }
    if report.gpus > 0.0 {
        cluster.push_str(&format!(", {} GPUs", number(report.gpus)));
    }
    let settings: Vec<String> = report.settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mut jobs = format!("{} ran", number(report.jobs as f64));
    for (count, what) in [
        (report.never_started, "never started"),
        (u64::from(report.never_runnable), "ask for more than there is"),
        (u64::from(report.dropped), "entries without a run"),
    ] {
        if count > 0 {
            jobs.push_str(&format!(", {} {what}", number(count as f64)));
        }
    }
    vec![
        ("Cluster", cluster),
        ("Jobs", jobs),
        ("Scheduling", report.policy.clone()),
        ("Priority", report.priority.clone().unwrap_or_else(|| "submission order".into())),
        ("Accounting", report.accounting.clone().unwrap_or_else(|| "none".into())),
        ("Settings", settings.join(" ")),
        ("Estimates", if report.fill.is_none() { report.estimates.clone() } else { String::new() }),
    ]
}

/// Queue length, utilisation and what is free over time.
fn over_time(page: &mut Page, run: &Finished, jobs: &[Placed]) {
    let ran: Vec<Ran> = jobs.iter().map(|(_, ran)| *ran).collect();
    let from = ran.iter().map(|j| j.submit).min().unwrap_or(0);
    let until = ran.iter().map(|j| j.start + j.run).max().unwrap_or(0);
    let unit = run.workload.unit;
    let capacity = match unit {
        Unit::Processors => f64::from(run.report.processors),
        Unit::MilliGpus => run.report.gpus,
    };
    let parts = unit.parts() as f64;
    let new = || Steps::new(from, until, PIECES);
    let (mut waiting, mut held, mut idle) = (new(), new(), new());
    idle.add(from, until, capacity);
    sweep::sweep(&ran, |level| {
        waiting.add(level.from, level.until, level.waiting as f64);
        held.add(level.from, level.until, level.held as f64 / parts);
    });
    let piece = seconds(waiting.length());
    let axis = || Axis::seconds(from, until);

    page.heading("Queue length");
    let series = [
        Series { name: "mean", class: "a", filled: true, values: waiting.means() },
        Series { name: "highest", class: "b", filled: false, values: waiting.most() },
    ];
    page.chart(&plot::lines(&series, &axis(), "jobs waiting", 1.0), &series, &format!("in each {piece}"));

    let percents = |values: Vec<f64>| values.into_iter().map(|v| 100.0 * v / capacity.max(1.0)).collect::<Vec<_>>();
    page.heading("Utilisation");
    let series = [Series { name: "mean", class: "a", filled: true, values: percents(held.means()) }];
    let label = format!("% of {} in use", if unit == Unit::MilliGpus { "GPUs" } else { "processors" });
    page.chart(&plot::lines(&series, &axis(), &label, 100.0), &series, &format!("in each {piece}"));

    let free: Vec<f64> = held.means().into_iter().map(|v| (capacity - v).max(0.0)).collect();
    if unit == Unit::Processors {
        page.heading("Free processors");
        let series = [Series { name: "mean", class: "a", filled: true, values: free }];
        page.chart(&plot::lines(&series, &axis(), "processors free", capacity), &series, &format!("in each {piece}"));
        return;
    }
    let mut broken = new();
    let samples = &run.gpus.samples;
    let ends = samples.iter().skip(1).map(|s| s.at).chain([until]);
    for (sample, end) in samples.iter().zip(ends) {
        broken.add(sample.at, end, sample.broken as f64 / 1000.0);
    }
    page.heading("Free GPUs");
    let series = [
        Series { name: "free", class: "a", filled: true, values: free },
        Series { name: "of them on nodes that are partly taken", class: "b", filled: true, values: broken.means() },
    ];
    page.chart(&plot::lines(&series, &axis(), "GPUs free", capacity), &series, &format!("mean of each {piece}"));
}

fn waits(page: &mut Page, run: &Finished, jobs: &[Placed]) {
    let unit = if run.workload.unit == Unit::MilliGpus { "GPUs" } else { "Processors" };
    page.heading("Wait by size of job");
    page.groups(unit, &groups::by_size(jobs, run.workload.unit.parts()));
    let queues = groups::by_queue(jobs, &run.workload);
    if queues.len() > 1 {
        page.heading("Wait by queue");
        page.groups("Queue", &queues);
    }
    let users = groups::by_user(jobs, &run.workload);
    if users.len() > 1 {
        page.heading("Wait by user");
        page.groups("User", &users);
    }
}

/// How many jobs had which slowdown.
fn slowdowns(page: &mut Page, jobs: &[Placed]) {
    const ENDS: [f64; 10] = [1.01, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
    let mut counts = [0u32; ENDS.len() + 1];
    for (_, ran) in jobs {
        let slowdown = bounded_slowdown(ran);
        counts[ENDS.iter().position(|end| slowdown < *end).unwrap_or(ENDS.len())] += 1;
    }
    let name = |index: usize| match index {
        0 => "1".to_owned(),
        1 => "to 2".to_owned(),
        n if n < ENDS.len() => format!("to {}", ENDS[n]),
        _ => "above".to_owned(),
    };
    let names: Vec<String> = (0..counts.len()).map(name).collect();
    let all = jobs.len().max(1) as f64;
    let values: Vec<f64> = counts.iter().map(|n| 100.0 * f64::from(*n) / all).collect();
    page.heading("Slowdown");
    page.picture(
        &plot::bars(
            &names,
            &values,
            "bounded slowdown: (wait + run) / run, a run counted as 10 s at least",
            "% of jobs",
        ),
        "1: the job did not wait worth speaking of.",
    );
}

/// How long cycles took.
fn decisions(page: &mut Page, run: &Finished) {
    // Milliseconds.
    const ENDS: [f64; 16] =
        [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0];
    let mut counts = [0u32; ENDS.len() + 1];
    for took in &run.outcome.decisions {
        let ms = took.as_secs_f64() * 1000.0;
        counts[ENDS.iter().position(|end| ms < *end).unwrap_or(ENDS.len())] += 1;
    }
    let first = counts.iter().position(|n| *n > 0).unwrap_or(0);
    let last = counts.iter().rposition(|n| *n > 0).unwrap_or(0);
    let name = |index: usize| match ENDS.get(index) {
        Some(end) => format!("< {}", number(*end)),
        None => "more".to_owned(),
    };
    let names: Vec<String> = (first..=last).map(name).collect();
    let values: Vec<f64> = counts[first..=last].iter().map(|n| f64::from(*n)).collect();
    let decisions = run.report.decision_ms;
    let [p50, p99, max] = [decisions.p50, decisions.p99, decisions.max].map(number);
    page.heading("Decision times");
    let caption = format!(
        "{} cycles: half of them took up to {p50} ms, 99 of 100 up to {p99} ms, the longest {max} ms. \
         Policies and core together, on the machine of this simulation.",
        number(run.report.cycles as f64)
    );
    page.picture(&plot::bars(&names, &values, "time of a cycle, ms", "cycles"), &caption);
}

/// What was allocated as the pods came.
fn filled(page: &mut Page, run: &Finished) {
    let unit = run.workload.unit;
    let sizes = run.workload.jobs.iter().map(|job| unit.size(&job.spec.request));
    let all: i64 = sizes.clone().sum();
    let (mut asked, mut given) = (0, 0);
    let mut allocated = Vec::new();
    let mut demand = Vec::new();
    for (size, start) in sizes.zip(&run.outcome.starts) {
        let piece = (asked * PIECES as i64 / all.max(1)) as usize;
        asked += size;
        given += if start.is_some() { size } else { 0 };
        allocated.resize(piece + 1, given as f64 / 1000.0);
        demand.resize(piece + 1, asked as f64 / 1000.0);
        (allocated[piece], demand[piece]) = (given as f64 / 1000.0, asked as f64 / 1000.0);
    }
    page.heading("What found a place");
    let until = 100.0 * run.report.fill.as_ref().map_or(1.0, |fill| fill.demand);
    let axis = Axis { label: "demand so far, % of the GPUs, in list order".into(), from: 0.0, until };
    let series = [
        Series { name: "asked for", class: "b", filled: false, values: demand },
        Series { name: "allocated in the end", class: "a", filled: true, values: allocated },
    ];
    page.chart(&plot::lines(&series, &axis, "GPUs", run.report.gpus), &series, "of the pods so far");
}

/// What is free at the end, by kind of GPU.
fn kinds(page: &mut Page, state: &State) {
    let mut kinds: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for (id, node) in &state.nodes {
        // All GPUs of a simulated node are of one kind.
        let Some(device) = node.spec.devices.first() else { continue };
        let (all, free) = kinds.entry(device.kind.as_str()).or_default();
        *all += node.spec.capacity.get(ResourceId::GPU);
        *free += state.free(*id).get(ResourceId::GPU);
    }
    page.heading("Left over by kind of GPU");
    let rows: Vec<Vec<String>> = kinds
        .into_iter()
        .map(|(kind, (all, free))| {
            let whole = |milli: i64| number(milli as f64 / 1000.0);
            vec![kind.to_owned(), whole(all), whole(free), percent(free as f64 / all.max(1) as f64)]
        })
        .collect();
    page.table(&["Kind", "GPUs", "Unallocated", "Part"], &rows);
}
