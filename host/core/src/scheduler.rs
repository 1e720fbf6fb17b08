//! Runs cycles: keeps the replica, knows when a cycle is worth it, and turns a policy's answer into a plan.

use crate::cycle::{CAUSES, Cause, Cycle, CycleRefusal, Note, Outcome, Plan, Rest, Scope, StopRule, summarise};
use crate::event::{Event, Stamped};
use crate::replica::Replica;
use crate::roles::{Fault, Priority, Scheduling};
use crate::state::State;
use ephor_model::{JobId, ReasonCode, Span, Timestamp};
use ephor_placement::{Placing, Work};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub struct Scheduler {
    replica: Box<Replica>,
    /// Stands in for the replica while a cycle has it.
    stand_in: Option<Box<Replica>>,
    causes: Vec<Cause>,
    /// Causes of calls that were left out: the next one is told of them.
    left_out: Vec<Cause>,
    /// What the policy that made the last plan said of further calls.
    rest: Option<Rest>,
    /// When it needs a call at the latest.
    wake_at: Option<Timestamp>,
    outcomes: Vec<bool>,
    ranked_at: Option<Timestamp>,
    /// Which policy made the last plan.
    decided_by: String,
    /// The last cycle ended with its budget: some jobs were not looked at.
    incomplete: bool,
    /// All pending jobs get a new priority after this long; 0: at every cycle.
    pub recalculate_every: Span,
}

impl Scheduler {
    /// A scheduler for that state; its first cycle is due.
    pub fn new(state: &State) -> Self {
        Self {
            replica: Box::new(Replica::of(state)),
            stand_in: None,
            causes: vec![Cause::Settings],
            left_out: Vec::new(),
            rest: None,
            wake_at: None,
            outcomes: Vec::new(),
            ranked_at: None,
            decided_by: String::new(),
            incomplete: false,
            recalculate_every: Span::seconds(60),
        }
    }

    /// Takes note of the events of a committed batch; `state` is the state after it.
    pub fn observe(&mut self, events: &[Stamped], state: &State) {
        for stamped in events {
            let early = self.frees_early(stamped);
            self.replica.observe(stamped, state);
            if !Replica::helps(&stamped.event) {
                continue;
            }
            self.causes.push(match &stamped.event {
                _ if early => Cause::ReleasedEarly,
                Event::Submitted { job } => Cause::Arrived(job.id),
                Event::HoldSet { job, .. } | Event::Requeued { job } | Event::DependencyDecided { job, .. } => {
                    Cause::Arrived(*job)
                }
                Event::ElementDecided { job, .. } => Cause::Arrived(*job),
                Event::Ended { .. } | Event::CancelledPending { .. } | Event::DeadlinePassed { .. } => Cause::Released,
                Event::PromiseLifted { .. }
                | Event::NodeRegistered { .. }
                | Event::NodeResumed { .. }
                | Event::NodeSet { .. } => Cause::Nodes,
                _ => Cause::Settings,
            });
            if self.causes.len() > 2 * CAUSES {
                self.causes = summarise(std::mem::take(&mut self.causes));
            }
        }
    }

    /// Whether the event, not seen yet, frees what was counted on to be held for longer.
    fn frees_early(&self, stamped: &Stamped) -> bool {
        match &stamped.event {
            Event::Ended { key, .. } => self.replica.cluster.expected_end(key.job) > Some(stamped.at),
            Event::CancelledPending { job, .. } | Event::HoldSet { job, .. } => {
                self.replica.promises.get(*job).is_some()
            }
            _ => false,
        }
    }

    /// What became of the last plan's groups.
    pub fn committed(&mut self, outcomes: Vec<bool>) {
        if outcomes.iter().any(|taken| !taken) {
            // What was planned on an old view deserves a new look, and what was refused in favour of it.
            self.replica.unpark_all();
            self.causes.push(Cause::Settings);
        }
        self.outcomes = outcomes;
    }

    /// Makes the next cycle due, as after a change of generation or a plan that was lost; everything is worked out anew in
    /// it.
    pub fn wake(&mut self) {
        self.ranked_at = None;
        self.replica.unpark_all();
        self.causes.push(Cause::Settings);
    }

    /// Whether something changed that could let a job start.
    pub fn due(&self, now: Timestamp) -> bool {
        !self.causes.is_empty() || self.next_time().is_some_and(|at| at <= now)
    }

    /// When the next begin time or promised start comes, or the time that the policy asked for, where one lies ahead.
    pub fn next_time(&self) -> Option<Timestamp> {
        self.replica.next_time().into_iter().chain(self.wake_at).min()
    }

    /// Whether the time has come that the policy asked for.
    fn is_asked_for(&self, now: Timestamp) -> bool {
        self.wake_at.is_some_and(|at| at <= now)
    }

    /// The replica, for explanations.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// The replica, for explanations that use its scratch space; what they change they undo.
    pub fn replica_mut(&mut self) -> &mut Replica {
        &mut self.replica
    }

    /// Gets priorities for new jobs, and for all of them when their time has come. Without a policy, or when it fails,
    /// jobs keep what they have (new ones 0: submission order).
    ///
    /// # Errors
    /// The policy failed, or returned the wrong number of values.
    pub fn prioritize(&mut self, state: &State, now: Timestamp, policy: &dyn Priority) -> Result<(), Fault> {
        let all = self.ranked_at.is_none_or(|at| now - at >= self.recalculate_every);
        let batch = self.replica.priority_batch(state, now, all);
        if batch.rows.is_empty() {
            return Ok(());
        }
        let batch = Arc::new(batch);
        let values = policy.prioritize(batch.clone())?;
        if all {
            self.ranked_at = Some(now);
            // Another order may have another head: what was refused in its favour deserves a new look.
            self.causes.push(Cause::Settings);
        }
        self.replica.set_priorities(batch.rows.iter().map(|r| r.job).zip(values));
        Ok(())
    }

    /// Runs one cycle with that policy and `work` units. After a fault nothing of the call stands and the causes are
    /// kept, so that another policy can be asked at once.
    pub fn cycle(
        &mut self,
        state: &State,
        now: Timestamp,
        work: u64,
        policy: &mut dyn Scheduling,
    ) -> Result<Plan, Fault> {
        if self.replica.is_released_by(now) {
            self.causes.push(Cause::Released);
        }
        if self.incomplete {
            self.causes.push(Cause::Settings);
        }
        if self.is_asked_for(now) {
            self.causes.push(Cause::Asked);
        }
        let label = policy.label();
        if label != self.decided_by {
            // What one policy refused and another would promise a start deserves a look.
            self.replica.unpark_all();
            self.causes.push(Cause::Settings);
            self.decided_by = label;
        }
        self.rest = None;
        if !self.left_out.is_empty() {
            self.left_out.append(&mut self.causes);
            self.causes = summarise(std::mem::take(&mut self.left_out));
        }
        let stand_in = self.stand_in.take().unwrap_or_default();
        let replica = std::mem::replace(&mut self.replica, stand_in);
        let cycle = Cycle::begin(replica, state.clone(), now, work, self.causes.clone(), self.outcomes.clone());
        match policy.schedule(cycle) {
            (cycle, Ok(())) => {
                (self.rest, self.wake_at) = (cycle.rest(), cycle.next_wake());
                let (mut replica, plan) = cycle.finish();
                replica.settle_arrivals();
                self.stand_in = Some(std::mem::replace(&mut self.replica, replica));
                self.causes.clear();
                self.incomplete = plan.out_of_budget;
                Ok(plan)
            }
            (cycle, Err(fault)) => {
                self.stand_in = Some(std::mem::replace(&mut self.replica, cycle.abandon()));
                Err(fault)
            }
        }
    }

    /// Whether the call that is due can be left out, since the policy said that it needs none before somebody has room, and
    /// nobody has: then no call is due any more, and those who came have these notes. Priorities must be up to date.
    pub fn rests(&mut self, now: Timestamp, work: u64) -> Option<Vec<(JobId, Note)>> {
        let rest = self.rest.filter(|_| !self.incomplete && self.replica.promises.is_empty())?;
        let of_jobs = |cause: &Cause| matches!(cause, Cause::Arrived(_) | Cause::Released | Cause::ReleasedEarly);
        if !self.causes.iter().all(of_jobs) || self.replica.is_released_by(now) || self.is_asked_for(now) {
            return None;
        }
        let mut work = Work(work);
        self.replica.advance(now);
        self.replica.unpark_helped(&mut work);
        self.replica.park_arrivals(&mut work);
        let only_came = self.causes.iter().all(|cause| matches!(cause, Cause::Arrived(_)));
        let all_behind = |place| only_came && !self.replica.anyone_came_awake_or_before(place);
        if self.replica.anyone_awake() && !rest.behind.is_some_and(all_behind) {
            return None;
        }
        let note = |cause: &Cause| {
            let Cause::Arrived(job) = cause else { return None };
            let text = self.replica.parked(self.replica.pending(*job)?.class)?.clone();
            Some((*job, Note { code: ReasonCode::Resources, text, said: None, earliest: None }))
        };
        let notes = self.causes.iter().filter_map(note).collect();
        self.left_out.append(&mut self.causes);
        if self.left_out.len() > 2 * CAUSES {
            self.left_out = summarise(std::mem::take(&mut self.left_out));
        }
        Some(notes)
    }

    /// Gives up on this round: nothing runs until something changes.
    pub fn pause(&mut self) {
        self.wake_at = None;
        self.causes.clear();
    }
}

/// The host's own first-come-first-served: what runs when every scheduling policy failed and the site did not ask
/// for a pause.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstComeFirstServed;

impl Scheduling for FirstComeFirstServed {
    fn schedule(&mut self, mut cycle: Box<Cycle>) -> (Box<Cycle>, Result<(), Fault>) {
        let how = Placing::default();
        let mut after = None;
        // It gives no promises, so that those which it finds would hold up the first job for ever.
        cycle.lift_all();
        loop {
            let window = cycle.next(Scope::All, after, 256);
            let Some(last) = window.last() else { break };
            after = Some(*last);
            let outcomes = cycle.start_in_order(&window, &how, StopRule::FirstRefusal);
            if outcomes.iter().any(stops_the_queue) {
                break;
            }
        }
        (cycle, Ok(()))
    }

    fn label(&self) -> String {
        "the built-in first-come-first-served".into()
    }
}

/// A job that can never run, or waits for its limits, holds up nobody; any other refusal does.
fn stops_the_queue(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Started | Outcome::Claimed | Outcome::Reserved(_) => false,
        Outcome::Refused(CycleRefusal::Never(_) | CycleRefusal::Pool(_)) => false,
        Outcome::Refused(_) | Outcome::Untried => true,
    }
}

/// Why jobs wait, by job, as the last cycle that looked at each found. A clone is cheap.
pub type Notes = imbl::OrdMap<JobId, Note>;
