//! `ephor dev`: a controller in this process and real agents beside it, on one machine, with nothing to set up.
//!
//! With a data folder the cluster goes on where it stopped, and its jobs live on meanwhile. Without one everything is
//! temporary: stopping ends the jobs and removes the folder.

mod agents;
mod child;
mod folder;
mod link;

use crate::config::Config;
use crate::daemon::{self, Controller};
use crate::handle::Handle;
use agents::Agents;
use anyhow::{bail, ensure};
use ephor_core::Command;
use ephor_core::command::{Action, system};
use folder::Folder;
use link::Link;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// Most agents of one machine.
const NODES: u32 = 64;
/// Longest wait for the jobs of a temporary cluster to end.
const END_PATIENCE: Duration = Duration::from_secs(10);
/// SIGTERM to SIGKILL for jobs here: nobody wants to wait 30 seconds at a desk.
const GRACE: Duration = Duration::from_secs(5);
/// Between two looks at the state.
const LOOK: Duration = Duration::from_millis(20);

/// What `ephor dev` is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the cluster lives; `None`: a temporary folder.
    pub data: Option<PathBuf>,
    /// How many nodes.
    pub nodes: u32,
    /// Cores of each; `None`: those of the machine, shared out.
    pub cpus: Option<u32>,
    /// Where a link to the socket is kept for the command line: the first that can be made.
    pub links: Vec<PathBuf>,
    /// The agent's program.
    pub agent: PathBuf,
}

impl Options {
    /// Cores of each node.
    fn cpus_each(&self) -> u32 {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        self.cpus.unwrap_or_else(|| (cores / self.nodes).max(1))
    }
}

/// Runs until Ctrl-C or SIGTERM. `say` gets the lines for the person who started it.
///
/// # Errors
/// The controller or an agent does not start, or a commit failed.
pub fn run(options: &Options, say: &mut (dyn FnMut(&str) + Send)) -> anyhow::Result<()> {
    ensure!((1..=NODES).contains(&options.nodes), "--nodes takes 1 to {NODES}, not {}", options.nodes);
    ensure!(options.cpus != Some(0), "--cpus takes at least 1");
    if !options.agent.exists() {
        bail!("{} is missing; it belongs beside ephor", options.agent.display());
    }
    let folder = Folder::open(options.data.as_deref())?;
    let runtime = daemon::runtime()?;
    // On this thread, and not on a worker: agents end when the thread that started them does.
    let outcome = runtime.block_on(cluster(options, &folder, say));
    runtime.shutdown_timeout(Duration::from_secs(2));
    outcome
}

async fn cluster(options: &Options, folder: &Folder, say: &mut (dyn FnMut(&str) + Send)) -> anyhow::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let config = Config {
        cluster_name: "dev".into(),
        data_folder: folder.path().join("controller"),
        socket_path: folder.socket(),
        agents_listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        launch_grace: GRACE,
        ..Config::default()
    };
    let controller = Controller::start(&config, false).await?;
    let link = Link::make(&options.links, &config.socket_path);
    let mut agents = Agents::default();
    let (services, address) = (controller.services.clone(), controller.agents_address);
    let mut outcome = Ok(());
    let running = async {
        let work = async {
            agents.start(options, folder, &services, address).await?;
            greet(options, folder, link.as_ref(), say);
            agents.watch(say).await
        };
        outcome = tokio::select! {
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
            ended = work => ended,
        };
        if folder.is_temporary() {
            end_jobs(&services.handle).await;
        }
        agents.stop().await;
    };
    let served = controller.until(running).await;
    // Once more, for a controller that failed before it was stopped.
    agents.stop().await;
    served.and(outcome)
}

fn greet(options: &Options, folder: &Folder, link: Option<&Link>, say: &mut (dyn FnMut(&str) + Send)) {
    let (nodes, cpus) = (options.nodes, options.cpus_each());
    let many = |n: u32, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    say(&format!("Ephor runs here with {} of {}.", many(nodes, "node"), many(cpus, "core")));
    let path = folder.path().display();
    say(&match folder.is_temporary() {
        true => format!("Everything lies in {path} and goes at the end; --data DIR keeps it."),
        false => {
            format!("Everything lies in {path}; jobs live on when this stops, and the next start takes them over.")
        }
    });
    say("Try in another terminal:");
    if link.is_none() {
        say(&format!("  export EPHOR_SOCKET={}", folder.socket().display()));
    }
    say("  ephor node list");
    say("  ephor job submit -- sh -c 'echo hello from $(hostname)'");
    say("  ephor job list --all");
    say("  ephor policy list");
    say("Ctrl-C stops it.");
}

/// Ends every job of a temporary cluster and waits until none holds anything.
async fn end_jobs(handle: &Handle) {
    let state = handle.snapshot().state.clone();
    for (first, entry) in state.jobs.iter().filter(|(_, entry)| entry.unfinished > 0) {
        let whole = entry.job.spec.array.is_some();
        let command = Command::Act { action: Action::Cancel, job: *first, whole, by: system() };
        // What ended meanwhile refuses, and that is as good.
        let _ = handle.run(command).await;
    }
    let begun = Instant::now();
    while !handle.snapshot().state.attempts.is_empty() && begun.elapsed() < END_PATIENCE {
        tokio::time::sleep(LOOK).await;
    }
}
