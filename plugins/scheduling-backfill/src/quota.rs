//! How many jobs of one user and of one queue a cycle looks at.

use std::collections::BTreeMap;

use ephor_sdk::Row;
use ephor_sdk::scheduling::{Cycle, Refusal};

/// Counts the jobs that were looked at, by user and by queue.
#[derive(Debug)]
pub struct Quota {
    per_user: Counter,
    per_queue: Counter,
}

impl Quota {
    /// At most so many of each; 0: no bound.
    pub fn new(per_user: u32, per_queue: u32) -> Self {
        Self { per_user: Counter::new("user", per_user), per_queue: Counter::new("queue", per_queue) }
    }

    /// Whether anything is bounded.
    pub fn is_bound(&self) -> bool {
        self.per_user.most > 0 || self.per_queue.most > 0
    }

    /// Those of the next jobs in order that are within the bounds; they count from now on.
    ///
    /// # Errors
    /// The work of the call is used up.
    pub fn admit<C: Cycle>(&mut self, cycle: &C, jobs: Vec<Row>) -> Result<Vec<Row>, Refusal> {
        if !self.is_bound() {
            return Ok(jobs);
        }
        let users = self.per_user.keys(cycle, &jobs)?;
        let queues = self.per_queue.keys(cycle, &jobs)?;
        let within = |at: &usize| {
            let good = self.per_user.has_room(users[*at]) && self.per_queue.has_room(queues[*at]);
            if good {
                self.per_user.add(users[*at]);
                self.per_queue.add(queues[*at]);
            }
            good
        };
        Ok((0..jobs.len()).filter(within).map(|at| jobs[at]).collect())
    }
}

/// One bound.
#[derive(Debug)]
struct Counter {
    column: &'static str,
    most: u32,
    counts: BTreeMap<i64, u32>,
}

impl Counter {
    fn new(column: &'static str, most: u32) -> Self {
        Self { column, most, counts: BTreeMap::new() }
    }

    /// What the jobs are counted under.
    fn keys<C: Cycle>(&self, cycle: &C, jobs: &[Row]) -> Result<Vec<i64>, Refusal> {
        if self.most == 0 {
            return Ok(vec![0; jobs.len()]);
        }
        cycle.column("jobs", self.column, Some(jobs))
    }

    fn has_room(&self, key: i64) -> bool {
        self.most == 0 || self.counts.get(&key).is_none_or(|count| *count < self.most)
    }

    fn add(&mut self, key: i64) {
        *self.counts.entry(key).or_default() += 1;
    }
}
