//! `ephor sim`: replays a trace under chosen policies, in virtual time and without a controller.

use crate::{Global, output};
use clap::{Args, ValueEnum};
use ephor_sim::driver::Observer;
use ephor_sim::settings::{BadSetting, Settings};
use ephor_sim::simulate::{Choice, Options, simulate};
use ephor_sim::workload::Estimates;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often the progress line is written anew.
const REFRESH: Duration = Duration::from_millis(100);
/// Instants between two looks at the clock.
const LOOK_EVERY: u32 = 256;

/// Replay a trace under chosen policies
#[derive(Args)]
#[command(after_help = "Example: ephor sim --trace KTH.swf.gz --processors 100 --scheduling backfill --estimates max")]
pub struct Sim {
    /// Log in the Standard Workload Format, openb list of pods, Philly log (plain or gzip), or Ephor's own: a backup, or
    /// the data folder of a stopped controller
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Cluster of one node with that many processors [default: what the trace says]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    processors: Option<u32>,
    /// Cluster of groups of nodes, and queues
    #[arg(long, value_name = "FILE.toml")]
    cluster: Option<PathBuf>,
    /// Cluster of an openb list of nodes
    #[arg(long, value_name = "FILE.csv")]
    nodes: Option<PathBuf>,
    /// Fill the cluster with openb pods until they ask for this share of its GPUs; none ever ends
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    fill: Option<f64>,
    /// Scheduling policy: fifo, backfill, or a component's file
    #[arg(long, value_name = "NAME|FILE.wasm", default_value = "backfill")]
    scheduling: String,
    /// Priority policy: multifactor, or a component's file [default: submission order]
    #[arg(long, value_name = "NAME|FILE.wasm")]
    priority: Option<String>,
    /// What is taken for the users' estimates
    #[arg(long, value_enum, default_value_t = EstimatesArg::Max)]
    estimates: EstimatesArg,
    /// Setting of the scheduling policy; priority.KEY=VALUE is one of the priority policy
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum EstimatesArg {
    /// The larger of estimate and run time: nobody is ended
    Max,
    /// As they are: a job is ended when its estimate is over
    Kill,
    /// The run time itself
    Exact,
}

impl Sim {
    /// Runs the command.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let options = Options {
            trace: self.trace,
            processors: self.processors,
            cluster: self.cluster,
            nodes: self.nodes,
            fill: self.fill,
            choice: Choice {
                scheduling: self.scheduling,
                priority: self.priority,
                estimates: match self.estimates {
                    EstimatesArg::Max => Estimates::Max,
                    EstimatesArg::Kill => Estimates::Kill,
                    EstimatesArg::Exact => Estimates::Exact,
                },
                settings: settings(&self.settings)?,
            },
        };
        let mut progress = Progress::default();
        let report = simulate(&options, &mut progress);
        progress.clear();
        let report = report?;
        match global.json {
            true => output::json(&report)?,
            false => output::fields(&report.fields())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn settings(texts: &[String]) -> Result<Settings, BadSetting> {
    let mut settings = Settings::default();
    texts.iter().try_for_each(|text| settings.set(text))?;
    Ok(settings)
}

/// One line on standard error, where that is a terminal.
struct Progress {
    shown: bool,
    instants: u32,
    began: Instant,
    last: Instant,
}

impl Default for Progress {
    fn default() -> Self {
        let now = Instant::now();
        Self { shown: false, instants: 0, began: now, last: now }
    }
}

impl Observer for Progress {
    fn instant(&mut self, ended: usize, all: usize) {
        self.instants += 1;
        if self.instants < LOOK_EVERY {
            return;
        }
        self.instants = 0;
        if self.last.elapsed() < REFRESH || !io::stderr().is_terminal() {
            return;
        }
        self.last = Instant::now();
        self.shown = true;
        let rate = ended as f64 / self.began.elapsed().as_secs_f64();
        let left = (all - ended) as f64 / rate.max(1.0);
        // A terminal that is gone needs no progress line.
        let _ = write!(io::stderr(), "\r\x1b[K{ended} of {all} jobs, {rate:.0}/s, {left:.0} s left");
    }
}

impl Progress {
    fn clear(&self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
