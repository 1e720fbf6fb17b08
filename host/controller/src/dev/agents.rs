//! The agents of a development cluster: real ones, as child processes, joined by tokens.

use super::child::tied;
use super::folder::Folder;
use super::{LOOK, Options};
use crate::service::{Services, new_token};
use anyhow::{Context, bail};
use ephor_core::NodeHealth;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// Longest wait for all agents to register.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// Longest wait for the agents of a run that was killed to end.
const LEFTOVER_PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait for an agent that was told to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of the end of an agent's log that are shown when it does not start.
const LOG_SHOWN: usize = 2000;

struct Agent {
    name: String,
    log: PathBuf,
    child: Child,
}

/// See the module.
#[derive(Default)]
pub(super) struct Agents(Vec<Agent>);

impl Agents {
    /// Starts all agents and waits until they have registered.
    ///
    /// # Errors
    /// One does not start; its last words are in the text.
    pub(super) async fn start(
        &mut self,
        options: &Options,
        folder: &Folder,
        services: &Services,
        address: SocketAddr,
    ) -> anyhow::Result<()> {
        let memory = memory_mib().map(|all| (all / u64::from(options.nodes)).max(64));
        for number in 1..=options.nodes {
            let name = format!("node{number}");
            let home = folder.node(&name);
            DirBuilder::new()
                .recursive(true)
                .mode(0o711)
                .create(&home)
                .with_context(|| format!("cannot make {}", home.display()))?;
            wait_for_leftover(&home).await?;
            let log = home.join("agent.log");
            let output = OpenOptions::new().create(true).append(true).open(&log)?;
            let mut command = Command::new(&options.agent);
            command
                .arg("--data")
                .arg(&home)
                .arg("--controller")
                .arg(address.to_string())
                .arg("--name")
                .arg(&name)
                .arg("--socket")
                .arg(folder.agent_socket(&name))
                .arg("--cpus")
                .arg(options.cpus_each().to_string())
                .stdin(Stdio::null())
                .stdout(output.try_clone()?)
                .stderr(output)
                // Ctrl-C in a terminal goes to its whole process group; these are told in their turn.
                .process_group(0);
            if !home.join("identity").exists() {
                let token = new_token(services, name.clone()).await.map_err(|s| anyhow::anyhow!("{}", s.message()))?.0;
                command.arg("--token-file").arg(write_private(&home.join("token"), &token)?);
            }
            if number > 1 {
                // There is one set of GPUs, and the first node has it.
                command.args(["--gpus", "none"]);
            }
            if let Some(memory) = memory {
                command.arg("--memory").arg(memory.to_string());
            }
            let child = tied(command).spawn().with_context(|| format!("cannot start {}", options.agent.display()))?;
            self.0.push(Agent { name, log, child });
        }
        self.wait_until_up(services).await
    }

    async fn wait_until_up(&mut self, services: &Services) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let state = services.handle.snapshot().state.clone();
            let up = |name: &str| state.node_by_name(name).is_some_and(|n| n.health == NodeHealth::Up);
            let connected =
                |name: &str| state.node_by_name(name).is_some_and(|n| services.sessions.heard(n.id).is_some());
            let Some(missing) = self.0.iter_mut().find(|a| !up(&a.name) || !connected(&a.name)) else { return Ok(()) };
            if let Some(status) = missing.child.try_wait()? {
                bail!("the agent of {} ended at once ({status}):\n{}", missing.name, last_words(&missing.log));
            }
            if begun.elapsed() > START_PATIENCE {
                let seconds = START_PATIENCE.as_secs();
                bail!("the agent of {} did not register in {seconds} s:\n{}", missing.name, last_words(&missing.log));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Tells of every agent that ends by itself; returns when none is left.
    ///
    /// # Errors
    /// None is left: there is nothing to run on any more.
    pub(super) async fn watch(&mut self, say: &mut (dyn FnMut(&str) + Send)) -> anyhow::Result<()> {
        while !self.0.is_empty() {
            for index in (0..self.0.len()).rev() {
                if let Some(status) = self.0[index].child.try_wait()? {
                    let gone = self.0.remove(index);
                    say(&format!("The agent of {} ended ({status}); its log: {}", gone.name, gone.log.display()));
                }
            }
            tokio::time::sleep(LOOK * 10).await;
        }
        bail!("no agent is left")
    }

    /// Tells all agents to stop and waits; their jobs live on.
    pub(super) async fn stop(&mut self) {
        for agent in &self.0 {
            if let Some(id) = agent.child.id() {
                // One that has ended needs no signal.
                let _ = kill(Pid::from_raw(id as i32), Signal::SIGTERM);
            }
        }
        for mut agent in self.0.drain(..) {
            if tokio::time::timeout(STOP_PATIENCE, agent.child.wait()).await.is_err() {
                tracing::warn!(node = agent.name, "the agent did not stop and is killed");
                // It is gone, or soon will be: nothing else can be done about it here.
                let _ = agent.child.kill().await;
            }
        }
    }
}

/// Waits until no agent holds the folder: one of a run that was killed ends by itself.
async fn wait_for_leftover(home: &Path) -> anyhow::Result<()> {
    let path = home.join("lock");
    let begun = Instant::now();
    loop {
        let Ok(file) = File::options().read(true).open(&path) else { return Ok(()) };
        if Flock::lock(file, FlockArg::LockExclusiveNonblock).is_ok() {
            return Ok(());
        }
        if begun.elapsed() > LEFTOVER_PATIENCE {
            bail!("another agent uses {}; is another 'ephor dev' running on this folder?", home.display());
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn write_private(path: &Path, text: &str) -> anyhow::Result<PathBuf> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(path.to_owned())
}

fn last_words(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&text[text.len().saturating_sub(LOG_SHOWN)..]).trim().to_owned()
}

/// Memory of this machine; `None` where it does not say.
fn memory_mib() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib / 1024)
}
