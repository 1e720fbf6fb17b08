//! Drives the same core with virtual time: traces, scenarios and reports.
//!
//! [`simulate::simulate`] does it all: [`trace`] reads a log of any kind, [`cluster`] the nodes, [`workload`] makes jobs,
//! [`driver`] runs them against the core and the [`policies`], [`report`] says in numbers how it went. [`auditor`] checks
//! the event log of a run.

pub mod auditor;
pub mod cluster;
pub mod compare;
pub mod csv;
pub mod driver;
pub mod eventlog;
pub mod fill;
pub mod fnv;
pub mod gpus;
pub mod html;
pub mod limits;
pub mod line;
pub mod metrics;
pub mod openb;
pub mod philly;
pub mod policies;
pub mod queues;
pub mod read;
pub mod report;
pub mod scenarios;
pub mod settings;
pub mod shake;
pub mod simulate;
pub mod sweep;
pub mod swf;
pub mod timeline;
pub mod trace;
pub mod workload;
