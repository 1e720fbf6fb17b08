//! The thread that makes spool entries, starts shims and clears up: one thing at a time, in the order asked for.
//!
//! That it is one thread is what lets it write scripts safely: no other fork of the agent can hold a script open for
//! writing while its shim runs it.

use super::Event;
use super::adopt::{Found, clear, find};
use super::groups::Users;
use super::order::order;
use super::process::Process;
use super::step_order::step_order;
use super::steps::StepEvent;
use crate::confine::Confinement;
use crate::facts::now_ms;
use crate::gpu::Visibility;
use crate::spool::{Spool, Status};
use anyhow::Context;
use ephor_model::{AttemptKey, EndCause, StepKey};
use ephor_proto::v1;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::waitpid;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use tokio::sync::mpsc::UnboundedSender;

/// What launching needs to know about this node.
#[derive(Clone, Debug)]
pub struct Launching {
    /// The program `ephor-shim`.
    pub shim: PathBuf,
    /// The agent's local socket, by which jobs reach the controller.
    pub socket: PathBuf,
    /// Under which group attempts are kept together.
    pub confinement: Confinement,
    /// What attempts are shown of the node's GPUs.
    pub gpus: Visibility,
    /// Soft limit of open files for jobs.
    pub open_files: u64,
}

/// One thing to do.
#[derive(Debug)]
pub enum Task {
    /// Make the entry and start the attempt.
    Start(AttemptKey, Box<v1::Launch>),
    /// Find out what became of an attempt that has an entry, and take it over; start it where nobody did.
    Adopt(AttemptKey),
    /// Find out what became of an attempt whose shim ended without a word.
    Settle(AttemptKey),
    /// Its end was acknowledged: nothing of it is needed any more.
    Remove(AttemptKey),
    /// Make the entry of a part of a step and start it.
    StartStep(StepKey, Box<v1::StepLaunch>),
    /// Find out what became of a part that has an entry, and take it over.
    AdoptStep(StepKey),
    /// Clear up after a part whose shim has ended.
    SettleStep(StepKey),
    /// The attempt is over, and no step of it will come.
    ForgetSteps(AttemptKey),
}

/// The way to the thread. The tasks that wait are bounded by the attempts that the node may hold.
#[derive(Clone, Debug)]
pub struct Launcher {
    tasks: mpsc::Sender<Task>,
}

impl Launcher {
    /// Starts the thread.
    ///
    /// # Errors
    /// No thread can be had, or the shim cannot be named.
    pub fn start(spool: Spool, launching: Launching, events: UnboundedSender<Event>) -> anyhow::Result<Self> {
        let shim = Shim::new(&launching.shim)?;
        let (tasks, todo) = mpsc::channel();
        let mut worker = Worker { spool, launching, shim, events, users: Users::default() };
        std::thread::Builder::new()
            .name("launcher".into())
            .spawn(move || {
                for task in todo {
                    worker.perform(task);
                }
            })
            .context("cannot start the launching thread")?;
        Ok(Self { tasks })
    }

    /// Hands over one thing to do.
    pub fn give(&self, task: Task) {
        if self.tasks.send(task).is_err() {
            tracing::error!("the launching thread has ended: restart the agent; running jobs go on");
        }
    }
}

struct Worker {
    spool: Spool,
    launching: Launching,
    shim: Shim,
    events: UnboundedSender<Event>,
    users: Users,
}

impl Worker {
    fn perform(&mut self, task: Task) {
        let (key, done) = match task {
            Task::Start(key, launch) => (key, self.start(key, &launch)),
            Task::Adopt(key) => (key, self.adopt(key, true)),
            Task::Settle(key) => (key, self.adopt(key, false)),
            Task::Remove(key) => {
                if let Err(e) = self.spool.retire(key) {
                    tracing::error!(attempt = %key, "{e}");
                }
                self.confinement(key).remove();
                return;
            }
            Task::StartStep(key, launch) => {
                let done = self.start_step(key, &launch);
                return self.tell_step(key, done);
            }
            Task::AdoptStep(key) | Task::SettleStep(key) => {
                let done = self.find_step(key);
                return self.tell_step(key, done);
            }
            Task::ForgetSteps(attempt) => {
                if let Err(e) = self.spool.steps().forget(attempt) {
                    tracing::error!(%attempt, "{e}");
                }
                // What still runs keeps it, and takes it along when it ends.
                return self.confinement(attempt).remove();
            }
        };
        let event = done.unwrap_or_else(|why| {
            tracing::warn!(attempt = %key, "not launched: {why}");
            let status = Status::unstarted(EndCause::LaunchFailed, why, now_ms());
            Event::Ended { key, status, began_ms: None }
        });
        // Fails only when the agent stops.
        let _ = self.events.send(event);
    }

    fn confinement(&self, key: AttemptKey) -> Confinement {
        self.launching.confinement.of_attempt(&key.to_string())
    }

    fn start(&mut self, key: AttemptKey, launch: &v1::Launch) -> Result<Event, String> {
        let entry = self.spool.entry(key);
        let order = order(launch, &entry, self.confinement(key), &self.launching, &mut self.users)?;
        match self.spool.create(key, &order, launch.script.as_deref()).map_err(|e| e.to_string())? {
            true => self.spawn(key),
            // The node's memory of it is gone, the spool's is not.
            false => self.adopt(key, true),
        }
    }

    fn spawn(&self, key: AttemptKey) -> Result<Event, String> {
        let began_ms = now_ms();
        let entry = self.spool.entry(key);
        let process = self.shim.spawn(&[], entry.folder()).map_err(|e| format!("cannot start a shim: {e:#}"))?;
        Ok(Event::Started { key, process, began_ms })
    }

    fn tell_step(&self, key: StepKey, done: Result<StepEvent, String>) {
        let event = done.unwrap_or_else(StepEvent::Ended);
        if matches!(event, StepEvent::Ended(_)) {
            if let Err(e) = self.spool.steps().remove(key) {
                tracing::error!(step = %key, "{e}");
            }
            let group = self.confinement(key.attempt);
            group.of_step(key.step).remove();
            if !self.spool.steps().knows(key.attempt) {
                group.remove();
            }
        }
        // Fails only when the agent stops.
        let _ = self.events.send(Event::Step(key, event));
    }

    fn start_step(&mut self, key: StepKey, launch: &v1::StepLaunch) -> Result<StepEvent, String> {
        let entry = self.spool.steps().entry(key);
        let group = self.confinement(key.attempt);
        let order = step_order(launch, entry.folder(), group, &self.launching, &mut self.users)?;
        if !self.spool.steps().create(key, &order).map_err(|e| e.to_string())? {
            return Err("the node had a step of this number before".into());
        }
        let process =
            self.shim.spawn(&[c"--step"], entry.folder()).map_err(|e| format!("cannot start a shim: {e:#}"))?;
        Ok(StepEvent::Started { process, cpu_milli: order.cpu_milli, devices: order.devices })
    }

    /// What became of a part of a step; one that is over is cleared up.
    fn find_step(&self, key: StepKey) -> Result<StepEvent, String> {
        let entry = self.spool.steps().entry(key);
        match find(&entry).map_err(|e| e.to_string())? {
            Found::Running(process, _) => {
                let order = entry.step_order().map_err(|e| e.to_string())?;
                Ok(StepEvent::Started { process, cpu_milli: order.cpu_milli, devices: order.devices })
            }
            Found::Ended(_, status) => Ok(StepEvent::Ended(status.message)),
            Found::Unclaimed => Err("its shim ended before it could take it".into()),
            Found::Lost(_) => {
                clear(&entry, &self.confinement(key.attempt).of_step(key.step));
                Err("the process that held the step's tasks was killed".into())
            }
        }
    }

    fn adopt(&mut self, key: AttemptKey, may_start: bool) -> Result<Event, String> {
        let entry = self.spool.entry(key);
        match find(&entry).map_err(|e| e.to_string())? {
            Found::Unclaimed if may_start => self.spawn(key),
            Found::Unclaimed => {
                Err("the shim ended before it could take the attempt; is the agent's disk full?".into())
            }
            Found::Running(process, began_ms) => {
                // An agent that was killed may have written an order and not passed it on.
                if entry.end_order().is_ok_and(|end| end.is_some()) {
                    process.terminate();
                }
                Ok(Event::Started { key, process, began_ms })
            }
            Found::Ended(began_ms, status) => Ok(Event::Ended { key, status, began_ms }),
            Found::Lost(began_ms) => {
                tracing::error!(attempt = %key, "its shim is gone without a word; ending what is left of it");
                clear(&entry, &self.confinement(key));
                let why = "the process that held the attempt was killed";
                let status = Status::unstarted(EndCause::NodeFailed, why, now_ms());
                // Only saves looking again after a restart.
                let _ = entry.set_status(&status);
                Ok(Event::Ended { key, status, began_ms: Some(began_ms) })
            }
        }
    }
}

/// How shims are started: as fast as the system can, in a session of their own, with all signals blocked from birth.
struct Shim {
    program: CString,
    null: File,
    attributes: PosixSpawnAttr,
}

impl Shim {
    fn new(program: &Path) -> anyhow::Result<Self> {
        let mut attributes = PosixSpawnAttr::init()?;
        let session = PosixSpawnFlags::from_bits_retain(libc::POSIX_SPAWN_SETSID.into());
        attributes.set_flags(session | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK)?;
        attributes.set_sigmask(&SigSet::all())?;
        let null = File::options().read(true).write(true).open("/dev/null").context("cannot open /dev/null")?;
        Ok(Self { program: CString::new(program.as_os_str().as_bytes())?, null, attributes })
    }

    fn spawn(&self, options: &[&CStr], folder: &Path) -> anyhow::Result<Process> {
        let mut actions = PosixSpawnFileActions::init()?;
        for stream in 0..3 {
            actions.add_dup2(self.null.as_raw_fd(), stream)?;
        }
        let folder = CString::new(folder.as_os_str().as_bytes())?;
        let arguments: Vec<&CStr> =
            std::iter::once(&*self.program).chain(options.iter().copied()).chain([&*folder]).collect();
        let pid = posix_spawn(&*self.program, &actions, &self.attributes, &arguments, &[] as &[&CStr])
            .with_context(|| format!("{}", self.program.to_string_lossy()))?;
        Process::child(pid).map_err(|e| {
            // Nothing may run that nobody watches. Without an order of ours the shim ends the attempt as cancelled.
            let _ = kill(pid, Signal::SIGTERM);
            let _ = waitpid(pid, None);
            anyhow::anyhow!("cannot watch it: {}", e.desc())
        })
    }
}

/// Tries whether a process can be put into a group, with the shim as the process.
///
/// # Errors
/// It cannot, or the shim cannot be started.
pub fn probe(shim: &Path, group: &Confinement) -> anyhow::Result<()> {
    let (Confinement::CgroupV2(folder) | Confinement::CgroupV1(folder)) = group else { return Ok(()) };
    let done = std::process::Command::new(shim)
        .arg("--probe")
        .arg(folder)
        .stderr(std::process::Stdio::null())
        .status()
        .with_context(|| format!("cannot start {}; it belongs beside ephor-agent", shim.display()))?;
    anyhow::ensure!(done.success(), "no process can be put into the group {}", folder.display());
    Ok(())
}
