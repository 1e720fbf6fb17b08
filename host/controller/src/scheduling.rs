//! The scheduler thread: follows the committed events, runs cycles when something could start, hands over plans.

use crate::counters::{add, raise};
use crate::handle::Handle;
use ephor_core::cycle::{NOTES, Note, Plan};
use ephor_core::pools;
use ephor_core::reservations;
use ephor_core::roles::{Priority, Scheduling};
use ephor_core::scheduler::{FirstComeFirstServed, Notes, Scheduler};
use ephor_core::{Command, Reply, Stamped, State};
use ephor_model::{JobId, ReasonCode, Span, Timestamp, limits};
use ephor_placement::{Placing, Work};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Work units of an explanation: enough for a large cluster, and bounded.
const EXPLAIN_WORK: u64 = 20_000_000;
/// Longest sleep between looks at the clock, so that a clock that is set forward is noticed.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// What reaches the scheduler thread.
pub(crate) enum SchedulerMail {
    /// A commit: its events, and the state after it.
    Committed(Arc<Vec<Stamped>>, Box<State>),
    /// A question about a job.
    Explain(ExplainRequest),
    /// A cycle is due.
    Wake,
}

pub(crate) struct ExplainRequest {
    pub(crate) job: JobId,
    pub(crate) answer: oneshot::Sender<Option<JobExplanation>>,
}

/// Why a job waits.
#[derive(Clone, Debug, Default)]
pub struct JobExplanation {
    /// In numbers, most important first.
    pub lines: Vec<String>,
    /// Role, name and generation of the policy that decided.
    pub policy: String,
    /// When it could start at the earliest: a promise of the last cycle, or an estimate that ignores jobs ahead.
    pub earliest: Option<Timestamp>,
    /// Whether `earliest` is a promise.
    pub promised: bool,
}

/// Where the thread gets its policies from: live ones at the moment of each call, so that a swap needs no restart.
pub trait PolicySource: Send + Sync {
    /// The priority policy, where the slot is filled.
    fn priority(&self, now: Timestamp) -> Option<Arc<dyn Priority>>;
    /// Scheduling policies in the order in which they are to be tried: the live generation, then the last good one.
    fn scheduling(&self, now: Timestamp) -> Vec<Box<dyn Scheduling>>;
    /// Whether the host's own first-come-first-served schedules when these failed; else nothing starts.
    fn builtin_on_failure(&self) -> bool;
}

/// Settings of the thread.
#[derive(Clone, Copy, Debug)]
pub struct SchedulingSettings {
    /// All pending jobs get a new priority after this long.
    pub recalculate_every: Span,
    /// Work units of a cycle.
    pub work: u64,
}

/// Runs until the controller stops.
pub(crate) fn run(
    handle: &Handle,
    mail: &Receiver<SchedulerMail>,
    state: State,
    policies: &dyn PolicySource,
    settings: SchedulingSettings,
) {
    let mut scheduler = Scheduler::new(&state);
    scheduler.recalculate_every = settings.recalculate_every;
    let mut thread =
        Thread { handle, policies, settings, scheduler, state, decided_by: String::new(), notes: Notes::new() };
    loop {
        let due = thread.scheduler.due(handle.now());
        if !due {
            match mail.recv_timeout(thread.sleep()) {
                Ok(message) => thread.read(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        // Everything that was committed belongs into the view of the next cycle.
        loop {
            match mail.try_recv() {
                Ok(message) => thread.read(message),
                Err(std::sync::mpsc::TryRecvError::Empty) => break,
                Err(std::sync::mpsc::TryRecvError::Disconnected) => return,
            }
        }
        if thread.state.next_deadline().is_some_and(|at| at <= handle.now()) && !thread.expire() {
            return;
        }
        if thread.scheduler.due(handle.now()) && !thread.cycle() {
            return;
        }
    }
}

struct Thread<'a> {
    handle: &'a Handle,
    policies: &'a dyn PolicySource,
    settings: SchedulingSettings,
    scheduler: Scheduler,
    state: State,
    decided_by: String,
    notes: Notes,
}

impl Thread<'_> {
    fn sleep(&self) -> Duration {
        let next = self.scheduler.next_time().into_iter().chain(self.state.next_deadline()).min();
        let until = next.map(|at| (at - self.handle.now()).0.max(1) as u64);
        until.map_or(LONGEST_SLEEP, Duration::from_millis).min(LONGEST_SLEEP)
    }

    /// Ends the jobs that can no longer keep their deadline; false when the controller is stopping.
    fn expire(&self) -> bool {
        let reply = self.handle.enqueue_blocking(Command::Expire);
        match reply.and_then(super::handle::Pending::reply_blocking) {
            Ok(_) => true,
            Err(error) => {
                tracing::warn!(%error, "jobs past their deadline are still waiting");
                !self.handle.asks.is_closed()
            }
        }
    }

    fn read(&mut self, message: SchedulerMail) {
        match message {
            SchedulerMail::Committed(events, state) => {
                self.state = *state;
                self.scheduler.observe(&events, &self.state);
            }
            SchedulerMail::Wake => self.scheduler.wake(),
            SchedulerMail::Explain(request) => {
                let explanation = self.explain(request.job);
                // Nobody waits any more: nothing to tell.
                let _ = request.answer.send(explanation);
            }
        }
    }

    /// One cycle; false when the controller is stopping.
    fn cycle(&mut self) -> bool {
        let begun = Instant::now();
        let now = self.handle.now();
        let counters = self.handle.counters();
        if let Some(policy) = self.policies.priority(now)
            && let Err(fault) = self.scheduler.prioritize(&self.state, now, &*policy)
        {
            tracing::warn!(%fault, "jobs keep the priorities that they have");
        }
        let mut plan = None;
        let mut candidates = self.policies.scheduling(now);
        if self.policies.builtin_on_failure() {
            candidates.push(Box::new(FirstComeFirstServed));
        }
        for mut policy in candidates {
            match self.scheduler.cycle(&self.state, now, self.settings.work, &mut *policy) {
                Ok(made) => {
                    self.decided_by = policy.label();
                    plan = Some(made);
                    break;
                }
                Err(fault) => {
                    add(&counters.cycle_faults, 1);
                    tracing::warn!(%fault, "the cycle of this policy is dropped");
                }
            }
        }
        add(&counters.cycles, 1);
        let Some(plan) = plan else {
            self.pause();
            return true;
        };
        let took = begun.elapsed().as_micros() as u64;
        add(&counters.cycle_us, took);
        raise(&counters.cycle_us_max, took);
        self.hand_over(plan)
    }

    /// No policy made a plan: nothing starts until something changes, and everybody can read why.
    fn pause(&mut self) {
        self.scheduler.pause();
        self.scheduler.replica_mut().advance(self.handle.now());
        self.decided_by = "none: no scheduling policy works".into();
        let text = "no scheduling policy works, and this site pauses then; see 'ephor policy show scheduling'";
        let waiting: Vec<JobId> =
            self.scheduler.replica().order_after(None).take(NOTES).map(|(rank, _)| rank.3).collect();
        for job in waiting {
            let code = ReasonCode::SchedulingPaused;
            self.notes.insert(job, Note { code, text: text.into(), said: None, earliest: None });
        }
        self.publish_notes();
    }

    fn publish_notes(&mut self) {
        if self.notes.len() > NOTES {
            let replica = self.scheduler.replica();
            let waiting = self.notes.iter().filter(|(job, _)| replica.pending(**job).is_some()).take(NOTES);
            self.notes = waiting.map(|(job, note)| (*job, note.clone())).collect();
        }
        self.handle.notes.store(Arc::new(self.notes.clone()));
    }

    fn hand_over(&mut self, plan: Plan) -> bool {
        let Plan { groups, notes, reports, out_of_budget } = plan;
        if out_of_budget {
            tracing::warn!("the cycle used all of its work units; what it planned so far stands");
        }
        for start in groups.iter().flat_map(|group| &group.starts) {
            self.notes.remove(&start.job);
        }
        // A cycle that looked only at new jobs leaves what is known of the others.
        self.notes.extend(notes);
        self.publish_notes();
        if !reports.fair_shares.is_empty() {
            self.handle.reports.store(Arc::new(reports));
        }
        let mut outcomes = Vec::with_capacity(groups.len());
        let mut groups = groups.into_iter().peekable();
        while groups.peek().is_some() {
            let part = groups.by_ref().take(limits::GROUPS_PER_COMMIT).collect();
            let reply = self.handle.enqueue_blocking(Command::Plan { groups: part });
            match reply.and_then(super::handle::Pending::reply_blocking) {
                Ok(Reply::Groups(taken)) => outcomes.extend(taken),
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "a plan was not committed");
                    if self.handle.asks.is_closed() {
                        return false;
                    }
                    self.scheduler.wake();
                    break;
                }
            }
        }
        let taken = outcomes.iter().filter(|t| **t).count() as u64;
        let counters = self.handle.counters();
        add(&counters.groups_taken, taken);
        add(&counters.groups_dropped, outcomes.len() as u64 - taken);
        self.scheduler.committed(outcomes);
        true
    }

    fn explain(&mut self, job: JobId) -> Option<JobExplanation> {
        let now = self.handle.now();
        let notes = self.handle.notes();
        let note = notes.get(&job);
        let pending = self.scheduler.replica().pending(job)?.clone();
        let ahead = self.scheduler.replica().order_after(None).take_while(|(rank, _)| **rank < pending.rank).count();
        let mut out = JobExplanation { policy: self.decided_by.clone(), ..JobExplanation::default() };
        if let Some(note) = note {
            out.lines.extend(note.said.clone());
            // What lacks in capacity is told in more detail below.
            let more = note.code != ReasonCode::Resources && !note.text.is_empty();
            out.lines.extend(more.then(|| note.text.to_string()));
            out.earliest = note.earliest;
        }
        // A promise that lasts is a fact; what a note says held for its cycle.
        out.earliest = self.state.promises.get(&job).map(|promise| promise.start).or(out.earliest);
        out.promised = out.earliest.is_some();
        out.lines.push(match ahead {
            0 => "no job goes before it".to_owned(),
            1 => "1 job goes before it".to_owned(),
            n => format!("{n} jobs go before it"),
        });
        // As things are now, which may differ from what the last cycle saw.
        let limited = pools::waits_for(&self.state, job);
        if let Some((_, text)) = &limited
            && !out.lines.contains(text)
        {
            out.lines.insert(0, text.clone());
        }
        let cluster = &mut self.scheduler.replica_mut().cluster;
        out.lines.extend(cluster.explain(pending.class));
        if let Some((entry, _)) = self.state.element(job) {
            out.lines.extend(reservations::in_the_way(&self.state, &entry.job, now, pending.limit));
        }
        // Room on nodes says nothing of when a limit lets it start.
        if out.earliest.is_none() && limited.is_none() && pending.inside.is_none() {
            let mark = cluster.savepoint();
            let mut work = Work(EXPLAIN_WORK);
            let slot = cluster.earliest_start(pending.class, now, pending.limit, &Placing::default(), &mut work);
            out.earliest = slot.ok().map(|s| s.start);
            cluster.rollback(mark);
            cluster.forget_undo();
        }
        Some(out)
    }
}
