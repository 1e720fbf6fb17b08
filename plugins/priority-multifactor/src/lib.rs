//! Age, size, queue, nice and past use, weighted and added up.
//!
//! Each factor is a share between 0 and 1, worked out as a fraction of integers and multiplied with its weight before
//! it is rounded down, so that the factors that `explain` shows add up to the priority exactly:
//!
//! - `age`: time since the job could first have run, of `max_age_hours`.
//! - `size`: the largest of the job's shares of all cores, memory, GPUs and nodes; or what is left to 1, where small
//!   jobs are favoured.
//! - `queue`: priority of the job's queue, of the highest priority of a queue.
//! - `usage`: what remains to 1 of the share of all recent use that fell to the job's account and user.
//! - `nice`: minus the job's nice value.
//!
//! A factor whose weight is 0 costs nothing: its columns are not fetched.

mod factor;

use ephor_sdk::Row;
use ephor_sdk::priority::{Batch, Factor, Priority};
use serde::Deserialize;

use factor::Columns;

/// What a site may set. Weights are 0 to 10^9.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What a job gains by waiting for `max_age_hours`.
    pub age_weight: u32,
    /// After so many hours a job gains no more by waiting.
    pub max_age_hours: u32,
    /// What the largest (or smallest) job gains by its size.
    pub size_weight: u32,
    /// Which jobs gain by size.
    pub favour: Favour,
    /// What the queue with the highest priority gives its jobs.
    pub queue_weight: u32,
    /// What a job gains whose account and user have used nothing lately.
    pub usage_weight: u32,
    /// What a job loses for each point of nice.
    pub nice_weight: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            age_weight: 1_000,
            max_age_hours: 168,
            size_weight: 0,
            favour: Favour::Large,
            queue_weight: 1_000,
            usage_weight: 1_000,
            nice_weight: 1,
        }
    }
}

/// Which jobs gain by size.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Favour {
    /// The more a job asks for, the earlier it goes.
    Large,
    /// The less a job asks for, the earlier it goes.
    Small,
}

/// The policy.
pub struct Multifactor;

impl Priority for Multifactor {
    type Config = Config;

    fn prioritize<B: Batch>(jobs: &B, config: &Config) -> Vec<i64> {
        let columns = Columns::fetch(jobs, config);
        (0..jobs.count() as usize).map(|row| columns.parts(row, config).total()).collect()
    }

    fn explain<B: Batch>(jobs: &B, row: Row, config: &Config) -> Vec<Factor> {
        if row >= jobs.count() {
            return Vec::new();
        }
        Columns::fetch(jobs, config).parts(row as usize, config).explain(config)
    }
}

ephor_sdk::policy!(Priority for Multifactor { manifest: include_str!("../manifest.json") });

#[cfg(test)]
mod tests;
