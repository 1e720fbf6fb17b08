//! Takes all the memory there is while it starts.

use ephor_sdk::scheduling::{Cycle, Scheduling};
use hostile_faults::Config;

/// The policy.
pub struct Hostile;

impl Scheduling for Hostile {
    type Config = Config;

    fn schedule<C: Cycle>(_cycle: &C, _config: &Config) {}
}

/// Runs while the component is instantiated.
#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code, reason = "the name is what makes it the start")]
#[unsafe(no_mangle)]
pub extern "C" fn _initialize() {
    hostile_faults::bomb()
}

ephor_sdk::policy!(Scheduling for Hostile { manifest: include_str!("../manifest.json") });
