//! Drives the same core with virtual time: traces, scenarios and reports.
