//! A trace of any kind that is read, told from what the file begins with.

use crate::cluster::SimCluster;
use crate::eventlog::{self, EventLog};
use crate::line::BadLine;
use crate::openb::{self, Pod};
use crate::philly::{self, PhillyJob};
use crate::read::{self, ReadError};
use crate::swf::{Swf, SwfError};
use crate::workload::{Layout, Shaper, Workload};
use ephor_store::StoreError;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trace {
    /// A log in the Standard Workload Format.
    Swf(Swf),
    /// A list of openb pods.
    Openb(Vec<Pod>),
    /// A Philly log.
    Philly(Vec<PhillyJob>),
    /// Ephor's own log of events.
    Events(EventLog),
}

/// Why a file is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is no log in the Standard Workload Format, which whatever is nothing else is taken for.
    #[error("the trace '{}' is not in the Standard Workload Format: {why}", path.display())]
    Swf {
        /// The file.
        path: PathBuf,
        /// Where and why.
        why: SwfError,
    },
    /// A line of another format is wrong.
    #[error("the {kind} '{}' cannot be simulated: {why}", path.display())]
    Line {
        /// What it was taken for.
        kind: &'static str,
        /// The file.
        path: PathBuf,
        /// Which line and why.
        why: BadLine,
    },
    /// A store cannot be read.
    #[error("the event log cannot be read: {0}")]
    Store(#[from] StoreError),
    /// It is a list of nodes.
    #[error("'{}' is a list of nodes, not a trace; give it with --nodes", path.display())]
    Nodes {
        /// The file.
        path: PathBuf,
    },
}

impl Trace {
    /// Reads a file, or the data folder of a controller.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn read(path: &Path) -> Result<Self, TraceError> {
        if is_store(path) {
            return Ok(Self::Events(EventLog::read(path)?));
        }
        let text = read::trace(path)?;
        let line = |kind| move |why| TraceError::Line { kind, path: path.to_owned(), why };
        if text.starts_with(openb::NODE_LIST.as_bytes()) {
            return Err(TraceError::Nodes { path: path.to_owned() });
        }
        if text.starts_with(openb::PODS.as_bytes()) {
            return Ok(Self::Openb(openb::pods(&text).map_err(line("openb list"))?));
        }
        if text.starts_with(philly::HEADER.as_bytes()) {
            return Ok(Self::Philly(philly::parse(&text).map_err(line("Philly log"))?));
        }
        Ok(Self::Swf(Swf::parse(&text).map_err(|why| TraceError::Swf { path: path.to_owned(), why })?))
    }

    /// The kind, for people.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Swf(_) => "Standard Workload Format",
            Self::Openb(_) => "openb list",
            Self::Philly(_) => "Philly log",
            Self::Events(_) => "event log",
        }
    }

    /// The cluster that the trace itself knows of: its event log's nodes, or the processors of its header.
    pub fn own_cluster(&self) -> Option<SimCluster> {
        match self {
            Self::Swf(log) => log.processors().map(SimCluster::one_node),
            Self::Events(log) if !log.cluster.nodes.is_empty() => Some(log.cluster.clone()),
            _ => None,
        }
    }

    /// The jobs for that cluster; `one_node`: it is a single node of processors.
    ///
    /// # Errors
    /// A job that cannot be simulated.
    pub fn workload(
        &self,
        cluster: &SimCluster,
        one_node: Option<u32>,
        shaper: &mut Shaper,
    ) -> Result<Workload, BadLine> {
        let mut workload = match (self, one_node) {
            (Self::Swf(log), Some(processors)) => return Workload::of_swf_as(log, Layout::OneNode(processors), shaper),
            (Self::Swf(log), None) => Workload::of_swf_as(log, Layout::Tasks, shaper)?,
            (Self::Openb(pods), _) => Workload::of_pods(pods, shaper),
            (Self::Philly(jobs), _) => Workload::of_philly(jobs, shaper),
            (Self::Events(log), _) => Workload::of_events(log, shaper),
        };
        workload.leave_out_impossible(cluster);
        Ok(workload)
    }
}

/// A data folder, or a file that begins like a store.
fn is_store(path: &Path) -> bool {
    let begins = || {
        let mut bytes = [0; eventlog::MAGIC.len()];
        File::open(path).and_then(|mut file| file.read_exact(&mut bytes)).is_ok() && bytes == eventlog::MAGIC
    };
    (path.is_dir() && path.join(eventlog::FILE).exists()) || begins()
}
