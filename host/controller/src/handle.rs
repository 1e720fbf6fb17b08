//! What services hold of the running controller: send a command, read the newest snapshot.

use crate::counters::Counters;
use crate::scheduling::{ExplainRequest, JobExplanation, SchedulerMail};
use arc_swap::ArcSwap;
use ephor_core::cycle::Reports;
use ephor_core::scheduler::Notes;
use ephor_core::{Command, Refusal, Reply, State};
use ephor_model::{Digest, JobId, Timestamp, limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};

/// The state as of the last commit. What was acknowledged is in it.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The state.
    pub state: State,
}

/// Why a command has no reply.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommandError {
    /// The state does not allow it; nothing changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The sequencer's queue is full; nothing changed.
    #[error("the controller has {} requests waiting; try again in a moment", limits::SEQUENCER_QUEUE)]
    Busy,
    /// The commit failed; nothing changed.
    #[error("the controller could not make the change durable: {0}")]
    Unavailable(String),
}

/// A command on its way to the sequencer.
pub(crate) struct Ask {
    pub(crate) command: Command,
    pub(crate) blobs: Vec<(Digest, Vec<u8>)>,
    pub(crate) answer: oneshot::Sender<Result<Reply, CommandError>>,
}

/// The answer to a command that was sent: resolves after its commit.
pub struct Pending(oneshot::Receiver<Result<Reply, CommandError>>);

impl Pending {
    /// Waits for the commit.
    ///
    /// # Errors
    /// See [`CommandError`].
    pub async fn reply(self) -> Result<Reply, CommandError> {
        self.0.await.unwrap_or_else(|_| Err(CommandError::Unavailable("it is stopping".into())))
    }

    /// The same for a thread that may block.
    ///
    /// # Errors
    /// See [`CommandError`].
    pub fn reply_blocking(self) -> Result<Reply, CommandError> {
        self.0.blocking_recv().unwrap_or_else(|_| Err(CommandError::Unavailable("it is stopping".into())))
    }
}

/// See the module. Clones are handles to the same controller.
#[derive(Clone)]
pub struct Handle {
    pub(crate) asks: mpsc::Sender<Ask>,
    pub(crate) snapshot: Arc<ArcSwap<Snapshot>>,
    pub(crate) notes: Arc<ArcSwap<Notes>>,
    pub(crate) reports: Arc<ArcSwap<Reports>>,
    pub(crate) scheduler: std::sync::mpsc::Sender<SchedulerMail>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) clock: Arc<Clock>,
}

impl Handle {
    /// Carries out a command; answers after its commit.
    ///
    /// # Errors
    /// See [`CommandError`].
    pub async fn run(&self, command: Command) -> Result<Reply, CommandError> {
        self.run_with_blobs(command, Vec::new()).await
    }

    /// The same, with blobs that are stored in the same commit where the command is not refused.
    ///
    /// # Errors
    /// See [`CommandError`].
    pub async fn run_with_blobs(&self, command: Command, blobs: Vec<(Digest, Vec<u8>)>) -> Result<Reply, CommandError> {
        let (answer, receiver) = oneshot::channel();
        match self.asks.try_send(Ask { command, blobs, answer }) {
            Ok(()) => Pending(receiver).reply().await,
            Err(mpsc::error::TrySendError::Full(_)) => Err(CommandError::Busy),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(CommandError::Unavailable("it is stopping".into())),
        }
    }

    /// Queues a command, waiting for room, and returns at once: for callers whose order matters.
    ///
    /// # Errors
    /// The controller is stopping.
    pub async fn enqueue(&self, command: Command) -> Result<Pending, CommandError> {
        let (answer, receiver) = oneshot::channel();
        let ask = Ask { command, blobs: Vec::new(), answer };
        let stopped = |_| CommandError::Unavailable("it is stopping".into());
        self.asks.send(ask).await.map_err(stopped).map(|()| Pending(receiver))
    }

    /// [`Self::enqueue`] for a thread that may block.
    ///
    /// # Errors
    /// The controller is stopping.
    pub fn enqueue_blocking(&self, command: Command) -> Result<Pending, CommandError> {
        let (answer, receiver) = oneshot::channel();
        let ask = Ask { command, blobs: Vec::new(), answer };
        let stopped = |_| CommandError::Unavailable("it is stopping".into());
        self.asks.blocking_send(ask).map_err(stopped).map(|()| Pending(receiver))
    }

    /// The state as of the last commit.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Why jobs wait, as the last cycle found.
    pub fn notes(&self) -> Arc<Notes> {
        self.notes.load_full()
    }

    /// What the scheduling policy said of queues in numbers.
    pub fn reports(&self) -> Arc<Reports> {
        self.reports.load_full()
    }

    /// The time, in the controller's clock: never before an earlier answer.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Asks the scheduler why a job waits; `None` where it is not pending, or the scheduler stopped.
    pub async fn explain(&self, job: JobId) -> Option<JobExplanation> {
        let (answer, receiver) = oneshot::channel();
        self.scheduler.send(SchedulerMail::Explain(ExplainRequest { job, answer })).ok()?;
        receiver.await.ok().flatten()
    }

    /// Makes a cycle due, as after a change of generation.
    pub fn wake_scheduler(&self) {
        // A scheduler that is gone has nothing to be woken for.
        let _ = self.scheduler.send(SchedulerMail::Wake);
    }

    /// Counters for metrics.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// The system's clock, made to never go back (law 2).
#[derive(Debug, Default)]
pub struct Clock(AtomicI64);

impl Clock {
    /// A clock that starts no earlier than `at`: the last event's time.
    pub fn starting_at(at: Timestamp) -> Self {
        Self(AtomicI64::new(at.0))
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        let ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
        Timestamp(self.0.fetch_max(ms, Ordering::Relaxed).max(ms))
    }
}
