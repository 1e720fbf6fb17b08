//! The factors of one job, in integers.

use ephor_sdk::need;
use ephor_sdk::priority::{Batch, Factor};

use crate::{Config, Favour};

/// Milliseconds of an hour.
const HOUR: i64 = 3_600_000;
/// Beyond this, either way, nice makes no difference; it keeps sums within 64 bits.
const MOST_NICE: i64 = 1 << 30;
/// Resources of which a job's size is its largest share.
const SIZES: [&str; 4] = ["cpus", "mem", "gpus", "nodes"];

/// The columns of a call that the weights make necessary; the others are empty.
pub struct Columns {
    now: i64,
    eligible: Vec<i64>,
    sizes: Vec<Size>,
    queue_priority: Vec<i64>,
    max_queue_priority: i64,
    usage: Vec<i64>,
    total_usage: i64,
    nice: Vec<i64>,
}

struct Size {
    name: &'static str,
    column: Vec<i64>,
    total: i64,
}

/// A share: `part` of `whole`, with 0 <= part <= whole and whole > 0.
#[derive(Clone, Copy)]
pub struct Share {
    part: i64,
    whole: i64,
}

impl Share {
    fn new(part: i64, whole: i64) -> Self {
        if whole <= 0 { Self { part: 0, whole: 1 } } else { Self { part: part.clamp(0, whole), whole } }
    }

    fn rest(self) -> Self {
        Self { part: self.whole - self.part, whole: self.whole }
    }

    fn exceeds(self, other: Self) -> bool {
        i128::from(self.part) * i128::from(other.whole) > i128::from(other.part) * i128::from(self.whole)
    }

    fn times(self, weight: u32) -> i64 {
        let value = i128::from(weight) * i128::from(self.part) / i128::from(self.whole);
        // Proof: part <= whole, so the value is at most the weight, which is a u32.
        i64::try_from(value).unwrap_or(i64::MAX)
    }
}

/// The parts of one job's priority.
pub struct Parts {
    age: Share,
    size: Share,
    /// The resource that gave the size.
    sized_by: &'static str,
    queue: Share,
    usage: Share,
    nice: i64,
    values: [i64; 5],
}

impl Columns {
    /// Fetches what the weights make necessary. A host without one of the columns ends the call.
    pub fn fetch<B: Batch>(jobs: &B, config: &Config) -> Self {
        let column = |name: &str, weight: u32| if weight == 0 { Vec::new() } else { need(jobs.column(name)) };
        let total = |name: &str, weight: u32| if weight == 0 { 0 } else { need(jobs.total(name)) };
        let sizes = if config.size_weight == 0 { &[] } else { SIZES.as_slice() };
        Self {
            now: jobs.now(),
            eligible: column("eligible", config.age_weight),
            sizes: sizes
                .iter()
                .map(|name| Size { name, column: need(jobs.column(name)), total: need(jobs.total(name)) })
                .collect(),
            queue_priority: column("queue-priority", config.queue_weight),
            max_queue_priority: total("max-queue-priority", config.queue_weight),
            usage: column("usage", config.usage_weight),
            total_usage: total("usage", config.usage_weight),
            nice: column("nice", config.nice_weight),
        }
    }

    /// The parts of the priority of one row.
    pub fn parts(&self, row: usize, config: &Config) -> Parts {
        let at = |column: &[i64]| column.get(row).copied().unwrap_or(0);
        let waited = if self.eligible.is_empty() { 0 } else { self.now.saturating_sub(at(&self.eligible)) };
        let age = Share::new(waited, i64::from(config.max_age_hours.max(1)) * HOUR);
        let mut size = Share::new(0, 1);
        let mut sized_by = "cpus";
        for one in &self.sizes {
            let share = Share::new(at(&one.column), one.total);
            if share.exceeds(size) {
                (size, sized_by) = (share, one.name);
            }
        }
        let favoured = if config.favour == Favour::Large { size } else { size.rest() };
        let queue = Share::new(at(&self.queue_priority), self.max_queue_priority);
        let usage = Share::new(at(&self.usage), self.total_usage);
        let nice = at(&self.nice).clamp(-MOST_NICE, MOST_NICE);
        let values = [
            age.times(config.age_weight),
            favoured.times(config.size_weight),
            queue.times(config.queue_weight),
            usage.rest().times(config.usage_weight),
            -nice * i64::from(config.nice_weight),
        ];
        Parts { age, size, sized_by, queue, usage, nice, values }
    }
}

impl Parts {
    /// The priority.
    pub fn total(&self) -> i64 {
        // At most 4 x 2^32 and 2^30 x 2^32: no sum of these overflows.
        self.values.iter().sum()
    }

    /// The parts for people.
    pub fn explain(&self, config: &Config) -> Vec<Factor> {
        let favour = if config.favour == Favour::Large { "large" } else { "small" };
        let how = [
            format!(
                "waited {} of {} min, weight {}",
                self.age.part / 60_000,
                self.age.whole / 60_000,
                config.age_weight
            ),
            format!(
                "asks for {} of {} {} ({favour} jobs favoured), weight {}",
                self.size.part, self.size.whole, self.sized_by, config.size_weight
            ),
            format!("queue priority {} of {}, weight {}", self.queue.part, self.queue.whole, config.queue_weight),
            format!(
                "account and user used {} of {} units of late, weight {}",
                self.usage.part, self.usage.whole, config.usage_weight
            ),
            format!("nice {}, weight {}", self.nice, config.nice_weight),
        ];
        let weights =
            [config.age_weight, config.size_weight, config.queue_weight, config.usage_weight, config.nice_weight];
        ["age", "size", "queue", "usage", "nice"]
            .into_iter()
            .zip(self.values)
            .zip(how)
            .zip(weights)
            .filter(|(_, weight)| *weight != 0)
            .map(|(((name, value), how), _)| Factor { name: name.to_owned(), value, how })
            .collect()
    }
}
