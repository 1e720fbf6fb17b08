//! The node daemon: launches, watches, confines and reports the attempts of one node.
//!
//! `ephor-agent` keeps one stream to the controller ([`session`]) and turns what it hears into attempts of a real node
//! ([`node`]) or of virtual ones ([`simulate`]). Each attempt is held by its own small process, `ephor-shim`
//! ([`shim`]); the two meet in a folder of the disk ([`spool`]), so that either can go on without the other.

pub mod backoff;
pub mod cli;
pub mod config;
pub mod confine;
pub mod epoch;
pub mod facts;
pub mod files;
pub mod gpu;
pub mod identity;
pub mod limits;
pub mod node;
pub mod nodes;
pub mod relay;
pub mod reports;
pub mod session;
pub mod shim;
pub mod simulate;
pub mod spool;
pub mod sys;
pub mod token;
