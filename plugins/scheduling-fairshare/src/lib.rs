//! Queues that share a cluster fairly: each has what it is promised, what is over goes by priority and weight, and who
//! holds more than its share gives it back.
//!
//! A cycle reads the queues, works out fair shares from the top down, starts what fits in the order of need
//! (`allocate`), moves running jobs together (`consolidate`), lets queues take back what is theirs (`reclaim`) and lets
//! urgent jobs take the place of others of their queue (`preempt`). Whatever takes victims is tried on the cycle's copy
//! first and kept whole or not at all. `docs/policies/fairshare.md` says it for people.

mod allocate;
mod config;
mod consolidate;
mod order;
mod pass;
mod preempt;
mod reclaim;
mod search;
mod share;
mod tree;
mod victims;
mod words;
mod world;

use ephor_sdk::names::{Kind, Names};
use ephor_sdk::scheduling::{Cycle, Refusal, Scheduling, lift_promises};

use pass::Pass;
use words::Words;
use world::World;

pub use config::{Action, Config, Resource};

/// The policy.
pub struct Fairshare;

impl Scheduling for Fairshare {
    type Config = Config;

    fn schedule<C: Cycle>(cycle: &C, config: &Config) {
        if let Err(Refusal::Other(why)) = run(cycle, config, &ephor_sdk::names::HostNames) {
            ephor_sdk::log::error(&format!("no cycle: {why}"));
        }
    }
}

/// One cycle, with names from there.
///
/// # Errors
/// The work of the call is used up, and what was done stands; or the host lacks something that this policy needs.
pub fn run<C: Cycle>(cycle: &C, config: &Config, names: &impl Names) -> Result<(), Refusal> {
    // This policy gives none; those of another one would be in its way.
    lift_promises(cycle)?;
    let world = World::read(cycle, config)?;
    let words = Words::new(config, names.names(Kind::Queue, &world.queue_ids));
    Pass::new(cycle, config, words, world).run()
}

ephor_sdk::policy!(Scheduling for Fairshare { manifest: include_str!("../manifest.json") });
