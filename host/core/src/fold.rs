//! How each event changes the state: the only way in which it changes (law 3).

use crate::devices::DeviceOut;
use crate::event::{Event, Stamped};
use crate::past_use::faded;
use crate::pools::granted;
use crate::records::{Attempt, AttemptPhase, Drain, Element, Job, Node, NodeHealth, PolicySlot, Uncharged};
use crate::rows::RowKey;
use crate::state::State;
use ephor_model::{
    Amounts, AttemptKey, EndCause, Exit, Hold, JobId, JobState, NodeId, NodeSpec, ReasonCode, Span, Timestamp, Usage,
    limits,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An event that does not fit the state that it is applied to: the log is damaged or of another era.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {number} does not fit the state: {what}")]
pub struct FoldError {
    /// Number of the event.
    pub number: u64,
    /// What is wrong.
    pub what: String,
}

impl State {
    /// Applies one event and names the rows that it changed.
    ///
    /// # Errors
    /// The event names something that is not there. The state is then not to be used any further.
    pub fn apply(&mut self, stamped: &Stamped, touched: &mut BTreeSet<RowKey>) -> Result<(), FoldError> {
        let at = stamped.at;
        self.meta.now = self.meta.now.max(at);
        self.meta.events += 1;
        touched.insert(RowKey::Meta);
        let ok = match &stamped.event {
            Event::EpochBegan { epoch } => {
                self.meta.epoch = *epoch;
                true
            }
            Event::Submitted { job } => {
                self.meta.next_job = job.id.0 + u64::from(job.spec.count());
                touched.insert(RowKey::Job(job.id));
                self.insert_job(job.clone());
                self.count_submitted(job, i64::from(job.spec.count()));
                true
            }
            Event::HoldSet { job, hold } => self.change(*job, touched, |job, e| {
                e.hold = *hold;
                settle_eligibility(job, e, at);
            }),
            Event::DependencyDecided { job, index, satisfied } => {
                self.dependency_decided(*job, *index, *satisfied, at, touched)
            }
            Event::Started { key, allocation, expected_end } => {
                touched.insert(RowKey::Attempt(key.job));
                self.insert_attempt(Arc::new(Attempt {
                    key: *key,
                    epoch: self.meta.epoch,
                    allocation: allocation.clone(),
                    started: at,
                    expected_end: *expected_end,
                    phase: AttemptPhase::Launching,
                    lost: false,
                }));
                self.count_running(key.job, 1);
                self.count_draw(key.job, allocation, Span(expected_end.0.saturating_sub(at.0)), 1);
                if let Some(queue) = self.find(key.job).map(|(entry, _)| entry.job.queue) {
                    self.note_use(queue, &allocation.total(), 1, at, touched);
                }
                self.change(key.job, touched, |_, e| {
                    e.state = JobState::Configuring;
                    e.attempts = key.number;
                    e.started = Some(at);
                    e.ended = None;
                    e.reason = ReasonCode::None;
                    e.detail = None;
                })
            }
            Event::Began { key } => {
                self.change_attempt(*key, touched, |a| a.phase = AttemptPhase::Running)
                    && self.change(key.job, touched, |_, e| e.state = JobState::Running)
            }
            Event::EndOrdered { key, cause } => {
                self.change_attempt(*key, touched, |a| {
                    // Who was evicted before and is now cancelled still has the grace of the eviction.
                    let eviction = a.eviction().cloned();
                    let since = a.told_to_end().filter(|_| eviction.is_some()).unwrap_or(at);
                    a.phase = AttemptPhase::Ending { cause: *cause, since, eviction };
                }) && self.change(key.job, touched, |_, e| e.state = JobState::Completing)
            }
            Event::Evicted { key, eviction } => {
                self.change_attempt(*key, touched, |a| {
                    let eviction = Some(eviction.clone());
                    a.phase = AttemptPhase::Ending { cause: EndCause::Preempted, since: at, eviction };
                }) && self.change(key.job, touched, |_, e| e.state = JobState::Completing)
            }
            Event::Ended { key, state, exit, reason, detail, usage, hold } => {
                let end = End { state: *state, exit: *exit, reason: *reason, detail, usage, hold: *hold };
                self.ended(*key, &end, at, touched)
            }
            Event::CancelledPending { job, by } => self.change(*job, touched, |_, e| {
                e.state = JobState::Cancelled;
                e.ended = Some(at);
                e.eligible = None;
                e.detail = Some(format!("by {by}").into());
            }),
            Event::DeadlinePassed { job } => self.change(*job, touched, |_, e| {
                e.state = JobState::Deadline;
                e.reason = ReasonCode::DeadLine;
                e.ended = Some(at);
                e.eligible = None;
            }),
            Event::Modified { job, spec, queue, account, qos, waiting, never } => {
                let now = self.jobs.get(job).map(|entry| Job {
                    spec: spec.clone(),
                    queue: *queue,
                    account: *account,
                    qos: *qos,
                    waiting: waiting.clone(),
                    never: *never,
                    ..(*entry.job).clone()
                });
                now.is_some_and(|now| self.modified(now, at, touched))
            }
            Event::ElementDecided { job, awaited, satisfied } => self.change(*job, touched, |job, e| {
                match satisfied {
                    true => e.met |= 1u32.checked_shl(job.corresponding_place(*awaited)).unwrap_or(0),
                    false => e.never = true,
                }
                settle_eligibility(job, e, at);
            }),
            Event::Requeued { job } => self.change(*job, touched, |job, e| {
                e.state = JobState::Pending;
                e.eligible = None;
                settle_eligibility(job, e, at);
            }),
            Event::LostSet { key, lost } => self.change_attempt(*key, touched, |a| a.lost = *lost),
            Event::Forgotten { job } => self.forget(*job, touched),
            Event::NodeRegistered { node, spec } => {
                self.node_registered(*node, spec, at, touched);
                true
            }
            Event::NodeDown { node, reason } => self.change_node(*node, touched, |n| {
                n.health = NodeHealth::Down;
                n.since = at;
                n.health_reason.clone_from(reason);
            }),
            Event::NodeDrained { node, reason, by } => self.change_node(*node, touched, |n| {
                n.drain = Some(Drain { reason: reason.clone(), by: by.clone(), since: at });
            }),
            Event::NodeResumed { node } => self.change_node(*node, touched, |n| n.drain = None),
            Event::DeviceTaken { node, device, reason, by } => self.change_node(*node, touched, |n| {
                let out = DeviceOut { reason: reason.clone(), by: by.clone(), since: at };
                n.devices_out.insert(device.clone(), out);
            }),
            Event::DeviceReturned { node, device, forgiven, .. } => self.change_node(*node, touched, |n| {
                n.devices_out.remove(device);
                n.devices_forgiven.insert(device.clone(), forgiven.clone());
            }),
            Event::NodeSet { node, name, features, extra } => {
                self.node_set(*node, name, features, extra, at, touched);
                true
            }
            Event::NodeDeleted { node } => {
                touched.insert(RowKey::Node(*node));
                match self.nodes.remove(node) {
                    Some(gone) => self.derived.node_names.remove(&gone.spec.name).is_some(),
                    None => false,
                }
            }
            Event::QueueSet { .. }
            | Event::QueueDeleted { .. }
            | Event::AccountSet { .. }
            | Event::AccountDeleted { .. }
            | Event::UserSet { .. }
            | Event::UserDeleted { .. }
            | Event::QosSet { .. }
            | Event::QosDeleted { .. }
            | Event::LicenceSet { .. }
            | Event::LicenceDeleted { .. }
            | Event::ReservationSet { .. }
            | Event::ReservationDeleted { .. } => self.object_changed(&stamped.event, touched),
            Event::Charged { key, amount } => self.charged(*key, *amount, touched),
            Event::Faded { at: boundary, factor } => {
                self.meta.faded_at = *boundary;
                self.fade(*factor, touched);
                true
            }
            Event::FadingSet { fading } => {
                self.settle_use(at, touched);
                self.meta.fading = *fading;
                self.meta.faded_at = boundary_before(at, fading.period.0);
                true
            }
            Event::PolicyActivated { slot, generation } => {
                self.meta.next_generation = generation.number + 1;
                self.change_slot(slot, touched, |s| {
                    s.earlier.extend(s.live.take());
                    if s.earlier.len() > limits::GENERATIONS_KEPT {
                        s.earlier.remove(0);
                    }
                    s.live = Some(generation.clone());
                })
            }
            Event::PolicyRolledBack { slot } => self.change_slot(slot, touched, |s| {
                if let Some(before) = s.earlier.pop() {
                    s.live = Some(before);
                }
            }),
            Event::PolicyDisabled { slot } => self.change_slot(slot, touched, |s| s.earlier.extend(s.live.take())),
            Event::TokenIssued { token, node, expires } => {
                touched.insert(RowKey::Token(*token));
                let open = crate::records::OpenToken { node: node.clone(), expires: *expires };
                self.tokens.insert(*token, open);
                true
            }
            Event::TokenClosed { token } => {
                touched.insert(RowKey::Token(*token));
                self.tokens.remove(token).is_some()
            }
            Event::Promised { job, promise } => {
                touched.insert(RowKey::Promise(*job));
                self.set_promise(*job, promise.clone())
            }
            Event::PromiseLifted { job, .. } => {
                touched.insert(RowKey::Promise(*job));
                self.remove_promise(*job)
            }
        };
        match ok {
            true => Ok(()),
            false => Err(FoldError { number: self.meta.events, what: format!("{:?}", stamped.event) }),
        }
    }

    pub(crate) fn change(
        &mut self,
        id: JobId,
        touched: &mut BTreeSet<RowKey>,
        change: impl FnOnce(&Job, &mut Element),
    ) -> bool {
        touched.insert(RowKey::Element(id));
        let Some(job) = self.find(id).map(|(entry, _)| entry.job.clone()) else { return false };
        let known = self.change_element(id, |e| change(&job, e));
        self.settle_promise(id, touched);
        known
    }

    fn change_attempt(
        &mut self,
        key: AttemptKey,
        touched: &mut BTreeSet<RowKey>,
        change: impl FnOnce(&mut Attempt),
    ) -> bool {
        touched.insert(RowKey::Attempt(key.job));
        match self.attempts.get_mut(&key.job) {
            Some(attempt) if attempt.key == key => {
                change(Arc::make_mut(attempt));
                true
            }
            _ => false,
        }
    }

    fn change_node(&mut self, id: NodeId, touched: &mut BTreeSet<RowKey>, change: impl FnOnce(&mut Node)) -> bool {
        touched.insert(RowKey::Node(id));
        self.nodes.get_mut(&id).map(|n| change(Arc::make_mut(n))).is_some()
    }

    fn change_slot(
        &mut self,
        slot: &ephor_model::Slot,
        touched: &mut BTreeSet<RowKey>,
        change: impl FnOnce(&mut PolicySlot),
    ) -> bool {
        touched.insert(RowKey::Policy(slot.clone()));
        change(Arc::make_mut(self.policies.entry(slot.clone()).or_default()));
        true
    }

    fn ended(&mut self, key: AttemptKey, end: &End<'_>, at: Timestamp, touched: &mut BTreeSet<RowKey>) -> bool {
        match self.attempts.get(&key.job) {
            Some(attempt) if attempt.key == key => {}
            _ => return false,
        }
        let Some(attempt) = self.attempts.remove(&key.job) else { return false };
        touched.insert(RowKey::Attempt(key.job));
        self.hold(key.job, &attempt.allocation, false);
        self.count_running(key.job, -1);
        self.count_draw(key.job, &attempt.allocation, granted(&attempt), -1);
        let mut usage = end.usage.clone();
        let held = attempt.allocation.total();
        usage.held = held.scaled((at - attempt.started).0.max(0));
        let queue = self.find(key.job).map(|(entry, _)| entry.job.queue);
        if let Some(queue) = queue {
            self.note_use(queue, &held, -1, at, touched);
        }
        if let Some((entry, _)) = self.element(key.job) {
            let uncharged = Uncharged {
                key,
                queue: entry.job.queue,
                account: entry.job.account,
                user: entry.job.spec.owner.uid,
                started: attempt.started,
                ended: at,
                held,
                usage: usage.clone(),
                // A requeued attempt counts as what ended it.
                state: if end.state == JobState::Pending { JobState::Preempted } else { end.state },
            };
            touched.insert(RowKey::Uncharged(key));
            self.uncharged.insert(key, Arc::new(uncharged));
        }
        self.change(key.job, touched, |job, e| {
            e.state = end.state;
            e.exit = end.exit;
            e.reason = end.reason;
            e.detail.clone_from(end.detail);
            e.ended = Some(at);
            e.last = Some(attempt.allocation.clone());
            let total = e.usage.get_or_insert_default();
            let total = Arc::make_mut(total);
            total.cpu_ms = total.cpu_ms.saturating_add(usage.cpu_ms);
            total.peak_mem_mib = total.peak_mem_mib.max(usage.peak_mem_mib);
            total.held.add(&usage.held);
            if end.state == JobState::Pending {
                e.hold = end.hold;
                e.eligible = None;
                settle_eligibility(job, e, at);
            }
        })
    }

    fn forget(&mut self, id: JobId, touched: &mut BTreeSet<RowKey>) -> bool {
        let Some(entry) = self.jobs.get(&id).cloned() else { return false };
        for dependency in &entry.job.waiting {
            self.stop_waiting(id, dependency.job);
        }
        self.jobs.remove(&id);
        touched.insert(RowKey::Job(id));
        touched.extend((0..entry.elements.len()).map(|i| RowKey::Element(JobId(id.0 + i as u64))));
        self.derived.finished = self.derived.finished.saturating_sub(entry.elements.len() as u64);
        true
    }

    fn node_registered(&mut self, id: NodeId, spec: &Arc<NodeSpec>, at: Timestamp, touched: &mut BTreeSet<RowKey>) {
        self.meta.next_node = self.meta.next_node.max(id.0 + 1);
        touched.insert(RowKey::Node(id));
        self.derived.node_names.insert(spec.name.clone(), id);
        let known = self.nodes.get(&id);
        let rebooted = known.is_some_and(|n| n.spec.boot_id != spec.boot_id);
        let mut node = Node {
            id,
            spec: (**spec).clone(),
            extra_features: known.map(|n| n.extra_features.clone()).unwrap_or_default(),
            extra_amounts: known.map(|n| n.extra_amounts.clone()).unwrap_or_default(),
            health: NodeHealth::Up,
            since: at,
            health_reason: String::new(),
            drain: known.and_then(|n| n.drain.clone()),
            devices_out: known.map(|n| n.devices_out.clone()).unwrap_or_default(),
            devices_forgiven: known.map(|n| n.devices_forgiven.clone()).unwrap_or_default(),
        };
        if rebooted {
            node.devices_booted();
        }
        node.forget_strange_devices();
        self.nodes.insert(id, Arc::new(node));
    }

    fn node_set(
        &mut self,
        id: NodeId,
        name: &str,
        features: &[String],
        extra: &Amounts,
        at: Timestamp,
        touched: &mut BTreeSet<RowKey>,
    ) {
        self.meta.next_node = self.meta.next_node.max(id.0 + 1);
        touched.insert(RowKey::Node(id));
        self.derived.node_names.insert(name.to_owned(), id);
        let node = self.nodes.entry(id).or_insert_with(|| {
            Arc::new(Node {
                id,
                spec: NodeSpec { name: name.to_owned(), ..NodeSpec::default() },
                extra_features: Vec::new(),
                extra_amounts: Amounts::new(),
                health: NodeHealth::Down,
                since: at,
                health_reason: "its agent never came".into(),
                drain: None,
                devices_out: BTreeMap::new(),
                devices_forgiven: BTreeMap::new(),
            })
        });
        let node = Arc::make_mut(node);
        node.extra_features = features.to_vec();
        node.extra_amounts = extra.clone();
    }

    fn charged(&mut self, key: AttemptKey, amount: i64, touched: &mut BTreeSet<RowKey>) -> bool {
        let Some(uncharged) = self.uncharged.remove(&key) else { return false };
        touched.insert(RowKey::Uncharged(key));
        let ledger_key = (uncharged.account, uncharged.user);
        touched.insert(RowKey::Ledger(ledger_key));
        let entry = self.ledger.entry(ledger_key).or_default();
        entry.total = entry.total.saturating_add(amount);
        entry.decayed = entry.decayed.saturating_add(amount);
        if self.find(key.job).is_some() {
            self.change(key.job, touched, |_, e| e.charge = Some(e.charge.unwrap_or(0).saturating_add(amount)));
        }
        true
    }

    fn fade(&mut self, factor: u64, touched: &mut BTreeSet<RowKey>) {
        let keys: Vec<_> = self.ledger.keys().copied().collect();
        for key in keys {
            touched.insert(RowKey::Ledger(key));
            if let Some(entry) = self.ledger.get_mut(&key) {
                entry.decayed = faded(entry.decayed, factor);
            }
        }
    }
}

struct End<'a> {
    state: JobState,
    exit: Exit,
    reason: ReasonCode,
    detail: &'a Option<Arc<str>>,
    usage: &'a Usage,
    hold: Hold,
}

/// Sets or clears the time from which a pending element may run.
pub(crate) fn settle_eligibility(job: &Job, element: &mut Element, at: Timestamp) {
    let free = element.state == JobState::Pending && element.hold == Hold::None && !job.keeps_waiting(element);
    element.eligible = match (free, element.eligible) {
        (false, _) => None,
        (true, Some(since)) => Some(since),
        (true, None) => Some(job.spec.begin.map_or(at, |begin| begin.max(at))),
    };
}

/// The last multiple of `period` at or before `at`; `at` itself where there is no period.
pub(crate) fn boundary_before(at: Timestamp, period: i64) -> Timestamp {
    if period <= 0 { at } else { Timestamp(at.0.div_euclid(period) * period) }
}
