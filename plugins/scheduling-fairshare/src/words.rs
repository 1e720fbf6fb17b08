//! What is said to people: in quota terms, with numbers.

use crate::config::Config;
use crate::tree::{Node, Place, Tree};
use crate::world::{Job, Running};

/// Says things about queues by name.
#[derive(Debug)]
pub struct Words<'a> {
    config: &'a Config,
    /// By row.
    queues: Vec<String>,
}

impl<'a> Words<'a> {
    /// With the names of queues, by row; an empty one is said as a number.
    pub fn new(config: &'a Config, queues: Vec<String>) -> Self {
        Self { config, queues }
    }

    fn queue(&self, row: usize) -> String {
        match self.queues.get(row) {
            Some(name) if !name.is_empty() => format!("queue {name}"),
            _ => format!("queue number {row}"),
        }
    }

    fn amount(&self, resource: usize, amount: i64) -> String {
        match self.config.resources.get(resource).map(|r| r.name.as_str()) {
            Some("cpu" | "gpu") if amount % 1_000 == 0 => (amount / 1_000).to_string(),
            Some("cpu" | "gpu") => {
                let text = format!("{}.{:03}", amount / 1_000, amount.rem_euclid(1_000));
                text.trim_end_matches('0').to_owned()
            }
            Some("mem") => format!("{amount} MiB"),
            _ => amount.to_string(),
        }
    }

    fn resource(&self, resource: usize) -> &str {
        self.config.resources.get(resource).map_or("", |r| r.name.as_str())
    }

    /// A job that gives way to nobody is held: with it a queue would hold more than its quota for good.
    pub fn over_quota(&self, node: &Node, row: usize, resource: usize, asks: i64) -> String {
        format!(
            "NonPreemptibleOverQuota: {} has {} of its quota of {} {} in use by jobs that do not give way, and this one, \
             which would not either, asks for {}",
            self.queue(row),
            self.amount(resource, node.fixed[resource]),
            self.amount(resource, node.queue.quota[resource]),
            self.resource(resource),
            self.amount(resource, asks),
        )
    }

    /// Why a queue may not reclaim for a job.
    pub fn above_share(&self, tree: &Tree, job: &Job) -> String {
        let node = &tree.nodes[job.leaf];
        let over = |at: &usize| node.allocated[*at] + job.amounts[*at] > node.fair[*at];
        let Some(resource) = (0..tree.resources).find(over) else { return String::new() };
        format!(
            "nobody gives way for it: {} has {} {} in use and this job asks for {}; its fair share is {} (quota {}{})",
            self.queue(job.queue),
            self.amount(resource, node.allocated[resource]),
            self.resource(resource),
            self.amount(resource, job.amounts[resource]),
            self.amount(resource, node.fair[resource]),
            self.amount(resource, node.queue.quota[resource]),
            match node.fair[resource] - node.queue.quota[resource] {
                over if over > 0 => format!(", and {} of what others leave", self.amount(resource, over)),
                _ => String::new(),
            },
        )
    }

    /// No set of victims makes room.
    pub fn nobody(&self) -> String {
        "no jobs that may move or give way would make room for it".to_owned()
    }

    /// A search had no end.
    pub fn ended(&self) -> String {
        "whether others could move or give way for it is not known: the search took all the work it may; it goes on in \
         the next cycle"
            .to_owned()
    }

    /// Nobody gives way yet.
    pub fn too_early(&self, seconds: i64) -> String {
        format!("PreemptionDelayNotElapsed: others move or give way for it in {seconds} s at the earliest")
    }

    /// A running job moves.
    pub fn moved(&self, job: &Job) -> String {
        format!("moves so that job {} of {} fits", job.turn.id, self.queue(job.queue))
    }

    /// A running job gives way to a more urgent one.
    pub fn preempted(&self, job: &Job, victim: &Running) -> String {
        format!(
            "gives way to job {} of the same {}, whose class is {} against {}",
            job.turn.id,
            self.queue(job.queue),
            job.turn.class,
            victim.turn.class
        )
    }

    /// A running job gives back what its queue holds beyond its share.
    pub fn reclaimed(&self, tree: &Tree, job: &Job, victim: &Running) -> String {
        let side = |leaf: Place, row: usize, change: i64, resource: usize| {
            let node = &tree.nodes[leaf];
            format!(
                "{} goes from {} to {} of its fair share of {} {} (quota {})",
                self.queue(row),
                self.amount(resource, node.allocated[resource]),
                self.amount(resource, node.allocated[resource] + change),
                self.amount(resource, node.fair[resource]),
                self.resource(resource),
                self.amount(resource, node.queue.quota[resource]),
            )
        };
        let resource = (0..tree.resources).find(|at| job.amounts[*at] > 0 && victim.amounts[*at] > 0).unwrap_or(0);
        format!(
            "gives way to job {}: {}; {}",
            job.turn.id,
            side(job.leaf, job.queue, job.amounts[resource], resource),
            side(victim.leaf, victim.queue, -victim.amounts[resource], resource),
        )
    }
}
