//! Ephor's own log of events as a trace: what ran in a cluster, read from a backup or from the data folder of a
//! controller that does not run.

use crate::cluster::SimCluster;
use ephor_core::{Event, Stamped, State};
use ephor_model::{JobId, JobSpec, JobState, Span, Timestamp};
use ephor_store::{StoreError, read_log};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a file of this kind begins.
pub const MAGIC: &[u8] = b"redb\x1a\x0a";
/// The file in a data folder.
pub const FILE: &str = "live.redb";

/// One job, or one element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// When it was submitted, or might begin where that was later.
    pub submit: Timestamp,
    /// How long its last attempt ran; `None`: it did not end within the log, or never started.
    pub run: Option<Span>,
    /// What was submitted.
    pub spec: Arc<JobSpec>,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventLog {
    /// The jobs that were submitted within the log, in the order of submission.
    pub jobs: Vec<Logged>,
    /// The nodes and queues at its end.
    pub cluster: SimCluster,
}

impl EventLog {
    /// Reads a backup, or the data folder of a controller.
    ///
    /// # Errors
    /// The store cannot be read, is damaged, or in use.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let file: PathBuf = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
        let (state, run) = read_log(&file)?;
        Ok(Self::of(&state, &run.events))
    }

    /// The log as jobs, with the cluster of the state at its end.
    pub fn of(state: &State, events: &[Stamped]) -> Self {
        let mut jobs: BTreeMap<JobId, Logged> = BTreeMap::new();
        let mut began: BTreeMap<JobId, Timestamp> = BTreeMap::new();
        for stamped in events {
            match &stamped.event {
                Event::Submitted { job } => {
                    let submit = job.spec.begin.unwrap_or(stamped.at).max(stamped.at);
                    for ordinal in 0..u64::from(job.spec.count()) {
                        let logged = Logged { submit, run: None, spec: job.spec.clone() };
                        jobs.insert(JobId(job.id.0 + ordinal), logged);
                    }
                }
                Event::Started { key, .. } => drop(began.insert(key.job, stamped.at)),
                // An attempt after which the job waits again is not its run.
                Event::Ended { key, state, .. } if *state != JobState::Pending => {
                    if let (Some(job), Some(start)) = (jobs.get_mut(&key.job), began.remove(&key.job)) {
                        job.run = Some(stamped.at - start);
                    }
                }
                _ => {}
            }
        }
        let nodes = state.nodes.values().map(|node| {
            let mut spec = node.spec.clone();
            (spec.capacity, spec.features) = (node.capacity(), node.features());
            spec
        });
        let queues = state.queues.values().map(|queue| {
            let above = queue.parent.and_then(|id| state.queues.get(&id)).map(|q| q.name.clone());
            ((**queue).clone(), above)
        });
        Self {
            jobs: jobs.into_values().collect(),
            cluster: SimCluster { nodes: nodes.collect(), queues: queues.collect() },
        }
    }
}
