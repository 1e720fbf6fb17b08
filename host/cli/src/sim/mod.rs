//! `ephor sim`: replays a trace under chosen policies, in virtual time and without a controller.

mod compare;
mod progress;
mod scenarios;

use crate::exit::CliError;
use crate::{Global, output};
use clap::{Args, Subcommand, ValueEnum};
use ephor_sim::html;
use ephor_sim::settings::{BadSetting, Settings};
use ephor_sim::simulate::{Choice, Input, Options};
use ephor_sim::workload::Estimates;
use progress::Progress;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Replay a trace under chosen policies, in virtual time
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example: ephor sim --trace KTH.swf.gz --processors 100 --scheduling backfill --estimates max"
)]
pub struct Sim {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    trace: TraceArgs,
    /// Scheduling policy: fifo, backfill, packing, fairshare, or a component's file
    #[arg(long, value_name = "NAME|FILE.wasm", default_value = "backfill")]
    scheduling: String,
    #[command(flatten)]
    choice: ChoiceArgs,
    /// Write a page about the simulation: figures, charts, tables
    #[arg(long, value_name = "FILE", conflicts_with = "scenarios")]
    html: Option<PathBuf>,
    /// Run the cases of a file of scenarios instead of a trace
    #[arg(long, value_name = "FILE.yaml", conflicts_with = "TraceArgs")]
    scenarios: Option<PathBuf>,
}

fn write_page(path: &Path, page: &str) -> anyhow::Result<()> {
    std::fs::write(path, page).map_err(|why| anyhow::anyhow!("cannot write the page '{}': {why}", path.display()))
}

#[derive(Subcommand)]
enum Command {
    Compare(compare::Compare),
}

/// What is replayed, and on which cluster.
#[derive(Args)]
struct TraceArgs {
    /// Log in the Standard Workload Format, openb list of pods, Philly log (plain or gzip), or Ephor's own: a backup, or
    /// the data folder of a stopped controller
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
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
}

impl TraceArgs {
    fn options(self, choice: Choice) -> Result<Options, CliError> {
        let Self { trace, processors, cluster, nodes, fill } = self;
        let trace = trace.ok_or_else(|| CliError::Usage("name what is to be simulated with --trace FILE".into()))?;
        Ok(Options { trace, processors, cluster, nodes, fill, choice })
    }
}

/// Who decides, but for the scheduling policy.
#[derive(Args)]
struct ChoiceArgs {
    /// Priority policy: multifactor, or a component's file [default: submission order]
    #[arg(long, value_name = "NAME|FILE.wasm")]
    priority: Option<String>,
    /// Accounting policy: tres, or a component's file [default: nothing is charged, and past use does not fade]
    #[arg(long, value_name = "NAME|FILE.wasm")]
    accounting: Option<String>,
    /// What is taken for the users' estimates
    #[arg(long, value_enum, default_value_t = EstimatesArg::Max)]
    estimates: EstimatesArg,
    /// Let every job be requeued, so that a policy may make it give way; it then runs anew from its start
    #[arg(long)]
    requeue: bool,
    /// Setting of the scheduling policy; priority.KEY=VALUE and accounting.KEY=VALUE are for those policies
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
}

impl ChoiceArgs {
    fn choice(&self, scheduling: &str) -> Result<Choice, BadSetting> {
        let mut settings = Settings::default();
        self.settings.iter().try_for_each(|text| settings.set(text))?;
        let estimates = match self.estimates {
            EstimatesArg::Max => Estimates::Max,
            EstimatesArg::Kill => Estimates::Kill,
            EstimatesArg::Exact => Estimates::Exact,
        };
        let (priority, accounting) = (self.priority.clone(), self.accounting.clone());
        let (scheduling, requeue) = (scheduling.to_owned(), self.requeue);
        Ok(Choice { scheduling, priority, accounting, estimates, requeue, settings })
    }
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
        if let Some(Command::Compare(compare)) = self.command {
            return compare.run(global);
        }
        if let Some(file) = &self.scenarios {
            return scenarios::run(file, &self.choice.choice(&self.scheduling)?, global);
        }
        let options = self.trace.options(self.choice.choice(&self.scheduling)?)?;
        let mut progress = Progress::default();
        let finished = Input::read(&options).and_then(|input| input.run(&options.choice, None, &mut progress));
        progress.clear();
        let finished = finished?;
        if let Some(path) = &self.html {
            write_page(path, &html::page(&finished))?;
        }
        match global.json {
            true => output::json(&finished.report)?,
            false => output::fields(&finished.report.fields())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
