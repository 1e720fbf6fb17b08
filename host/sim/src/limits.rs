//! The bounds of a simulation, each with its unit and reason.

/// Bytes of a trace's text, unpacked: a log of two million jobs takes about 200 MiB.
pub const TRACE_BYTES: u64 = 1 << 30;
/// Processors of a simulated cluster or job: 2^24, about twice the largest machine on record.
pub const PROCESSORS: u32 = 1 << 24;
/// GPUs of one job: 2^20, above the largest training run on record.
pub const GPUS: u32 = 1 << 20;
/// Longest time of a log in seconds: 100 years, as for time limits.
pub const LOG_SECONDS: i64 = ephor_model::limits::TIME_LIMIT_MS / 1000;
