//! Misbehaves in the role priority as its configuration says.

use ephor_sdk::Row;
use ephor_sdk::priority::{Batch, Factor, Priority};
use hostile_faults::{Config, FLOOD_BYTES, Fault, HUGE_STRING_BYTES, text};

/// The policy.
pub struct Hostile;

impl Priority for Hostile {
    type Config = Config;

    fn prioritize<B: Batch>(jobs: &B, config: &Config) -> Vec<i64> {
        let count = jobs.count() as usize;
        match config.strike("prioritize", true) {
            Fault::Flood => vec![1; FLOOD_BYTES / 8],
            Fault::TooFew => vec![1; count.saturating_sub(1)],
            Fault::TooMany => vec![1; count + 1],
            Fault::WrongValues => (0..count).map(|row| if row % 2 == 0 { i64::MAX } else { i64::MIN }).collect(),
            _ => vec![1; count],
        }
    }

    fn explain<B: Batch>(_jobs: &B, _row: Row, config: &Config) -> Vec<Factor> {
        let factor = |how: String, value| Factor { name: "one".to_owned(), value, how };
        match config.strike("explain", false) {
            Fault::Flood => vec![factor(text(1_024), 0); FLOOD_BYTES / 1_024],
            Fault::HugeString => vec![factor(text(HUGE_STRING_BYTES), 1)],
            Fault::WrongValues => vec![factor("does not add up".to_owned(), i64::MAX); 3],
            _ => vec![factor("each job is worth the same".to_owned(), 1)],
        }
    }
}

ephor_sdk::policy!(Priority for Hostile { manifest: include_str!("../manifest.json") });
