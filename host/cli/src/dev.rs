//! `ephor dev`.

use crate::{connect, logging, output};
use anyhow::Context;
use clap::Args;
use ephor_controller::config::LogFormat;
use ephor_controller::dev;
use std::path::PathBuf;
use std::process::ExitCode;

/// Starts a controller and real agents on this machine, with nothing to set up, until Ctrl-C.
#[derive(Args)]
pub struct Dev {
    /// Folder that keeps the cluster; default: a temporary one that goes at the end
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// How many nodes
    #[arg(long, value_name = "N", default_value_t = 2)]
    nodes: u32,
    /// Cores of each node; default: those of this machine, shared out
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,
    /// Which log lines to show: error, warn, info, debug
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log: String,
}

impl Dev {
    /// Runs the command.
    ///
    /// # Errors
    /// The controller or an agent does not start.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        logging::start(LogFormat::Text, &self.log)?;
        let own = std::env::current_exe().context("cannot find out where ephor lies")?;
        let options = dev::Options {
            data: self.data,
            nodes: self.nodes,
            cpus: self.cpus,
            links: connect::dev_sockets(),
            agent: own.with_file_name("ephor-agent"),
        };
        dev::run(&options, &mut |line| {
            // Whoever closed the terminal reads no more.
            let _ = output::line(line);
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
