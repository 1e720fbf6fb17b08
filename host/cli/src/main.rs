//! The ephor command: what a person types, and how it is shown.
//!
//! One module for each noun. A new one is a line in [`Noun`] and a line in [`Noun::run`].

mod account;
mod amount;
mod apply;
mod backup;
mod clock;
mod completion;
mod config;
mod connect;
mod controller;
mod dev;
mod device;
mod exit;
mod export;
mod import;
mod job;
mod licence;
mod logging;
mod man;
mod node;
mod objects;
mod output;
mod policy;
mod qos;
mod queue;
mod reservation;
mod restore;
mod sim;
mod slurm;
mod status;
mod user;

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// A cycle makes and drops thousands of small things; the system's allocator takes a fifth of its time for them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Ephor: a workload manager whose policies are WebAssembly components.
#[derive(Parser)]
#[command(name = "ephor", version, max_term_width = 120, after_help = exit::HELP)]
#[command(subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    noun: Noun,
}

/// Options of every command.
#[derive(Args)]
struct Global {
    /// Print JSON: the messages of the gRPC contract as they are
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,
    /// Socket of the controller or of this node's agent
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = connect::SOCKET_VARIABLE,
        hide_env_values = true,
        help_heading = "Global options"
    )]
    socket: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Noun {
    /// Start a controller and agents on this machine, to try things out
    Dev(dev::Dev),
    /// Run the controller of a cluster
    Controller(controller::Controller),
    /// Check the controller's settings
    Config(config::Config),
    /// Submit jobs, see them and act on them
    Job(job::Job),
    /// See nodes, drain and resume them, let new ones join
    Node(node::Node),
    /// See and change queues
    Queue(queue::Queue),
    /// See and change accounts
    Account(account::Account),
    /// See and change users
    User(user::User),
    /// See and change qualities of service: priorities and limits of kinds of jobs
    Qos(qos::Qos),
    /// See and change licences: counted things that no node has
    #[command(visible_alias = "license")]
    Licence(licence::Licence),
    /// See and change reservations: nodes set aside for maintenance, users or accounts
    Reservation(reservation::Reservation),
    /// See, activate and roll back policies; build one
    Policy(policy::Policy),
    /// Make the objects of a TOML file: all of them, or none
    Apply(apply::Apply),
    /// Print all objects as a TOML file that `ephor apply` takes
    Export(export::Export),
    /// Make a file for `ephor apply` of a site's slurm.conf, and say what became of each line
    Import(import::Import),
    /// Copy the controller's state and history into a file; check and restore copies
    Backup(backup::Backup),
    /// Replay a trace under chosen policies, in virtual time
    Sim(sim::Sim),
    /// Run a command of Slurm: sbatch, squeue, ...
    Slurm(slurm::Slurm),
    /// Make links named sbatch, squeue, ... to this binary
    SlurmLinks(slurm::Links),
    /// Show how the controller is
    Status(status::Status),
    /// Print the completion script of a shell
    Completion(completion::Completion),
    /// Print the manual
    Man(man::Man),
}

impl Noun {
    fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        match self {
            Self::Dev(noun) => noun.run(),
            Self::Controller(noun) => noun.run(),
            Self::Config(noun) => noun.run(global),
            Self::Job(noun) => noun.run(global),
            Self::Node(noun) => noun.run(global),
            Self::Queue(noun) => noun.run(global),
            Self::Account(noun) => noun.run(global),
            Self::User(noun) => noun.run(global),
            Self::Qos(noun) => noun.run(global),
            Self::Licence(noun) => noun.run(global),
            Self::Reservation(noun) => noun.run(global),
            Self::Policy(noun) => noun.run(global),
            Self::Apply(noun) => noun.run(global),
            Self::Export(noun) => noun.run(global),
            Self::Import(noun) => noun.run(global),
            Self::Backup(noun) => noun.run(global),
            Self::Sim(noun) => noun.run(global),
            Self::Slurm(noun) => noun.run(),
            Self::SlurmLinks(noun) => noun.run(),
            Self::Status(noun) => noun.run(global),
            Self::Completion(noun) => noun.run(),
            Self::Man(noun) => noun.run(),
        }
    }
}

fn main() -> ExitCode {
    // Clients ask for the version in loops: answer before anything is built.
    let line: Vec<std::ffi::OsString> = std::env::args_os().collect();
    if let Some(code) = slurm::called(&line) {
        return code;
    }
    let mut args = line.iter().skip(1);
    let result = match (args.next(), args.next()) {
        (Some(only), None) if *only == "--version" || *only == "-V" => {
            output::line(concat!("ephor ", env!("CARGO_PKG_VERSION"))).map(|()| ExitCode::SUCCESS)
        }
        _ => {
            let cli = Cli::parse();
            cli.noun.run(&cli.global)
        }
    };
    result.unwrap_or_else(exit::report)
}
