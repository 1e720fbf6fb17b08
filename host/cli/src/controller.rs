//! `ephor controller`: the daemon.

use crate::logging;
use clap::Args;
use ephor_controller::Config;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the controller of a cluster until SIGTERM or Ctrl-C.
#[derive(Args)]
pub struct Controller {
    /// Settings; default: /etc/ephor/controller.toml where it is there, else built-in defaults
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Go on from a restored backup, with an epoch above every agent's
    #[arg(long)]
    recover: bool,
}

impl Controller {
    /// Runs the command.
    ///
    /// # Errors
    /// The settings are wrong, the controller cannot start, or a commit failed.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let config = Config::load(self.config.as_deref())?;
        logging::start(config.log_format, &config.log_filter)?;
        ephor_controller::run(&config, self.recover, |_| {})?;
        Ok(ExitCode::SUCCESS)
    }
}
