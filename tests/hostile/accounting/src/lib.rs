//! Misbehaves in the role accounting as its configuration says.

use ephor_sdk::Timestamp;
use ephor_sdk::accounting::{Accounting, Allowance, Batch, Fading};
use hostile_faults::{Config, FLOOD_BYTES, Fault};

/// The policy.
pub struct Hostile;

impl Accounting for Hostile {
    type Config = Config;

    fn charge<B: Batch>(ended: &B, config: &Config) -> Vec<i64> {
        let count = ended.count() as usize;
        match config.strike("charge", true) {
            Fault::Flood => vec![1; FLOOD_BYTES / 8],
            Fault::TooFew => vec![1; count.saturating_sub(1)],
            Fault::TooMany => vec![1; count + 1],
            Fault::WrongValues => vec![-1; count],
            _ => vec![1; count],
        }
    }

    fn allowances(_now: Timestamp, config: &Config) -> Vec<Allowance> {
        let row = |remaining| Allowance { account: Some(u32::MAX), user: None, id: u16::MAX, remaining };
        match config.strike("allowances", false) {
            Fault::Flood => vec![row(1); FLOOD_BYTES / size_of::<Allowance>()],
            Fault::WrongValues => vec![row(i64::MIN)],
            Fault::DuplicateIds => vec![row(1), row(2)],
            _ => Vec::new(),
        }
    }

    fn decay(config: &Config) -> Fading {
        match config.strike("decay", false) {
            Fault::WrongValues => Fading { period: -1, factor: u64::MAX },
            _ => Fading { period: 0, factor: 1 << 32 },
        }
    }
}

ephor_sdk::policy!(Accounting for Hostile { manifest: include_str!("../manifest.json") });
