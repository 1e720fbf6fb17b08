//! Loads, checks, links, calls and bounds the WebAssembly components that fill the policy roles.
//!
//! [`Host::prepare`] takes a component from its bytes to a trial start; [`Prepared::activate`] makes it a generation,
//! [`Loaded`], whose per-role types implement the traits of `ephor_core::roles`. [`Slots`] holds the generations in
//! charge. Each call has a fresh instance with fuel, memory, output, host work and log of its own.

mod accounting;
mod admission;
mod ahead;
mod authentication;
mod bindings;
pub mod bounds;
pub mod builtin;
mod cache;
mod call;
mod check;
mod engine;
mod error;
mod fault;
mod gate;
mod host;
mod imports;
mod inspect;
mod limiter;
mod loaded;
mod manifest;
mod priority;
mod scheduling;
mod schema;
mod slots;
mod stats;

pub use cache::CacheError;
pub use engine::Allocation;
pub use error::LoadError;
pub use host::{Directory, DirectoryUser, Host, Names, NoDirectory, Prepared, Request, Services};
pub use inspect::{MANIFEST_SECTION, Surface};
pub use loaded::{About, Loaded};
pub use manifest::{Fuel, Manifest};
pub use scheduling::Scheduler;
pub use slots::{FAULTS_BEFORE_REST, Pick, Slots};
pub use stats::{PastFault, Snapshot};
