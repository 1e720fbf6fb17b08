//! The command line of `ephor-agent`: reads what it is told, joins once, and serves until it is stopped.

use crate::config::Config;
use crate::confine::{self, Wanted};
use crate::epoch::EpochKeeper;
use crate::facts::Facts;
use crate::gpu::{Gpus, Source};
use crate::identity::{Identity, Joining};
use crate::node::{Launching, Node, probe};
use crate::nodes::Nodes;
use crate::relay::Socket;
use crate::reports::Reports;
use crate::session;
use crate::simulate::{Scene, Simulation};
use crate::spool::Spool;
use crate::token::Token;
use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs::File;
use std::io::IsTerminal;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tonic::transport::Endpoint;

/// Runs the jobs of one node of an Ephor cluster.
///
/// The first start joins with a token from `ephor node token`; later ones need none. Stopping the agent (Ctrl-C,
/// SIGTERM, even SIGKILL) leaves its jobs running; the next start takes them over.
#[derive(Debug, Parser)]
#[command(name = "ephor-agent", version)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// About the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Reads the configuration, shows what it comes to with all defaults, and starts nothing.
    Check,
}

#[derive(Debug, Args)]
struct Options {
    /// Configuration file (TOML); the options below go before it.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Folder of the agent's own files: identity, spool, epoch.
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
    /// Join token, needed once. Others can see command lines: prefer --token-file.
    #[arg(long, value_name = "TOKEN", env = "EPHOR_JOIN_TOKEN", hide_env_values = true, global = true)]
    join: Option<String>,
    /// File with the join token.
    #[arg(long, value_name = "FILE", global = true)]
    token_file: Option<PathBuf>,
    /// Name of the node; default: the host's.
    #[arg(long, value_name = "NODE", global = true)]
    name: Option<String>,
    /// Local socket for users; default: agent.sock in the data folder.
    #[arg(long, value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
    /// Address of the controller, instead of the token's.
    #[arg(long, value_name = "HOST:PORT", global = true)]
    controller: Option<String>,
    /// A feature that requests may ask for; may be given several times.
    #[arg(long, value_name = "FEATURE", global = true)]
    feature: Vec<String>,
    /// Cores to offer; default: all.
    #[arg(long, value_name = "N", global = true)]
    cpus: Option<u32>,
    /// Memory to offer; default: all.
    #[arg(long, value_name = "MIB", global = true)]
    memory: Option<u64>,
    /// How an attempt's processes are kept together.
    #[arg(long, value_name = "WAY", global = true)]
    confine: Option<Wanted>,
    /// Where the node's GPUs are known from.
    #[arg(long, value_name = "SOURCE", global = true)]
    gpus: Option<Source>,
    /// Hosts the virtual nodes of this file (TOML); their jobs sleep instead of run.
    #[arg(long, value_name = "FILE", global = true)]
    simulate: Option<PathBuf>,
}

impl Options {
    fn config(&self) -> anyhow::Result<Config> {
        let mut config = self.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
        fn over<T: Clone>(value: &mut Option<T>, option: &Option<T>) {
            if option.is_some() {
                value.clone_from(option);
            }
        }
        over(&mut config.data, &self.data);
        over(&mut config.token_file, &self.token_file);
        over(&mut config.name, &self.name);
        over(&mut config.socket, &self.socket);
        over(&mut config.controller, &self.controller);
        over(&mut config.cpus, &self.cpus);
        over(&mut config.memory_mib, &self.memory);
        over(&mut config.simulate, &self.simulate);
        config.confine = self.confine.unwrap_or(config.confine);
        config.gpus.source = self.gpus.unwrap_or(config.gpus.source);
        config.features.extend(self.feature.iter().cloned());
        Ok(config)
    }
}

/// Runs `ephor-agent`; exit code 0: stopped on request, 1: an error, 2: a wrong command line.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("ephor-agent: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    let facts = Facts::find()?;
    let config = cli.options.config()?.settle(&facts)?;
    if let Some(Command::Config(ConfigCommand::Check)) = cli.command {
        if let Some(path) = &config.simulate {
            Scene::read(path)?;
        }
        print!("{}", toml::to_string_pretty(&config)?);
        return Ok(());
    }
    let filter = std::env::var("EPHOR_LOG").unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::try_new(&filter).context("EPHOR_LOG is no log filter")?)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
    let token = match &cli.options.join {
        Some(text) => Some(Token::parse(text)?),
        None => config.token()?,
    };
    // One thread is enough: everything slow happens on the launcher's.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(agent(&config, &facts, token.as_ref()))
}

async fn agent(config: &Config, facts: &Facts, token: Option<&Token>) -> anyhow::Result<()> {
    // Both are always there once settled.
    let (Some(data), Some(socket)) = (&config.data, &config.socket) else { bail!("the configuration is not settled") };
    let _lock = open_data(data)?;
    let scene = config.simulate.as_deref().map(Scene::read).transpose()?;
    let identity = identity(config, data, token).await?;
    let endpoint = identity.endpoint(config.controller.as_deref())?;
    let mut epoch = EpochKeeper::open(data)?;
    let reports = Reports::open(data)?;
    let relay = Socket::open(socket)?;
    tracing::info!(node = identity.node, socket = %socket.display(), "ephor-agent {}", env!("CARGO_PKG_VERSION"));
    let relay_endpoint = endpoint.clone();
    tokio::spawn(async move {
        if let Err(e) = relay.serve(&relay_endpoint).await {
            tracing::error!("{e:#}; users on this node cannot submit until the agent is restarted");
        }
    });
    match scene {
        Some(scene) => {
            let mut simulation = Simulation::new(scene, &identity.node, reports);
            serve(&endpoint, &mut simulation, &mut epoch).await?;
        }
        None => {
            let spool = Spool::open(data, &facts.boot_id)?;
            let busy = !spool.attempts()?.is_empty();
            let gpus = Gpus::find(&config.gpus, &config.gpu, data, &facts.boot_id, busy)?;
            let launching = launching(config, data, socket, &gpus)?;
            let groups = launching.confinement.clone();
            let introduction = config.introduction(&identity.node, facts, gpus.devices());
            let news = gpus.watch(&identity.node)?;
            let mut node = Node::open(introduction, spool, reports, launching)?;
            node.watch_gpus(news);
            serve(&endpoint, &mut node, &mut epoch).await?;
            // Stays while attempts run in it.
            groups.remove();
        }
    }
    // Gone already, or in the way of nobody: the next start replaces it.
    let _ = std::fs::remove_file(socket);
    Ok(())
}

async fn serve(endpoint: &Endpoint, nodes: &mut impl Nodes, epoch: &mut EpochKeeper) -> anyhow::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let stop = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    session::serve(endpoint, nodes, epoch, stop).await;
    tracing::info!("stopped; {} running attempts go on", nodes.running());
    Ok(())
}

/// Makes and locks the data folder: two agents in one would take each other's attempts.
fn open_data(data: &Path) -> anyhow::Result<Flock<File>> {
    // Others may pass through: the local socket and the scripts of jobs lie inside.
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o711).create(data);
    made.with_context(|| format!("cannot make the data folder {}", data.display()))?;
    let path = data.join("lock");
    let lock = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    Flock::lock(lock, FlockArg::LockExclusiveNonblock).map_err(|_| {
        anyhow::anyhow!("another agent uses {}: stop it, or choose another folder with --data", data.display())
    })
}

async fn identity(config: &Config, data: &Path, token: Option<&Token>) -> anyhow::Result<Identity> {
    let name = config.name.as_deref().unwrap_or_default();
    let simulate = config.simulate.is_some();
    let Some(identity) = Identity::load(data)? else {
        let Some(token) = token else {
            bail!(
                "this node has not joined a cluster: get a token with `ephor node token {name}` and pass it with --join"
            );
        };
        let joining = Joining { token, node: name, simulate, address: config.controller.as_deref() };
        let identity = Identity::join(data, &joining).await?;
        tracing::info!(node = identity.node, address = identity.address, "joined");
        return Ok(identity);
    };
    let folder = data.join("identity");
    if token.is_some_and(|token| !identity.belongs_with(token)) {
        bail!(
            "the token is from another controller than the one joined before: remove {} to join anew",
            folder.display()
        );
    }
    if identity.simulate != simulate {
        bail!(
            "{} was joined {} --simulate: use another data folder",
            folder.display(),
            if simulate { "without" } else { "with" }
        );
    }
    if identity.node != name {
        tracing::warn!("this node is called {}, as it joined, not {name}", identity.node);
    }
    Ok(identity)
}

fn launching(config: &Config, data: &Path, socket: &Path, gpus: &Gpus) -> anyhow::Result<Launching> {
    let own = std::env::current_exe().context("cannot find out where ephor-agent lies")?;
    let shim = own.with_file_name("ephor-shim");
    if !shim.exists() {
        bail!("{} is missing; it belongs beside ephor-agent", shim.display());
    }
    let chosen = confine::choose(config.confine, data, |group| probe(&shim, group))?;
    for note in &chosen.notes {
        tracing::warn!("attempts are confined less well than they could be: {note}");
    }
    tracing::info!("attempts are kept together by: {}", chosen.base);
    // Each attempt costs a descriptor here. Jobs get the limit that the agent was started with.
    let (open_files, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    let socket = std::path::absolute(socket)?;
    Ok(Launching { shim, socket, confinement: chosen.base, gpus: gpus.visibility().clone(), open_files })
}
