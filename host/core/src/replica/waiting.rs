//! How many jobs of each class could start if there were room, and whether any of them has some.

use super::{Pending, Rank, Replica};
use ephor_model::{Amounts, QueueId};
use ephor_placement::{ClassId, Work};
use std::collections::BTreeMap;

/// Counts by class, as the order has it; classes of which nobody waits are not in it.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    eligible: BTreeMap<ClassId, u32>,
    /// Those that came since the last accepted cycle.
    arrived: BTreeMap<ClassId, u32>,
    /// The eligible ones by their queue and by what they ask for.
    asking: BTreeMap<(QueueId, ClassId), u32>,
}

impl Waiting {
    pub fn add(&mut self, pending: &Pending, eligible: bool, arrived: bool) {
        let class = pending.class_in_order();
        if eligible {
            *self.eligible.entry(class).or_default() += 1;
            *self.asking.entry((pending.queue, pending.class)).or_default() += 1;
        }
        if arrived {
            *self.arrived.entry(class).or_default() += 1;
        }
    }

    pub fn remove(&mut self, pending: &Pending, eligible: bool, arrived: bool) {
        let class = pending.class_in_order();
        if eligible {
            one_less(&mut self.eligible, class);
            one_less(&mut self.asking, (pending.queue, pending.class));
        }
        if arrived {
            one_less(&mut self.arrived, class);
        }
    }

    /// From now on others count as having arrived.
    pub fn settle(&mut self) {
        self.arrived.clear();
    }
}

fn one_less<K: Ord>(counts: &mut BTreeMap<K, u32>, of: K) {
    if let Some(count) = counts.get_mut(&of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&of);
        }
    }
}

impl Replica {
    /// What jobs that could start ask for, in parts that each belong to one queue.
    pub(crate) fn asked_for(&self) -> impl Iterator<Item = (QueueId, Amounts)> {
        self.waiting.asking.iter().filter_map(|((queue, class), count)| {
            Some((*queue, self.cluster.need(*class)?.request.total().scaled(i64::from(*count))))
        })
    }

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
