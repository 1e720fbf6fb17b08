//! The cluster as a state machine: commands become events, events fold into state, cycles become plans.
//!
//! Pure: `(state, command, now) -> events`. Whoever calls it brings the time, and time never goes back. The fold
//! ([`State::apply`]) calls no policy and no placement: events carry results.

pub mod alike;
pub mod command;
pub mod cycle;
pub mod decide;
pub mod devices;
pub mod event;
pub mod eviction;
mod fold;
mod fold_objects;
mod names;
pub mod past_use;
pub mod pools;
pub mod promise;
pub mod records;
pub mod replica;
pub mod reservations;
pub mod roles;
pub mod rows;
pub mod scheduler;
pub mod state;
mod waiting;

pub use command::{Command, Refusal, RefusalKind, Reply};
pub use devices::{DeviceFaults, DeviceOut, OnFault};
pub use event::{Event, Stamped};
pub use eviction::Eviction;
pub use promise::{LiftCause, Promise};
pub use records::{Attempt, AttemptPhase, Element, Job, Node, NodeHealth, PolicySlot};
pub use roles::{Fault, FaultKind};
pub use rows::{Row, RowKey};
pub use state::State;
