//! The one thread that changes the state: commands in, one commit for all that gathered, then the answers.

use crate::counters::add;
use crate::handle::{Ask, Clock, CommandError, Snapshot};
use crate::scheduling::SchedulerMail;
use crate::sessions::Sessions;
use arc_swap::ArcSwap;
use ephor_core::decide::{Batch, execute};
use ephor_core::{Reply, State};
use ephor_model::{Digest, limits};
use ephor_store::{CommitBatch, Retention, Store, StoreError};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

/// What the thread works with.
pub(crate) struct Sequencer {
    pub(crate) store: Box<dyn Store>,
    pub(crate) retention: Retention,
    pub(crate) state: State,
    pub(crate) asks: mpsc::Receiver<Ask>,
    pub(crate) snapshot: Arc<ArcSwap<Snapshot>>,
    pub(crate) scheduler: std::sync::mpsc::Sender<SchedulerMail>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) counters: Arc<crate::counters::Counters>,
    pub(crate) clock: Arc<Clock>,
}

type Answer = (oneshot::Sender<Result<Reply, CommandError>>, Result<Reply, CommandError>);

impl Sequencer {
    /// Runs until every handle is gone, or a commit fails.
    ///
    /// # Errors
    /// The failed commit. Those whose commands were in it have been told that nothing of them stands; the process must
    /// stop, since the state in memory is ahead of the disk.
    pub(crate) fn run(mut self) -> Result<(), StoreError> {
        let mut asks = Vec::with_capacity(limits::COMMANDS_PER_COMMIT);
        while self.asks.blocking_recv_many(&mut asks, limits::COMMANDS_PER_COMMIT) > 0 {
            self.round(&mut asks)?;
        }
        Ok(())
    }

    fn round(&mut self, asks: &mut Vec<Ask>) -> Result<(), StoreError> {
        let now = self.clock.now();
        let mut batch = Batch::default();
        let mut answers: Vec<Answer> = Vec::with_capacity(asks.len());
        let mut blobs = Vec::new();
        let counters = self.counters.clone();
        add(&counters.commands, asks.len() as u64);
        for ask in asks.drain(..) {
            let reply = execute(&mut self.state, now, ask.command, &mut batch);
            match &reply {
                Ok(_) => blobs.extend(ask.blobs),
                Err(_) => add(&counters.refusals, 1),
            }
            answers.push((ask.answer, reply.map_err(CommandError::Refused)));
        }
        if !batch.events.is_empty() {
            if let Err(error) = self.commit(&batch, blobs) {
                let text = error.to_string();
                tracing::error!(%error, "the commit failed; the controller stops");
                for (answer, _) in answers {
                    let _ = answer.send(Err(CommandError::Unavailable(text.clone())));
                }
                return Err(error);
            }
            self.publish(batch);
        }
        for (answer, reply) in answers {
            // A caller that went away has no use for its answer; what it asked for is done all the same.
            let _ = answer.send(reply);
        }
        // A small step, after the answers: old events go once a checkpoint holds what they did.
        self.store.tidy(&self.state, &self.retention)?;
        Ok(())
    }

    fn commit(&mut self, batch: &Batch, blobs: Vec<(Digest, Vec<u8>)>) -> Result<(), StoreError> {
        let begun = Instant::now();
        let commit = CommitBatch::of(&self.state, batch, blobs);
        self.store.commit(self.state.meta.epoch, &commit)?;
        add(&self.counters.commits, 1);
        add(&self.counters.events, batch.events.len() as u64);
        add(&self.counters.commit_us, begun.elapsed().as_micros() as u64);
        Ok(())
    }

    /// What was committed becomes visible before anybody is told that it was.
    fn publish(&mut self, batch: Batch) {
        let events = Arc::new(batch.events);
        self.snapshot.store(Arc::new(Snapshot { state: self.state.clone() }));
        self.sessions.committed(&events, &self.state);
        // The scheduler ends after the sequencer; a missing one only means that the controller is stopping.
        let _ = self.scheduler.send(SchedulerMail::Committed(events, Box::new(self.state.clone())));
    }
}
