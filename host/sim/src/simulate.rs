//! From the name of a trace to a report: what `ephor sim` does.

use crate::driver::{self, Observer, SimError};
use crate::limits::PROCESSORS;
use crate::policies::{Policies, PolicyError};
use crate::read::{self, ReadError};
use crate::report::{Heading, Report};
use crate::settings::Settings;
use crate::swf::{Swf, SwfError};
use crate::workload::{BadSubmit, Estimates, Workload};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What is to be simulated.
#[derive(Clone, Debug)]
pub struct Options {
    /// The trace.
    pub trace: PathBuf,
    /// Processors of the cluster; `None`: what the trace's header says.
    pub processors: Option<u32>,
    /// The scheduling policy: a built-in one's name, or a file.
    pub scheduling: String,
    /// The priority policy, likewise; `None`: submission order.
    pub priority: Option<String>,
    /// What is taken for estimates.
    pub estimates: Estimates,
    /// Settings of the policies.
    pub settings: Settings,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The trace is not in a known format.
    #[error("the trace '{}' is not in the Standard Workload Format: {why}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Where and why.
        why: SwfError,
    },
    /// A job of it cannot be simulated.
    #[error("the trace '{}' cannot be simulated: {why}", path.display())]
    Job {
        /// The file.
        path: PathBuf,
        /// Which and why.
        why: BadSubmit,
    },
    /// The number of processors.
    #[error("{0}")]
    Processors(String),
    /// Settings of a policy that does not take part.
    #[error("there are settings for the priority policy but none is named; name one with --priority")]
    NoPriority,
    /// A policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The simulation stopped.
    #[error(transparent)]
    Sim(#[from] SimError),
}

/// Simulates.
///
/// # Errors
/// See [`SimulateError`].
pub fn simulate(options: &Options, observer: &mut dyn Observer) -> Result<Report, SimulateError> {
    let began = Instant::now();
    if options.settings.has_priority() && options.priority.is_none() {
        return Err(SimulateError::NoPriority);
    }
    if let Some(given) = options.processors {
        bounded(given)?;
    }
    let log = log(&options.trace)?;
    let processors = processors(options.processors, &log)?;
    let workload = Workload::of_swf(&log, processors, options.estimates)
        .map_err(|why| SimulateError::Job { path: options.trace.clone(), why })?;
    let (mut policies, chosen) = Policies::load(&options.scheduling, options.priority.as_deref(), &options.settings)?;
    let prepare_s = began.elapsed().as_secs_f64();

    let began = Instant::now();
    let outcome = driver::run(&workload, driver::one_node(processors), &mut policies, observer)?;
    let wall_s = began.elapsed().as_secs_f64();
    let heading = Heading {
        trace: options.trace.display().to_string(),
        policy: chosen.scheduling,
        priority: chosen.priority,
        settings: options.settings.all(),
        estimates: options.estimates.name().to_owned(),
        processors,
        prepare_s,
        wall_s,
    };
    Ok(Report::of(&workload, &outcome, heading))
}

fn log(path: &Path) -> Result<Swf, SimulateError> {
    let text = read::trace(path)?;
    Swf::parse(&text).map_err(|why| SimulateError::Format { path: path.to_owned(), why })
}

fn processors(given: Option<u32>, log: &Swf) -> Result<u32, SimulateError> {
    let Some(processors) = given.or_else(|| log.processors()) else {
        let text = "the header of the trace does not say how many processors there were; say it with --processors N";
        return Err(SimulateError::Processors(text.into()));
    };
    bounded(processors)
}

fn bounded(processors: u32) -> Result<u32, SimulateError> {
    if (1..=PROCESSORS).contains(&processors) {
        return Ok(processors);
    }
    let text = format!("a cluster of {processors} processors cannot be simulated; take 1 to {PROCESSORS}");
    Err(SimulateError::Processors(text))
}
