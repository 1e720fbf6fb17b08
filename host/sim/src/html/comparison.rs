//! The page about a comparison: the runs side by side, and how each queue fared under each of them.

use super::page::Page;
use super::plot::{self, Axis, Series};
use super::steps::Steps;
use super::text::{number, percent, seconds};
use super::{PIECES, file_name};
use crate::compare::{Comparison, Line};
use crate::queues::QueueReport;
use crate::workload::Unit;
use std::collections::BTreeSet;

/// Colours for lines of a chart; runs beyond are in the tables only.
const CLASSES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// A table of queues and runs: what its cells show.
struct Cells {
    heading: &'static str,
    note: &'static str,
    /// The figure of a queue under a run.
    show: fn(&QueueReport) -> String,
    /// That of all queues together.
    all: fn(&Line) -> String,
}

/// The page, as HTML.
pub fn comparison(comparison: &Comparison) -> String {
    let mut page = Page::begin(&format!("Runs of {} compared", file_name(&comparison.trace)));
    let Some(first) = comparison.runs.first() else { return page.end() };
    let unit = unit(first);
    page.about(&[
        ("Jobs", number(first.report.jobs as f64)),
        ("Estimates", if first.report.fill.is_none() { first.report.estimates.clone() } else { String::new() }),
        ("Shaken copies", if comparison.shakes > 0 { comparison.shakes.to_string() } else { String::new() }),
    ]);
    page.heading("Runs");
    runs(&mut page, comparison);
    if comparison.runs.iter().all(|line| line.report.queues.is_empty()) {
        return page.end();
    }
    if comparison.runs.iter().any(|line| line.report.promises_kept.is_some()) {
        missed(&mut page, comparison, unit);
    }
    for cells in tables(unit) {
        page.heading(cells.heading);
        page.note(cells.note);
        by_queue(&mut page, comparison, &cells);
    }
    page.end()
}

fn unit(line: &Line) -> &'static str {
    if line.report.unit == Unit::MilliGpus.name() { "GPU" } else { "processor" }
}

fn tables(unit: &str) -> [Cells; 4] {
    let gpus = unit == "GPU";
    [
        Cells {
            heading: "Mean wait by queue",
            note: "From submission to the first start.",
            show: |q| seconds(q.mean_wait_s),
            all: |line| seconds(line.report.mean_wait_s),
        },
        Cells {
            heading: "Mean turnaround by queue",
            note: "The time from submission to the end, against the time that the job ran in the end (10 s at least): lost runs \
                   count here, and 1 is no wait at all.",
            show: |q| number(q.mean_turnaround),
            all: |line| {
                let queues = &line.report.queues;
                let jobs: u64 = queues.iter().map(|q| q.jobs).sum();
                let sum: f64 = queues.iter().map(|q| q.mean_turnaround * q.jobs as f64).sum();
                number(sum / jobs.max(1) as f64)
            },
        },
        Cells {
            heading: "Promised and kept, by queue",
            note: "Of what a queue asked for within its quota, the part that it held, over time.",
            show: |q| if q.promised_h > 0.0 { percent(1.0 - q.missed_h / q.promised_h) } else { "–".into() },
            all: |line| line.report.promises_kept.map_or_else(|| "–".into(), percent),
        },
        Cells {
            heading: if gpus {
                "GPU hours beyond the quota, by queue"
            } else {
                "Processor hours beyond the quota, by queue"
            },
            note: "What a queue held of what others left idle.",
            show: |q| number(q.beyond_h.round()),
            all: |line| number(line.report.queues.iter().map(|q| q.beyond_h).sum::<f64>().round()),
        },
    ]
}

fn runs(page: &mut Page, comparison: &Comparison) {
    let heads = [
        "Run",
        "Mean wait",
        "90th pct.",
        "99th pct.",
        "Slowdown",
        "Utilisation",
        "Promised and kept",
        "Evictions",
        "Hours lost",
        "Decision, 99th pct.",
    ];
    let row = |line: &Line| {
        let report = &line.report;
        let lost: f64 = report.queues.iter().map(|q| q.lost_h).sum();
        vec![
            breakable(&line.run),
            seconds(report.mean_wait_s),
            seconds(report.p90_wait_s as f64),
            seconds(report.p99_wait_s as f64),
            number(report.mean_bounded_slowdown),
            percent(report.utilisation),
            report.promises_kept.map_or_else(|| "–".into(), percent),
            number(report.evictions as f64),
            number(lost.round()),
            format!("{} ms", number(report.decision_ms.p99)),
        ]
    };
    page.table(&heads, &comparison.runs.iter().map(row).collect::<Vec<_>>());
}

/// What queues missed over time, a line for each run.
fn missed(page: &mut Page, comparison: &Comparison, unit: &str) {
    let samples = || comparison.runs.iter().flat_map(|line| &line.missed);
    let (from, until) = (samples().map(|m| m.at).min().unwrap_or(0), samples().map(|m| m.at).max().unwrap_or(0));
    let parts = if unit == "GPU" { Unit::MilliGpus.parts() } else { Unit::Processors.parts() } as f64;
    let mut length = 0.0;
    let series: Vec<Series<'_>> = comparison
        .runs
        .iter()
        .zip(CLASSES)
        .map(|(line, class)| {
            let mut steps = Steps::new(from, until, PIECES);
            let ends = line.missed.iter().skip(1).map(|m| m.at).chain([until]);
            line.missed.iter().zip(ends).for_each(|(m, end)| steps.add(m.at, end, m.parts as f64 / parts));
            length = steps.length();
            Series { name: &line.run, class, filled: false, values: steps.means() }
        })
        .collect();
    page.heading("Promised and missed");
    page.note("What all queues together asked for within their quotas and did not hold.");
    let label = format!("{unit}s missed");
    let note = format!("mean of each {}", seconds(length));
    page.chart(&plot::lines(&series, &Axis::seconds(from, until), &label, 1.0), &series, &note);
}

fn by_queue(page: &mut Page, comparison: &Comparison, cells: &Cells) {
    let lines = &comparison.runs;
    let names: BTreeSet<&str> = lines.iter().flat_map(|line| &line.report.queues).map(|q| q.queue.as_str()).collect();
    let of = |line: &'_ Line, name: &str| line.report.queues.iter().find(|q| q.queue == name).cloned();
    let mut rows: Vec<(QueueReport, Vec<String>)> = Vec::new();
    for name in names {
        let found: Vec<Option<QueueReport>> = lines.iter().map(|line| of(line, name)).collect();
        let Some(first) = found.iter().flatten().next().cloned() else { continue };
        let mut row = vec![first.queue.clone(), number(first.jobs as f64), number(first.quota)];
        row.extend(found.iter().map(|q| q.as_ref().map_or_else(|| "–".into(), cells.show)));
        rows.push((first, row));
    }
    // The largest first.
    rows.sort_by(|(a, _), (b, _)| b.quota.total_cmp(&a.quota).then(b.jobs.cmp(&a.jobs)));
    let mut rows: Vec<Vec<String>> = rows.into_iter().map(|(_, row)| row).collect();
    let mut last = vec!["all".to_owned(), number(lines[0].report.jobs as f64), String::new()];
    last.extend(lines.iter().map(cells.all));
    rows.push(last);
    let runs: Vec<String> = lines.iter().map(|line| breakable(&line.run)).collect();
    let heads: Vec<&str> = ["Queue", "Jobs", "Quota"].into_iter().chain(runs.iter().map(String::as_str)).collect();
    page.table(&heads, &rows);
}

/// The name of a run, which may go on in the next line behind a comma, an equals sign or a slash.
fn breakable(run: &str) -> String {
    let mut text = String::with_capacity(run.len() * 2);
    for c in run.chars() {
        text.push(c);
        if matches!(c, ',' | '=' | '/') {
            text.push('\u{200b}');
        }
    }
    text
}
