//! The log of daemons, on standard error.

use anyhow::Context;
use ephor_controller::config::LogFormat;
use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// Begins to write log lines.
///
/// # Errors
/// The filter is none, or the log was started before.
pub fn start(format: LogFormat, filter: &str) -> anyhow::Result<()> {
    let filter =
        EnvFilter::try_new(filter).with_context(|| format!("'{filter}' is no log filter; write info or warn"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match format {
        LogFormat::Text => log.with_ansi(io::stderr().is_terminal()).with_target(false).try_init(),
        LogFormat::Json => log.json().try_init(),
    };
    started.map_err(|e| anyhow::anyhow!("the log cannot be started: {e}"))
}
