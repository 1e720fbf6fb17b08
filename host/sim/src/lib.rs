//! Drives the same core with virtual time: traces, scenarios and reports.
//!
//! [`simulate::simulate`] does it all: [`swf`] reads a log, [`workload`] makes jobs of it, [`driver`] runs them against
//! the core and the [`policies`], [`report`] says in numbers how it went. [`auditor`] checks the event log of a run.

pub mod auditor;
pub mod driver;
pub mod fnv;
pub mod limits;
pub mod metrics;
pub mod policies;
pub mod read;
pub mod report;
pub mod settings;
pub mod simulate;
pub mod swf;
pub mod timeline;
pub mod workload;
