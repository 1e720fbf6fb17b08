//! Puts the controller together, runs it, and stops it.

use crate::access::Access;
use crate::agents_service::AgentService;
use crate::config::{Config, OnSchedulingFailure};
use crate::counters::Counters;
use crate::directory::NameService;
use crate::feasibility::Feasibility;
use crate::handle::{Clock, Handle, Snapshot};
use crate::listen::{self, LocalSocket};
use crate::policies::Policies;
use crate::pool::Pool;
use crate::scheduling::{self, SchedulingSettings};
use crate::sequencer::Sequencer;
use crate::service::{Services, UserService};
use crate::sessions::{SessionSettings, Sessions};
use crate::trust::Authority;
use crate::{accounting, first_start, history, metrics};
use anyhow::Context;
use arc_swap::ArcSwap;
use ephor_core::Command;
use ephor_model::{Role, Span, limits};
use ephor_policy::{Host, Services as PolicyServices, bounds};
use ephor_store::{History, LiveStore, OpenOptions, Reader, Retention, Store, StoreError};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tonic::transport::{Identity, Server, ServerTlsConfig};

/// Async workers: they only move messages; everything that computes has threads of its own.
const WORKERS: usize = 2;
/// Longest wait for calls in progress when the controller stops.
const LAST_CALLS: Duration = Duration::from_secs(2);
/// Calls in progress on one connection; an agent's relays those of all users of its node.
const CALLS_PER_CONNECTION: u32 = 4096;
/// A connection that does not answer a ping within this long is closed.
const PING: Duration = Duration::from_secs(20);

/// A running controller.
pub struct Controller {
    /// What the services work with.
    pub services: Arc<Services>,
    /// Where agents connect.
    pub agents_address: SocketAddr,
    /// Where the metrics page is.
    pub metrics_address: Option<SocketAddr>,
    /// The users' socket.
    pub socket_path: PathBuf,
    socket: LocalSocket,
    stop: watch::Sender<bool>,
    servers: Vec<JoinHandle<anyhow::Result<()>>>,
    tasks: Vec<JoinHandle<()>>,
    failed: oneshot::Receiver<StoreError>,
}

/// The runtime that a controller wants.
///
/// # Errors
/// The system has no threads left.
pub fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(WORKERS).thread_name("controller").enable_all().build()
}

/// Runs a controller until SIGTERM or Ctrl-C. `ready` is called when callers are answered.
///
/// # Errors
/// It could not start, or a commit failed: what was acknowledged is safe, and the next start goes on from it.
pub fn run(config: &Config, recover: bool, ready: impl FnOnce(&Controller)) -> anyhow::Result<()> {
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let controller = Controller::start(config, recover).await?;
        ready(&controller);
        controller
            .until(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            })
            .await
    });
    // Calls of policies that still run are bounded; nobody waits for their answers any more.
    runtime.shutdown_timeout(LAST_CALLS);
    outcome
}

impl Controller {
    /// Opens the data folder, begins a new epoch and answers callers.
    ///
    /// # Errors
    /// The folder is in use or damaged, an address is taken, or the state cannot be written.
    pub async fn start(config: &Config, recover: bool) -> anyhow::Result<Self> {
        raise_open_files();
        let (folder, cluster) = (config.data_folder.clone(), config.cluster_name.clone());
        let store = LiveStore::open(&folder, &OpenOptions { recover, ..OpenOptions::default() })?;
        // Whatever else can be wrong is found out before anything is written.
        let socket = LocalSocket::open(&config.socket_path, config.socket_mode)?;
        let agents = listen::port("agents_listen", config.agents_listen).await?;
        let metrics = match config.metrics_listen {
            Some(address) => Some(listen::port("metrics_listen", address).await?),
            None => None,
        };
        let authority = Arc::new(Authority::load_or_create(&folder.join("trust"))?);
        let history = Arc::new(History::open(&folder)?);
        let loaded = store.load().context("reading the state")?;
        let reader = store.reader();

        let counters = Arc::new(Counters::default());
        let clock = Arc::new(Clock::starting_at(loaded.state.meta.now));
        let snapshot = Arc::new(ArcSwap::from_pointee(Snapshot { state: loaded.state.clone() }));
        let (asks, asked) = mpsc::channel(limits::SEQUENCER_QUEUE);
        let (mail, mailbox) = std::sync::mpsc::channel();
        let handle = Handle {
            asks,
            snapshot: snapshot.clone(),
            notes: Arc::default(),
            reports: Arc::default(),
            scheduler: mail.clone(),
            counters: counters.clone(),
            clock: clock.clone(),
        };
        let sessions = start_sessions(config, reader.clone(), counters.clone());
        let (fail, failed) = oneshot::channel();
        let sequencer = Sequencer {
            store: Box::new(store),
            retention: Retention { bytes: config.event_retention_bytes, age: None },
            state: loaded.state,
            asks: asked,
            snapshot,
            scheduler: mail,
            sessions: sessions.clone(),
            counters,
            clock,
        };
        thread("sequencer", move || {
            if let Err(error) = sequencer.run() {
                // A controller that is stopping already needs no reason.
                let _ = fail.send(error);
            }
        })?;
        let at_least = loaded.recover_at.map_or(0, |epoch| epoch.0);
        handle.run(Command::BeginEpoch { at_least }).await.context("beginning the new epoch")?;

        let policies = load_policies(config, &handle, reader.clone()).await?;
        first_start::fill(&handle, &policies).await?;
        start_scheduler(config, &handle, mailbox, policies.clone())?;

        let agents_address = agents.local_addr()?;
        let metrics_address = metrics.as_ref().map(|m| m.local_addr()).transpose()?;
        let advertised = Config { agents_listen: agents_address, ..config.clone() }.advertised_address();
        let services = Arc::new(Services {
            access: Access::start(policies.clone(), handle.clone())?,
            policies: policies.clone(),
            history: history.clone(),
            store: reader,
            sessions: sessions.clone(),
            authority: authority.clone(),
            feasibility: Arc::new(Feasibility::default()),
            admission: Pool::start("admission", Pool::threads())?,
            queries: Pool::start("queries", Pool::threads())?,
            agents_address: advertised,
            data_folder: folder,
            cluster,
            started: handle.now(),
            copying: Arc::default(),
            handle: handle.clone(),
        });
        let mut tasks = vec![
            tokio::spawn(sessions.clone().watch(handle.clone())),
            tokio::spawn(accounting::run(policies, handle.clone())),
            tokio::spawn(history::run(history, handle.clone(), Span(config.min_job_age.as_millis() as i64))),
        ];
        tasks.extend(metrics.map(|listener| tokio::spawn(metrics::serve(listener, services.clone()))));
        let (stop, stopping) = watch::channel(false);
        let mut controller = Self {
            agents_address,
            metrics_address,
            socket_path: config.socket_path.clone(),
            socket,
            stop,
            servers: Vec::new(),
            tasks,
            failed,
            services,
        };
        controller.serve(agents, &authority, &stopping)?;
        tracing::info!(
            epoch = handle.snapshot().state.meta.epoch.0,
            socket = %controller.socket_path.display(),
            agents = %controller.agents_address,
            "ephor controller {} is ready",
            env!("CARGO_PKG_VERSION")
        );
        Ok(controller)
    }

    fn serve(
        &mut self,
        agents: tokio::net::TcpListener,
        authority: &Arc<Authority>,
        stopping: &watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        let services = self.services.clone();
        if let Some(incoming) = self.socket.incoming() {
            let server = builder().add_service(UserService::server(services.clone()));
            let stopped = stopped(stopping.clone());
            self.servers.push(tokio::spawn(async move {
                server.serve_with_incoming_shutdown(incoming, stopped).await.context("serving users")
            }));
        }
        let own = authority.controller_identity()?;
        let tls = ServerTlsConfig::new()
            .identity(Identity::from_pem(&own.certificate, &own.key))
            .client_ca_root(tonic::transport::Certificate::from_pem(authority.certificate()))
            // Whoever joins has no certificate yet; every other call asks for one.
            .client_auth_optional(true)
            .timeout(PING);
        let handle = services.handle.clone();
        let server = builder()
            .tls_config(tls)
            .context("setting up TLS")?
            .add_service(AgentService::server(handle, services.sessions.clone(), authority.clone()))
            .add_service(UserService::server(services));
        let incoming = listen::connections(agents);
        let stopped = stopped(stopping.clone());
        self.servers.push(tokio::spawn(async move {
            server.serve_with_incoming_shutdown(incoming, stopped).await.context("serving agents")
        }));
        Ok(())
    }

    /// Runs until `stop` resolves, then stops taking calls, lets those in progress end, and closes.
    ///
    /// # Errors
    /// A commit failed, or a server broke.
    pub async fn until(mut self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let outcome = {
            let servers = self.servers.iter_mut();
            let broken = first_ended(servers);
            tokio::select! {
                () = stop => Ok(()),
                failed = &mut self.failed => Err(match failed {
                    Ok(error) => anyhow::Error::new(error).context("a commit failed"),
                    Err(_) => anyhow::anyhow!("the thread that changes the state is gone"),
                }),
                error = broken => Err(error),
            }
        };
        tracing::info!("stopping");
        // Nobody listens any more: then there is nothing to stop.
        let _ = self.stop.send(true);
        let patience = tokio::time::sleep(LAST_CALLS);
        tokio::pin!(patience);
        for server in &mut self.servers {
            tokio::select! {
                _ = &mut *server => {}
                // Sessions of agents have no end of their own.
                () = &mut patience => server.abort(),
            }
        }
        self.tasks.iter().for_each(JoinHandle::abort);
        drop(self.socket);
        outcome
    }
}

/// The first server that ends although nobody stopped it.
async fn first_ended<'a>(servers: impl Iterator<Item = &'a mut JoinHandle<anyhow::Result<()>>>) -> anyhow::Error {
    let mut servers: Vec<_> = servers.collect();
    let ended = std::future::poll_fn(move |context| {
        for server in &mut servers {
            if let std::task::Poll::Ready(ended) = std::pin::Pin::new(&mut **server).poll(context) {
                return std::task::Poll::Ready(ended);
            }
        }
        std::task::Poll::Pending
    });
    match ended.await {
        Ok(Ok(())) => anyhow::anyhow!("a server ended by itself"),
        Ok(Err(error)) => error,
        Err(error) => anyhow::Error::new(error).context("a server failed"),
    }
}

async fn stopped(mut stopping: watch::Receiver<bool>) {
    // An error means that the controller is gone: stop as well.
    let _ = stopping.wait_for(|stop| *stop).await;
}

fn builder() -> Server {
    Server::builder()
        .max_concurrent_streams(CALLS_PER_CONNECTION)
        .http2_keepalive_interval(Some(PING))
        .http2_keepalive_timeout(Some(PING))
}

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.into()).spawn(run).map(drop)
}

fn start_sessions(config: &Config, reader: Arc<dyn Reader>, counters: Arc<Counters>) -> Arc<Sessions> {
    let settings = SessionSettings {
        cluster: config.cluster_name.clone(),
        grace: config.launch_grace,
        silence: config.node_silence,
        on_gpu_fault: config.on_gpu_fault,
    };
    Sessions::start(settings, reader, counters)
}

async fn load_policies(config: &Config, handle: &Handle, reader: Arc<dyn Reader>) -> anyhow::Result<Arc<Policies>> {
    let names = handle.clone();
    let services = PolicyServices {
        directory: Arc::new(NameService::start()?),
        names: Arc::new(move || names.snapshot().state.clone()),
    };
    let cache = config.data_folder.join("compiled-policies");
    let state = handle.snapshot().state.clone();
    let builtin = config.on_scheduling_failure == OnSchedulingFailure::BuiltIn;
    let load = move || -> anyhow::Result<Arc<Policies>> {
        let host = Host::new(services)?;
        let host =
            host.with_cache(&cache).with_context(|| format!("the folder of compiled policies, {}", cache.display()))?;
        Ok(Policies::load(host, reader, &state, builtin))
    };
    // Compiling may take seconds.
    tokio::task::spawn_blocking(load).await?
}

fn start_scheduler(
    config: &Config,
    handle: &Handle,
    mailbox: std::sync::mpsc::Receiver<scheduling::SchedulerMail>,
    policies: Arc<Policies>,
) -> std::io::Result<()> {
    let settings = SchedulingSettings {
        recalculate_every: Span(config.recalculation_period.as_millis() as i64),
        work: bounds::site_maxima(Role::Scheduling).work_units,
    };
    let handle = handle.clone();
    let state = handle.snapshot().state.clone();
    thread("scheduler", move || scheduling::run(&handle, &mailbox, state, &*policies, settings))
}

/// Every connection takes a descriptor.
fn raise_open_files() {
    let raised =
        getrlimit(Resource::RLIMIT_NOFILE).and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::warn!(%error, "the number of open files stays as it was");
    }
}
