//! What is known of a generation from its calls: how many, how long, how much fuel, and how they failed.

use crate::bounds;
use ephor_core::{Fault, FaultKind};
use ephor_model::Timestamp;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A fault and when it happened, in the caller's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastFault {
    /// When.
    pub at: Timestamp,
    /// What.
    pub fault: Fault,
}

/// The figures of a generation at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Calls, with those that failed.
    pub calls: u64,
    /// Calls whose instance had been made ahead.
    pub ahead: u64,
    /// Failed calls by kind, in the order in which the kinds first came.
    pub faults: Vec<(FaultKind, u64)>,
    /// Failed calls since the last good one.
    pub faults_in_a_row: u32,
    /// The newest faults, oldest first; at most [`bounds::FAULTS_KEPT`].
    pub last_faults: Vec<PastFault>,
    /// Mean length of a call, in nanoseconds; with the start of its instance where that was not made ahead.
    pub mean_ns: u64,
    /// Longest call in nanoseconds.
    pub max_ns: u64,
    /// Mean fuel of a call.
    pub mean_fuel: u64,
    /// Most fuel of a call.
    pub max_fuel: u64,
    /// Fuel that the last call could have burned.
    pub last_budget: u64,
    /// Log lines that were beyond a call's limit and dropped.
    pub log_lines_dropped: u64,
}

/// What one call cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub took: Duration,
    pub fuel: u64,
    pub budget: u64,
    pub lines_dropped: u64,
    pub ahead: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Stats(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    snapshot: Snapshot,
    total_ns: u128,
    total_fuel: u128,
    last_faults: VecDeque<PastFault>,
    /// The newest time that a caller gave, for calls that come without one.
    now: Timestamp,
}

impl Stats {
    pub fn record(&self, now: Option<Timestamp>, cost: Cost, fault: Option<&Fault>) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *inner;
        inner.now = now.unwrap_or(inner.now).max(inner.now);
        let ns = cost.took.as_nanos();
        inner.total_ns += ns;
        inner.total_fuel += u128::from(cost.fuel);
        let s = &mut inner.snapshot;
        s.calls += 1;
        s.ahead += u64::from(cost.ahead);
        s.max_ns = s.max_ns.max(u64::try_from(ns).unwrap_or(u64::MAX));
        s.max_fuel = s.max_fuel.max(cost.fuel);
        s.last_budget = cost.budget;
        s.log_lines_dropped += cost.lines_dropped;
        let Some(fault) = fault else {
            s.faults_in_a_row = 0;
            return;
        };
        s.faults_in_a_row = s.faults_in_a_row.saturating_add(1);
        match s.faults.iter_mut().find(|(kind, _)| *kind == fault.kind) {
            Some((_, count)) => *count += 1,
            None => s.faults.push((fault.kind, 1)),
        }
        if inner.last_faults.len() == bounds::FAULTS_KEPT {
            inner.last_faults.pop_front();
        }
        inner.last_faults.push_back(PastFault { at: inner.now, fault: fault.clone() });
    }

    pub fn snapshot(&self) -> Snapshot {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut snapshot = inner.snapshot.clone();
        let calls = u128::from(snapshot.calls.max(1));
        snapshot.mean_ns = u64::try_from(inner.total_ns / calls).unwrap_or(u64::MAX);
        snapshot.mean_fuel = u64::try_from(inner.total_fuel / calls).unwrap_or(u64::MAX);
        snapshot.last_faults = inner.last_faults.iter().cloned().collect();
        snapshot
    }

    /// Calls, faults since the last good call, and the time of the last fault.
    pub fn health(&self) -> (u64, u32, Timestamp) {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = inner.last_faults.back().map_or(Timestamp(0), |f| f.at);
        (inner.snapshot.calls, inner.snapshot.faults_in_a_row, last)
    }
}
