//! Virtual time: what will happen when. At each instant completions come before arrivals.

use ephor_model::{AttemptKey, Timestamp};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens at a time. The order of the variants is the order within an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happening {
    /// An attempt ends.
    Completion(AttemptKey),
    /// The job at that place of the workload arrives.
    Arrival(usize),
}

/// See the module.
#[derive(Debug, Default)]
pub struct Timeline {
    heap: BinaryHeap<Reverse<(Timestamp, Happening)>>,
}

impl Timeline {
    /// Says that something will happen.
    pub fn put(&mut self, at: Timestamp, what: Happening) {
        self.heap.push(Reverse((at, what)));
    }

    /// The next instant at which something happens.
    pub fn next_time(&self) -> Option<Timestamp> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the next happening of that instant.
    pub fn take(&mut self, at: Timestamp) -> Option<Happening> {
        self.heap.peek().filter(|Reverse((next, _))| *next == at)?;
        self.heap.pop().map(|Reverse((_, what))| what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ephor_model::JobId;

    #[test]
    fn completions_come_first_and_instants_are_apart() {
        let mut time = Timeline::default();
        let end = |job| Happening::Completion(AttemptKey { job: JobId(job), number: 1 });
        time.put(Timestamp(5), Happening::Arrival(0));
        time.put(Timestamp(5), end(9));
        time.put(Timestamp(4), Happening::Arrival(1));
        time.put(Timestamp(5), end(2));
        assert_eq!(time.next_time(), Some(Timestamp(4)));
        assert_eq!(time.take(Timestamp(4)), Some(Happening::Arrival(1)));
        assert_eq!(time.take(Timestamp(4)), None);
        let rest: Vec<_> = std::iter::from_fn(|| time.take(Timestamp(5))).collect();
        assert_eq!(rest, [end(2), end(9), Happening::Arrival(0)]);
        assert_eq!(time.next_time(), None);
    }
}
