//! Free GPUs over the time of a simulation, and how many of them lie on nodes that are partly taken.

use ephor_core::{Event, Stamped};
use ephor_model::{Allocation, JobId, NodeId, ResourceId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was free from a time on, in milli-GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeGpus {
    /// Seconds of the trace.
    pub at: i64,
    /// All that is free.
    pub free: i64,
    /// The part of it on nodes of which something is taken.
    pub broken: i64,
}

/// See the module. Follows the events of a simulation.
#[derive(Clone, Debug, Default)]
pub struct GpuBooks {
    /// Capacity and what is taken, by node.
    nodes: BTreeMap<NodeId, (i64, i64)>,
    holds: BTreeMap<JobId, Arc<Allocation>>,
    now: FreeGpus,
    /// One entry for each time at which something changed.
    pub samples: Vec<FreeGpus>,
}

impl GpuBooks {
    /// Takes note of the next events.
    pub fn observe(&mut self, events: &[Stamped]) {
        for stamped in events {
            let before = self.now;
            match &stamped.event {
                Event::NodeRegistered { node, spec } => {
                    let capacity = spec.capacity.get(ResourceId::GPU);
                    if capacity > 0 {
                        self.nodes.insert(*node, (capacity, 0));
                        self.now.free += capacity;
                    }
                }
                Event::Started { key, allocation, .. } => {
                    self.change(allocation, 1);
                    self.holds.insert(key.job, allocation.clone());
                }
                Event::Ended { key, .. } => {
                    if let Some(allocation) = self.holds.remove(&key.job) {
                        self.change(&allocation, -1);
                    }
                }
                _ => {}
            }
            self.now.at = stamped.at.0 / 1000;
            if self.now == before {
                continue;
            }
            match self.samples.last_mut() {
                Some(last) if last.at == self.now.at => *last = self.now,
                _ => self.samples.push(self.now),
            }
        }
    }

    fn change(&mut self, allocation: &Allocation, sign: i64) {
        for part in &allocation.parts {
            let Some((capacity, taken)) = self.nodes.get_mut(&part.node) else { continue };
            let broken = |taken: i64| if taken > 0 { *capacity - taken } else { 0 };
            let more = sign * part.amounts.get(ResourceId::GPU);
            self.now.broken += broken(*taken + more) - broken(*taken);
            self.now.free -= more;
            *taken += more;
        }
    }

    /// Of the free GPUs the part on nodes that are partly taken, over the time until `end`; `None`: no GPU was free.
    pub fn fragmentation(&self, end: i64) -> Option<f64> {
        let ends = self.samples.iter().skip(1).map(|sample| sample.at).chain([end]);
        let (mut free, mut broken) = (0i128, 0i128);
        for (sample, until) in self.samples.iter().zip(ends) {
            let length = i128::from((until - sample.at).max(0));
            free += length * i128::from(sample.free);
            broken += length * i128::from(sample.broken);
        }
        (free > 0).then(|| broken as f64 / free as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ephor_model::{
        AllocationPart, Amounts, AttemptKey, Exit, Hold, JobState, NodeSpec, ReasonCode, Timestamp, Usage,
    };

    #[test]
    fn free_and_broken_are_followed() {
        let mut books = GpuBooks::default();
        let at = |seconds: i64, event| Stamped { at: Timestamp(seconds * 1000), event };
        let spec = NodeSpec { capacity: Amounts::new().with(ResourceId::GPU, 8000), ..NodeSpec::default() };
        let node = |n| Event::NodeRegistered { node: NodeId(n), spec: Arc::new(spec.clone()) };
        let key = AttemptKey { job: JobId(1), number: 1 };
        let amounts = Amounts::new().with(ResourceId::GPU, 3000);
        let part = AllocationPart { node: NodeId(1), tasks: 1, amounts, devices: [0, 1, 2].into_iter().collect() };
        let allocation = Arc::new(Allocation { parts: [part].into_iter().collect() });
        let ended = Event::Ended {
            key,
            state: JobState::Completed,
            exit: Exit::default(),
            reason: ReasonCode::None,
            detail: None,
            usage: Usage::default(),
            hold: Hold::None,
        };
        books.observe(&[at(0, node(0)), at(0, node(1))]);
        books.observe(&[at(10, Event::Started { key, allocation, expected_end: Timestamp(0) }), at(30, ended)]);
        let seen: Vec<_> = books.samples.iter().map(|s| (s.at, s.free, s.broken)).collect();
        assert_eq!(seen, [(0, 16_000, 0), (10, 13_000, 5000), (30, 16_000, 0)]);
        // 20 s with 5 of 13 free broken, 20 s with 16 free and whole.
        assert!((books.fragmentation(40).unwrap() - 100.0 / (160.0 + 260.0 + 160.0)).abs() < 1e-12);
    }
}
