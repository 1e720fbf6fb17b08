//! `ephor sim compare`: several policies or settings on one trace, in one table.

use super::progress::Progress;
use super::{ChoiceArgs, TraceArgs, write_page};
use crate::{Global, output};
use clap::Args;
use ephor_sim::compare::{Comparison, Line, Run, Shaken, compare};
use ephor_sim::driver::Observer;
use ephor_sim::html;
use ephor_sim::report::Report;
use ephor_sim::simulate::Choice;
use std::cell::RefCell;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run several policies or settings on one trace and print one table
#[derive(Args)]
#[command(after_help = "Example: ephor sim compare --trace KTH.swf.gz --processors 100 --run fifo --run backfill \
                  --run backfill,reservations=all --shake 10")]
pub struct Compare {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    choice: ChoiceArgs,
    /// One of the runs: a scheduling policy, and what differs in it: settings, priority=NAME, accounting=NAME, estimates=MODE,
    /// requeue=yes|no, cluster=FILE.toml
    #[arg(long = "run", value_name = "NAME[,KEY=VALUE]...", required = true)]
    runs: Vec<String>,
    /// Write a page too: the runs side by side, and how each queue fared under each
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Run each on N copies of the trace too, with times a little changed, and print spreads
    #[arg(long, value_name = "N", default_value_t = 0)]
    shake: u32,
    /// Seed of the first copy; the same seed gives the same copies
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl Compare {
    /// Runs the command.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let common = self.choice.choice(&Choice::default().scheduling)?;
        let runs = self.runs.iter().map(|text| Run::parse(text, &common)).collect::<Result<Vec<_>, _>>()?;
        let options = self.trace.options(common)?;
        let all = runs.len() * (self.shake as usize + 1);
        let progress = Shared(RefCell::new(Progress::default()));
        let mut next = |text: &str, done: usize| {
            progress.0.borrow_mut().next(&format!("{} of {all}, {text}", done + 1));
        };
        let shaken = Shaken { copies: self.shake, seed: self.seed };
        let comparison = compare(&options, &runs, shaken, &mut &progress, &mut next);
        progress.0.borrow().clear();
        let comparison = comparison?;
        if let Some(path) = &self.html {
            write_page(path, &html::comparison(&comparison))?;
        }
        match global.json {
            true => output::json(&comparison)?,
            false => print(&comparison)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The bar is told of runs and of instants by turns.
struct Shared(RefCell<Progress>);

impl Observer for &Shared {
    fn instant(&mut self, ended: usize, all: usize) {
        self.0.borrow_mut().instant(ended, all);
    }
}

fn print(comparison: &Comparison) -> anyhow::Result<()> {
    let lines = &comparison.runs;
    if lines.iter().all(|line| line.report.fill.is_some()) {
        return filled(lines);
    }
    if comparison.shakes == 0 && lines.iter().any(|line| line.report.promises_kept.is_some()) {
        let headings =
            ["RUN", "MEAN WAIT", "P90 WAIT", "SLOWDOWN", "UTIL.", "PROMISES KEPT", "EVICTIONS", "DECISION P99", "TIME"];
        return output::table(headings, lines.iter().map(shared).collect());
    }
    if comparison.shakes == 0 {
        let headings =
            ["RUN", "MEAN WAIT", "P90 WAIT", "P99 WAIT", "SLOWDOWN", "UTIL.", "LOSS", "DECISION P99", "TIME"];
        return output::table(headings, lines.iter().map(plain).collect());
    }
    let headings = ["RUN", "MEAN WAIT", "P90 WAIT", "SLOWDOWN", "UTIL.", "LOSS", "BEST IN"];
    output::table(headings, lines.iter().map(|line| spread(line, comparison.shakes)).collect())?;
    output::line(&format!(
        "On {} copies of the trace with times a little changed: the middle value, and the smallest to the largest. \
         BEST IN: copies on which the run alone had the shortest mean wait.",
        comparison.shakes
    ))
}

fn percent(part: f64) -> String {
    format!("{:.2} %", part * 100.0)
}

fn plain(line: &Line) -> [String; 9] {
    let Report { mean_wait_s, p90_wait_s, p99_wait_s, mean_bounded_slowdown, utilisation, .. } = &line.report;
    [
        line.run.clone(),
        format!("{mean_wait_s:.1} s"),
        format!("{p90_wait_s} s"),
        format!("{p99_wait_s} s"),
        format!("{mean_bounded_slowdown:.3}"),
        percent(*utilisation),
        percent(line.report.loss_of_capacity),
        format!("{:.2} ms", line.report.decision_ms.p99),
        format!("{:.1} s", line.report.wall_s),
    ]
}

/// Where queues are promised something.
fn shared(line: &Line) -> [String; 9] {
    let [run, mean, p90, _, slowdown, utilisation, _, decision, time] = plain(line);
    let kept = line.report.promises_kept.map_or_else(String::new, percent);
    [run, mean, p90, slowdown, utilisation, kept, line.report.evictions.to_string(), decision, time]
}

fn spread(line: &Line, copies: u32) -> [String; 7] {
    let show = |name: &str, write: fn(f64) -> String| {
        line.spread
            .get(name)
            .map_or_else(String::new, |s| format!("{} ({} to {})", write(s.median), write(s.min), write(s.max)))
    };
    let seconds = |value: f64| format!("{value:.0} s");
    [
        line.run.clone(),
        show("mean_wait_s", seconds),
        show("p90_wait_s", seconds),
        show("mean_bounded_slowdown", |value| format!("{value:.2}")),
        show("utilisation", percent),
        show("loss_of_capacity", percent),
        line.best_in.map_or_else(String::new, |best| format!("{best} of {copies}")),
    ]
}

fn filled(lines: &[Line]) -> anyhow::Result<()> {
    let headings = ["RUN", "UNALLOCATED", "FRAGMENTED", "FIRST REFUSAL AT", "REFUSED", "TIME"];
    let rows = lines.iter().filter_map(|line| {
        let fill = line.report.fill.as_ref()?;
        Some([
            line.run.clone(),
            format!("{:.1} GPUs", fill.unallocated_gpus),
            format!("{:.1} GPUs", fill.fragmented_gpus),
            fill.demand_at_first_refusal.map_or_else(|| "none".into(), percent),
            format!("{} of {} pods", fill.refused, fill.pods),
            format!("{:.1} s", line.report.wall_s),
        ])
    });
    output::table(headings, rows.collect())
}
