//! The controller daemon: sequencer, scheduler thread, agent sessions and services.
//!
//! [`daemon`] puts the parts together. [`sequencer`] is the one thread that changes the state; [`scheduling`] follows it
//! and makes plans; [`sessions`] talks to agents; [`service`] answers people and clients, whom [`access`] asks the
//! authentication policy about. [`policies`] holds the generations in force.

pub mod access;
mod accounting;
mod agents_service;
mod archive;
pub mod config;
pub mod counters;
pub mod daemon;
pub mod dev;
pub mod devices;
pub mod directory;
pub mod feasibility;
mod first_start;
pub mod handle;
mod history;
mod launch;
mod listen;
pub mod metrics;
pub mod peer;
pub mod policies;
pub mod pool;
pub mod restore;
pub mod scheduling;
pub mod sequencer;
pub mod service;
pub mod sessions;
pub mod steps;
pub mod trust;

pub use config::Config;
pub use daemon::{Controller, run};
