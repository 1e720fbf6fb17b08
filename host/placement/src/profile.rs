//! What is free on one node, now and at every later time.

use ephor_model::time::Timestamp;
use smallvec::SmallVec;

/// Amounts of one node, by the columns of its shape. Negative where facts took more than there is.
pub(crate) type Level = SmallVec<[i64; 4]>;

/// Before everything: where holds of running jobs begin.
pub(crate) const BEGINNING: Timestamp = Timestamp(i64::MIN);

/// What is free from a time on, until the next step.
#[derive(Clone, Debug)]
struct Step {
    at: Timestamp,
    free: Level,
}

/// The free amounts of a node as a function of time.
///
/// Always in its shortest form (no two neighbours alike), so that taking a change back restores the very same value.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// Ascending; the first is at [`BEGINNING`].
    steps: Vec<Step>,
    /// When holds begin that do not run yet, ascending, one for each: only there can the free amounts drop.
    drops: Vec<Timestamp>,
}

impl Profile {
    /// Everything is free.
    pub fn new(capacity: Level) -> Self {
        Self { steps: vec![Step { at: BEGINNING, free: capacity }], drops: Vec::new() }
    }

    /// Takes an amount from `from` on and gives it back at `until` (never: [`Timestamp::NEVER`]).
    pub fn hold(&mut self, from: Timestamp, until: Timestamp, amount: &Level) {
        self.change(from, until, amount, -1);
        if from > BEGINNING {
            let at = self.drops.partition_point(|t| *t < from);
            self.drops.insert(at, from);
        }
    }

    /// Takes a hold back.
    pub fn release(&mut self, from: Timestamp, until: Timestamp, amount: &Level) {
        self.change(from, until, amount, 1);
        if let Ok(at) = self.drops.binary_search(&from) {
            self.drops.remove(at);
        }
    }

    /// Moves the end of a hold.
    pub fn move_end(&mut self, from: Timestamp, to: Timestamp, amount: &Level) {
        self.change(from, to, amount, -1);
        self.change(to, from, amount, 1);
    }

    /// What is free at a time.
    pub fn at(&self, time: Timestamp) -> &Level {
        &self.steps[self.index(time)].free
    }

    /// The least of each column that is free anywhere in `[from, until)`.
    pub fn lowest(&self, from: Timestamp, until: Timestamp) -> Level {
        let mut lowest = Level::new();
        self.lowest_so_far(from, until, |level| {
            lowest.clone_from(level);
            true
        });
        lowest
    }

    /// Shows the least that is free from `from` on, at first and after each drop before `until`, while `go_on` says so.
    pub fn lowest_so_far(&self, from: Timestamp, until: Timestamp, mut go_on: impl FnMut(&Level) -> bool) {
        let free = self.at(from);
        if !go_on(free) {
            return;
        }
        let mut lowest: Option<Level> = None;
        let first = self.drops.partition_point(|t| *t <= from);
        for drop in self.drops[first..].iter().take_while(|t| **t < until) {
            let lowest = lowest.get_or_insert_with(|| free.clone());
            for (low, free) in lowest.iter_mut().zip(self.at(*drop)) {
                *low = (*low).min(*free);
            }
            if !go_on(lowest) {
                return;
            }
        }
    }

    /// Adds `times` times the amount to what is free in `[from, until)`.
    fn change(&mut self, from: Timestamp, until: Timestamp, amount: &Level, times: i64) {
        if from >= until {
            return;
        }
        let first = self.cut(from);
        let end = if until == Timestamp::NEVER { self.steps.len() } else { self.cut(until) };
        for step in &mut self.steps[first..end] {
            for (free, n) in step.free.iter_mut().zip(amount) {
                *free += times * n;
            }
        }
        self.join(end);
        self.join(first);
    }

    /// The index of the step that begins at that time; makes one where there is none.
    fn cut(&mut self, time: Timestamp) -> usize {
        let index = self.index(time);
        if self.steps[index].at == time {
            return index;
        }
        let free = self.steps[index].free.clone();
        self.steps.insert(index + 1, Step { at: time, free });
        index + 1
    }

    /// Drops the step at that index where it says the same as the one before it.
    fn join(&mut self, index: usize) {
        if index > 0 && index < self.steps.len() && self.steps[index].free == self.steps[index - 1].free {
            self.steps.remove(index);
        }
    }

    /// The step that a time falls into.
    fn index(&self, time: Timestamp) -> usize {
        // The first step is at the beginning of time, so at least one is not after `time`.
        self.steps.partition_point(|s| s.at <= time) - 1
    }
}
