//! What a policy for Ephor is written with: one trait per role, typed configuration, logging, test doubles.
//!
//! A policy is a type that implements the trait of its role, and one line that makes a component of it:
//!
//! ```
//! use ephor_sdk::scheduling::{Cycle, Scheduling, Scope, StopRule};
//!
//! /// Starts what fits, in order, and passes over what does not.
//! pub struct Greedy;
//!
//! impl Scheduling for Greedy {
//!     type Config = ephor_sdk::NoConfig;
//!
//!     fn schedule<C: Cycle>(cycle: &C, _config: &Self::Config) {
//!         let jobs = cycle.next(Scope::All, None, 1_000);
//!         cycle.start_in_order(&jobs, &cycle.placing(), StopRule::EndOfList);
//!     }
//! }
//!
//! # #[cfg(any())]
//! ephor_sdk::policy!(Scheduling for Greedy { manifest: include_str!("../manifest.json") });
//! ```
//!
//! The traits stand between a policy and the host, so that the same code runs natively against the doubles in
//! [`testing`]. `ephor-policy-build` turns the crate into a component.

pub mod accounting;
pub mod admission;
pub mod authentication;
mod bindings;
pub mod config;
pub mod directory;
#[doc(hidden)]
pub mod guest;
#[cfg(any(target_arch = "wasm32", test))]
mod heap;
pub mod log;
pub mod names;
mod need;
pub mod priority;
pub mod scheduling;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod text;

pub use bindings::host::ephor::types::types::{Amount, Identity};
pub use config::NoConfig;
pub use need::need;

#[cfg(target_arch = "wasm32")]
#[global_allocator]
static HEAP: heap::Heap = heap::Heap::new();

/// Milliseconds since 1970-01-01 UTC; in a simulation, since the start of the trace.
pub type Timestamp = i64;
/// Milliseconds.
pub type Duration = i64;
/// An interned resource: 0 `cpu` (millicores), 1 `mem` (MiB), 2 `gpu` (thousandths), 3 `gpu.mem` (MiB), 4 `node`.
pub type ResourceId = u16;
/// A row of one of a call's tables. It means something during that call only.
pub type Row = u32;
