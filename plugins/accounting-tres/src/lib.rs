//! Prices what a job held for how long, and lets past use fade by a half-life.
//!
//! The accounting unit is a thousandth of a billing second: with the weights as they come, one core held for one
//! second costs 1,000 units. Weights say what one core, one GiB, one GPU and one node cost for one second; the price
//! of an attempt is their sum, or with `"combine": "max"` the highest of them, times the time that it was held,
//! rounded down once at the end. Past use is halved every `half_life_hours`, in steps of five minutes.

mod fade;

use ephor_sdk::accounting::{Accounting, Batch, Fading};
use ephor_sdk::need;
use serde::Deserialize;

/// Milliseconds of an hour.
const HOUR: u64 = 3_600_000;
/// Length of a period of fading, in milliseconds.
const PERIOD: u64 = 300_000;
/// What the weighted amounts are divided by at the end: thousandths of cores and GPUs, MiB of a GiB, ms of a second.
const MILLI: i128 = 1_000;
const MIB_PER_GIB: i128 = 1_024;

/// What a site may set. Weights are accounting units for one second.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Price of one core.
    pub cpu_weight: u32,
    /// Price of one GiB.
    pub mem_weight: u32,
    /// Price of one GPU.
    pub gpu_weight: u32,
    /// Price of one node.
    pub node_weight: u32,
    /// How the prices of the resources make one.
    pub combine: Combine,
    /// After so many hours past use counts half; 0: it never fades.
    pub half_life_hours: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cpu_weight: 1_000,
            mem_weight: 0,
            gpu_weight: 0,
            node_weight: 0,
            combine: Combine::Sum,
            half_life_hours: 168,
        }
    }
}

/// How the prices of the resources make one.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Combine {
    /// They add up.
    Sum,
    /// The highest counts.
    Max,
}

/// The policy.
pub struct Tres;

impl Accounting for Tres {
    type Config = Config;

    fn charge<B: Batch>(ended: &B, config: &Config) -> Vec<i64> {
        let weights = [config.cpu_weight, config.mem_weight, config.gpu_weight, config.node_weight];
        let elapsed = need(ended.column("elapsed"));
        let held = ["held.cpu", "held.mem", "held.gpu", "held.node"]
            .into_iter()
            .zip(weights)
            .map(|(name, weight)| if weight == 0 { Vec::new() } else { need(ended.column(name)) })
            .collect::<Vec<_>>();
        let price = |(row, elapsed): (usize, &i64)| {
            let mut amounts = [0; 4];
            for (amount, column) in amounts.iter_mut().zip(&held) {
                *amount = column.get(row).copied().unwrap_or(0);
            }
            price(amounts, weights, *elapsed, config.combine)
        };
        elapsed.iter().enumerate().map(price).collect()
    }

    fn decay(config: &Config) -> Fading {
        match config.half_life_hours {
            0 => Fading { period: 0, factor: fade::ONE },
            hours => Fading {
                // Proof: 300,000 fits.
                period: PERIOD as i64,
                factor: fade::factor(PERIOD, u64::from(hours) * HOUR),
            },
        }
    }
}

/// Price of amounts (millicores, MiB, milli-GPU, nodes) held for `elapsed` ms, in accounting units.
fn price(amounts: [i64; 4], weights: [u32; 4], elapsed: i64, combine: Combine) -> i64 {
    // One denominator for all, so that nothing is rounded before the end.
    let scales = [MIB_PER_GIB, MILLI, MIB_PER_GIB, MILLI * MIB_PER_GIB];
    let mut parts = [0_i128; 4];
    for at in 0..4 {
        parts[at] = i128::from(amounts[at].max(0)) * i128::from(weights[at]) * scales[at];
    }
    let each_second = match combine {
        Combine::Sum => parts.iter().fold(0_i128, |sum, part| sum.saturating_add(*part)),
        Combine::Max => parts.into_iter().max().unwrap_or(0),
    };
    let units = each_second.saturating_mul(i128::from(elapsed.max(0))) / (MILLI * MIB_PER_GIB * MILLI);
    i64::try_from(units).unwrap_or(i64::MAX)
}

ephor_sdk::policy!(Accounting for Tres { manifest: include_str!("../manifest.json") });

#[cfg(test)]
mod tests;
