//! From the name of a trace to a report: what `ephor sim` does.

use crate::cluster::SimCluster;
use crate::driver::{self, Observer, Outcome, SimError};
use crate::fill::{self, FillReport};
use crate::gpus::GpuBooks;
use crate::limits::PROCESSORS;
use crate::line::BadLine;
use crate::policies::{Policies, PolicyError};
use crate::queues::{Missed, QueueBooks};
use crate::read::{self, ReadError};
use crate::report::{Heading, Report};
use crate::settings::Settings;
use crate::trace::{Trace, TraceError};
use crate::workload::{Estimates, Shaper, Workload};
use ephor_core::Stamped;
use ephor_model::{ResourceId, Role};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What is to be simulated.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The trace.
    pub trace: PathBuf,
    /// The cluster is one node of so many processors.
    pub processors: Option<u32>,
    /// The cluster is that of a TOML file.
    pub cluster: Option<PathBuf>,
    /// The cluster is that of an openb node list. Without any of these it is what the trace says.
    pub nodes: Option<PathBuf>,
    /// Fill the cluster with the pods of an openb list until they ask for this share of its GPUs.
    pub fill: Option<f64>,
    /// Who decides.
    pub choice: Choice,
}

/// Who decides, and on what.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The scheduling policy: a built-in one's name, or a file.
    pub scheduling: String,
    /// The priority policy, likewise; `None`: submission order.
    pub priority: Option<String>,
    /// The accounting policy, likewise; `None`: nothing is charged, and past use does not fade.
    pub accounting: Option<String>,
    /// What is taken for estimates.
    pub estimates: Estimates,
    /// Whether all jobs may be requeued, and so be made to give way; else those only of which the trace says so.
    pub requeue: bool,
    /// Settings of the policies.
    pub settings: Settings,
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            scheduling: "backfill".into(),
            priority: None,
            accounting: None,
            estimates: Estimates::Max,
            requeue: false,
            settings: Settings::default(),
        }
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The trace cannot be read, or is in no known format.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The file of the cluster cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file of the cluster is wrong.
    #[error("the cluster '{}' cannot be simulated: {why}", path.display())]
    Cluster {
        /// The file.
        path: PathBuf,
        /// Which line and why.
        why: BadLine,
    },
    /// A job of the trace cannot be simulated.
    #[error("the trace '{}' cannot be simulated: {why}", path.display())]
    Job {
        /// The file.
        path: PathBuf,
        /// Which and why.
        why: BadLine,
    },
    /// Options that do not go together, or what none of them says.
    #[error("{0}")]
    Options(String),
    /// Settings of a policy that does not take part.
    #[error("there are settings for the {0} policy but none is named; name one with --{0}")]
    NotNamed(Role),
    /// A policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The simulation stopped.
    #[error(transparent)]
    Sim(#[from] SimError),
}

/// A trace and its cluster, read once for any number of runs.
#[derive(Clone, Debug)]
pub struct Input {
    path: PathBuf,
    trace: Trace,
    cluster: SimCluster,
    /// The cluster is one node of so many processors.
    one_node: Option<u32>,
    fill: Option<f64>,
    read_s: f64,
}

/// A run with everything that pages and tables are made of.
#[derive(Debug)]
pub struct Finished {
    /// The figures.
    pub report: Report,
    /// What was simulated.
    pub workload: Workload,
    /// What became of it.
    pub outcome: Outcome,
    /// Free GPUs over time.
    pub gpus: GpuBooks,
    /// What queues missed of what they are promised, over time.
    pub missed: Vec<Missed>,
}

/// Simulates.
///
/// # Errors
/// See [`SimulateError`].
pub fn simulate(options: &Options, observer: &mut dyn Observer) -> Result<Report, SimulateError> {
    Ok(Input::read(options)?.run(&options.choice, None, observer)?.report)
}

impl Input {
    /// Reads the trace and the cluster that the options name.
    ///
    /// # Errors
    /// See [`SimulateError`].
    pub fn read(options: &Options) -> Result<Self, SimulateError> {
        let began = Instant::now();
        if options.processors.is_some_and(|n| !(1..=PROCESSORS).contains(&n)) {
            let given = options.processors.unwrap_or(0);
            let text = format!("a cluster of {given} processors cannot be simulated; take 1 to {PROCESSORS}");
            return Err(SimulateError::Options(text));
        }
        let trace = Trace::read(&options.trace)?;
        let cluster = cluster(options, &trace)?;
        let one_node = match (&trace, options.cluster.is_none() && options.nodes.is_none()) {
            (Trace::Swf(log), true) => options.processors.or_else(|| log.processors()),
            _ => options.processors,
        };
        if let Some(share) = options.fill {
            check_fill(share, &trace, &cluster)?;
        }
        let read_s = began.elapsed().as_secs_f64();
        Ok(Self { path: options.trace.clone(), trace, cluster, one_node, fill: options.fill, read_s })
    }

    /// The cluster.
    pub fn cluster(&self) -> &SimCluster {
        &self.cluster
    }

    /// Simulates under that choice; `shake`: with times a little changed, each seed in its own way.
    ///
    /// # Errors
    /// See [`SimulateError`].
    pub fn run(
        &self,
        choice: &Choice,
        shake: Option<u64>,
        observer: &mut dyn Observer,
    ) -> Result<Finished, SimulateError> {
        let began = Instant::now();
        for (role, named) in [(Role::Priority, &choice.priority), (Role::Accounting, &choice.accounting)] {
            if choice.settings.has(role) && named.is_none() {
                return Err(SimulateError::NotNamed(role));
            }
        }
        let workload = self.workload(choice, shake)?;
        let (mut policies, chosen) = Policies::load(choice)?;
        let prepare_s = self.read_s + began.elapsed().as_secs_f64();

        let began = Instant::now();
        let mut watch = Watch { gpus: GpuBooks::default(), queues: QueueBooks::new(workload.unit), observer };
        let outcome = match self.fill {
            Some(_) => driver::fill(&workload, &self.cluster, &mut policies, &mut watch)?,
            None => driver::run(&workload, &self.cluster, &mut policies, &mut watch)?,
        };
        let wall_s = began.elapsed().as_secs_f64();
        let (gpus, queues) = (watch.gpus, watch.queues.reports());
        let missed = watch.queues.missed();
        let capacity = self.cluster.capacity();
        let end = gpus.samples.last().map_or(0, |sample| sample.at);
        let heading = Heading {
            trace: self.path.display().to_string(),
            policy: chosen.scheduling,
            priority: chosen.priority,
            accounting: chosen.accounting,
            settings: choice.settings.all(),
            estimates: choice.estimates.name().to_owned(),
            nodes: self.cluster.nodes.len() as u32,
            processors: u32::try_from(capacity.get(ResourceId::CPU) / 1000).unwrap_or(u32::MAX),
            milli_gpus: capacity.get(ResourceId::GPU),
            gpu_fragmentation: gpus.fragmentation(end),
            queues,
            fill: self.fill.map(|_| FillReport::of(&workload, &self.cluster, &outcome)),
            prepare_s,
            wall_s,
        };
        Ok(Finished { report: Report::of(&workload, &outcome, heading), workload, outcome, gpus, missed })
    }

    fn workload(&self, choice: &Choice, shake: Option<u64>) -> Result<Workload, SimulateError> {
        if let (Trace::Openb(pods), Some(share)) = (&self.trace, self.fill) {
            return Ok(fill::workload(pods, share, self.cluster.capacity().get(ResourceId::GPU)));
        }
        let shaper = match shake {
            Some(seed) => Shaper::shaken(choice.estimates, seed),
            None => Shaper::plain(choice.estimates),
        };
        let mut shaper = shaper.requeued(choice.requeue);
        let workload = self.trace.workload(&self.cluster, self.one_node, &mut shaper);
        workload.map_err(|why| SimulateError::Job { path: self.path.clone(), why })
    }
}

/// Keeps books of GPUs and queues beside whoever else looks on.
struct Watch<'a> {
    gpus: GpuBooks,
    queues: QueueBooks,
    observer: &'a mut dyn Observer,
}

impl Observer for Watch<'_> {
    fn events(&mut self, events: &[Stamped]) {
        self.gpus.observe(events);
        self.queues.observe(events);
        self.observer.events(events);
    }

    fn instant(&mut self, ended: usize, all: usize) {
        self.observer.instant(ended, all);
    }
}

fn cluster(options: &Options, trace: &Trace) -> Result<SimCluster, SimulateError> {
    match (options.processors, &options.cluster, &options.nodes) {
        (Some(processors), None, None) => Ok(SimCluster::one_node(processors)),
        (None, Some(path), None) => {
            let text = String::from_utf8_lossy(&read::file(path, "cluster")?).into_owned();
            SimCluster::of_toml(&text).map_err(|why| wrong(path, why))
        }
        (None, None, Some(path)) => {
            SimCluster::of_node_list(&read::file(path, "node list")?).map_err(|why| wrong(path, why))
        }
        (None, None, None) => trace.own_cluster().ok_or_else(|| {
            let text = match trace {
                Trace::Swf(_) => {
                    "the header of the trace does not say how many processors there were; say it with --processors N, \
                     or describe a cluster with --cluster FILE.toml"
                }
                _ => {
                    "the trace does not say what its cluster is; name one with --cluster FILE.toml or --nodes FILE.csv"
                }
            };
            SimulateError::Options(text.into())
        }),
        _ => Err(SimulateError::Options("--processors, --cluster and --nodes exclude each other; give one".into())),
    }
}

fn wrong(path: &Path, why: BadLine) -> SimulateError {
    SimulateError::Cluster { path: path.to_owned(), why }
}

fn check_fill(share: f64, trace: &Trace, cluster: &SimCluster) -> Result<(), SimulateError> {
    let bad = |text: String| Err(SimulateError::Options(text));
    if !matches!(trace, Trace::Openb(_)) {
        return bad(format!("a cluster is filled with the pods of an openb list, and the trace is a {}", trace.kind()));
    }
    if !(share > 0.0 && share <= fill::MOST) {
        return bad(format!(
            "a cluster cannot be filled to {share} of its GPUs; take more than 0 and at most {}",
            fill::MOST
        ));
    }
    if cluster.capacity().get(ResourceId::GPU) == 0 {
        return bad(
            "the cluster has no GPUs to be filled; name one with --nodes FILE.csv or --cluster FILE.toml".into()
        );
    }
    Ok(())
}
