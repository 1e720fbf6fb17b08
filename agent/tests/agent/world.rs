//! A folder, the real agent in it, and orders for it. Everything that was started is ended with it, by number.

use crate::controller::{Controller, Say, Session};
use crate::wait::until;
use ephor_agent::spool::Entry;
use ephor_proto::v1;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Everything that one test has.
pub struct World {
    pub folder: tempfile::TempDir,
    pub controller: Controller,
    agent: Option<Child>,
    /// Runs the agent as this user, where we are root.
    pub user: Option<u32>,
}

impl World {
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Other users reach their scripts through it.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        Self { folder, controller: Controller::start().await, agent: None, user: None }
    }

    /// A world with an agent that has registered.
    pub async fn with_agent(options: &[&str]) -> (Self, Session) {
        let mut world = Self::new().await;
        let token = world.controller.token();
        world.start(&[&["--join", &token], options].concat());
        let (session, _) = world.controller.welcomed().await;
        (world, session)
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Whether the spool holds no attempt: folders that wait for one do not count.
    pub fn spool_is_empty(&self) -> bool {
        let names = std::fs::read_dir(self.data().join("spool")).unwrap();
        names.map(|e| e.unwrap().file_name()).all(|name| name.to_str().unwrap().starts_with(".free-"))
    }

    pub fn entry(&self, name: &str) -> PathBuf {
        self.data().join("spool").join(name)
    }

    /// Number of the shim that holds an attempt.
    pub fn shim(&self, name: &str) -> Option<Pid> {
        Entry::at(self.entry(name)).claimed().unwrap().map(|claim| claim.process())
    }

    fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ephor-agent"));
        command.arg("--data").arg(self.data()).args(options).stdin(Stdio::null()).env("EPHOR_LOG", "debug");
        if !options.contains(&"--name") {
            command.args(["--name", "n1"]);
        }
        if let Some(uid) = self.user {
            command.uid(uid).gid(uid);
        }
        command
    }

    /// Starts the agent.
    pub fn start(&mut self, options: &[&str]) {
        assert!(self.agent.is_none(), "one agent at a time");
        let log = std::fs::File::options().create(true).append(true).open(self.path("agent.log")).unwrap();
        self.agent = Some(self.command(options).stderr(log).spawn().unwrap());
    }

    /// Runs the agent to its end.
    pub fn run(&self, options: &[&str]) -> Output {
        self.command(options).output().unwrap()
    }

    pub fn agent_pid(&self) -> Pid {
        Pid::from_raw(self.agent.as_ref().unwrap().id().try_into().unwrap())
    }

    /// Ends the agent with a signal, and gives its exit status.
    pub fn stop(&mut self, signal: Signal) -> std::process::ExitStatus {
        kill(self.agent_pid(), signal).unwrap();
        self.agent.take().unwrap().wait().unwrap()
    }

    pub fn log(&self) -> String {
        self.read("agent.log")
    }

    /// A launch of a script, in this world's folder, with its output in `out.JOB`.
    pub fn script(&self, job: u64, text: &str) -> v1::Launch {
        v1::Launch { script: Some(format!("#!/bin/sh\n{text}").into_bytes()), ..self.launch(job) }
    }

    /// A launch of a program.
    pub fn program(&self, job: u64, argv: &[&str]) -> v1::Launch {
        v1::Launch { argv: argv.iter().map(|a| (*a).to_owned()).collect(), ..self.launch(job) }
    }

    fn launch(&self, job: u64) -> v1::Launch {
        v1::Launch {
            node: "n1".into(),
            attempt: attempt(job, 1),
            name: "test".into(),
            user: "somebody".into(),
            uid: self.user.unwrap_or(nix::unistd::geteuid().as_raw()),
            gid: self.user.unwrap_or(nix::unistd::getegid().as_raw()),
            environment: vec!["PATH=/usr/bin:/bin".into()],
            work_dir: self.folder.path().to_str().unwrap().into(),
            stdout: "out.%j".into(),
            grace: 30_000,
            ..v1::Launch::default()
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let entries = std::fs::read_dir(self.data().join("spool")).into_iter().flatten().flatten();
        for name in entries.filter_map(|e| e.file_name().into_string().ok()) {
            let Some(shim) = self.shim(&name) else { continue };
            // Killing the tree below the shim ends the shim too.
            ephor_agent::confine::walk::kill_descendants(shim);
            let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
            while alive(&shim.to_string()) && std::time::Instant::now() < until {
                std::thread::yield_now();
            }
        }
        if self.agent.is_some() {
            // Orderly, so that it takes its control group away.
            self.stop(Signal::SIGTERM);
        }
    }
}

pub fn attempt(job: u64, number: u32) -> Option<v1::AttemptRef> {
    Some(v1::AttemptRef { job, attempt: number })
}

pub fn terminate(session: &Session, job: u64, cause: &str, grace: i64) {
    session.say(Say::Terminate(v1::Terminate {
        node: "n1".into(),
        attempt: attempt(job, 1),
        cause: cause.into(),
        grace,
    }));
}

/// Waits until a file has a line, and gives the first.
pub async fn first_line(path: &Path) -> String {
    let read = || std::fs::read_to_string(path).unwrap_or_default();
    until(&format!("a line in {}", path.display()), || read().contains('\n')).await;
    read().lines().next().unwrap().to_owned()
}

/// Whether a process is there and not a zombie.
pub fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
