//! How many jobs of each class could start if there were room, and whether any of them has some.

use super::{Rank, Replica};
use ephor_placement::{ClassId, Work};
use std::collections::BTreeMap;

/// Counts by class, as the order has it; classes of which nobody waits are not in it.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    eligible: BTreeMap<ClassId, u32>,
    /// Those that came since the last accepted cycle.
    arrived: BTreeMap<ClassId, u32>,
}

impl Waiting {
    pub fn add(&mut self, class: ClassId, eligible: bool, arrived: bool) {
        for counts in
            [eligible.then_some(&mut self.eligible), arrived.then_some(&mut self.arrived)].into_iter().flatten()
        {
            *counts.entry(class).or_default() += 1;
        }
    }

    pub fn remove(&mut self, class: ClassId, eligible: bool, arrived: bool) {
        for counts in
            [eligible.then_some(&mut self.eligible), arrived.then_some(&mut self.arrived)].into_iter().flatten()
        {
            if let Some(count) = counts.get_mut(&class) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&class);
                }
            }
        }
    }

    /// From now on others count as having arrived.
    pub fn settle(&mut self) {
        self.arrived.clear();
    }
}

impl Replica {
    /// Parks the classes of jobs that came and that what runs leaves no room for, as a try would.
    pub(crate) fn park_arrivals(&mut self, work: &mut Work) {
        let awake: Vec<ClassId> =
            self.waiting.arrived.keys().copied().filter(|class| self.parked(*class).is_none()).collect();
        for class in awake {
            if let Ok(Some(why)) = self.cluster.why_no_room_now(class, work) {
                self.park(class, why);
            }
        }
    }

    /// Whether any job that could start is of a class that is not parked.
    pub(crate) fn anyone_awake(&self) -> bool {
        self.waiting.eligible.keys().any(|class| self.parked(*class).is_none())
    }

    /// Whether any of those that came is, or is not behind that place in the order.
    pub(crate) fn anyone_came_awake_or_before(&self, place: Rank) -> bool {
        let first = self.arrived_after(None).next().map(|(rank, _)| *rank);
        first.is_some_and(|first| first < place)
            || self.waiting.arrived.keys().any(|class| self.parked(*class).is_none())
    }
}
