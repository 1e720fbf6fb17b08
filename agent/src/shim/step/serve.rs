//! Watching a step's tasks to their end: streams, signals, reaping, and the last sweep.

use super::birth::Born;
use super::lines::Lines;
use super::link::Link;
use crate::confine::{Confinement, walk};
use crate::limits::{MESSAGE_TEXT_BYTES, STEP_DRAIN, STEP_KILL_AGAIN};
use crate::spool::StepOrder;
use ephor_model::limits::STEP_DATA_BYTES;
use ephor_proto::v1;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read};
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender, channel, unbounded_channel};
use tokio::time::{Instant, sleep_until};
use v1::step_input::Body as In;
use v1::step_output::Body as Out;

/// How long whoever started the step has to close the connection when everything was said.
const FAREWELL: Duration = Duration::from_secs(10);

/// How a task ended: exit code, signal, and whether it left a core.
type Exit = (i32, i32, bool);

struct Task {
    rank: u32,
    /// Its process, until it was reaped.
    pid: Option<Pid>,
    failure: Option<File>,
    /// Streams of it that are not at their end.
    open: usize,
    exit: Option<Exit>,
    /// When its exit is told whatever its streams do.
    tell_at: Option<Instant>,
    told: bool,
}

struct Serving {
    confinement: Confinement,
    tasks: Vec<Task>,
    /// What waits for room on the way out.
    pending: VecDeque<Out>,
    /// Nothing of the step is left.
    gone: bool,
    /// When to kill what is left, and whether that was tried before.
    kill_at: Option<Instant>,
    killed: bool,
}

/// Serves the tasks until nothing of them is left and everything was told.
///
/// # Errors
/// The system has no watch to give.
pub async fn serve(order: StepOrder, born: Vec<Born>, link: Link) -> Result<(), String> {
    let Link { outbox, mut input } = link;
    let fail = |e: std::io::Error| format!("cannot watch the tasks: {e}");
    let mut children = signal(SignalKind::child()).map_err(fail)?;
    let mut orders = signal(SignalKind::terminate()).map_err(fail)?;
    // Now that somebody listens; whatever came before is told at once.
    SigSet::empty().thread_set_mask().map_err(|e| format!("cannot unblock signals: {}", e.desc()))?;
    let (ends, mut ended) = unbounded_channel();
    let (taken, mut news) = unbounded_channel();
    // One piece that was not taken, and the end: whoever sends more keeps to no rules.
    let (data, readers) = channel(2);
    let mut inputs = Vec::new();
    let mut serving = Serving {
        confinement: order.confinement,
        tasks: Vec::new(),
        pending: VecDeque::new(),
        gone: false,
        kill_at: None,
        killed: false,
    };
    for task in born {
        serving.add(task, &outbox, &ends, order.unbuffered, &mut inputs).map_err(fail)?;
    }
    tokio::spawn(feed(inputs, readers, taken));
    serving.pending.push_back(Out::Running(v1::Empty {}));
    let mut connected = true;
    serving.reap();
    while !serving.is_done() {
        serving.act();
        tokio::select! {
            _ = children.recv() => serving.reap(),
            _ = orders.recv() => serving.kill_now(),
            Some(rank) = ended.recv() => serving.stream_ended(rank),
            Some(()) = news.recv() => serving.pending.push_back(Out::Taken(v1::Empty {})),
            message = input.message(), if connected => match message.ok().flatten().and_then(|m| m.body) {
                Some(In::Signal(number)) => serving.signal(number),
                Some(In::Data(bytes)) => match data.try_send(bytes) {
                    // Closed: no task reads any more, and nothing waits for it either.
                    Ok(()) | Err(TrySendError::Closed(_)) => {}
                    Err(TrySendError::Full(_)) => {
                        connected = false;
                        serving.kill_now();
                    }
                },
                // Whoever started the step is gone, and the step goes with it.
                None => {
                    connected = false;
                    serving.kill_now();
                }
            },
            permit = outbox.reserve(), if connected && !serving.pending.is_empty() => match permit {
                Ok(permit) => permit.send(v1::StepOutput { body: serving.pending.pop_front() }),
                Err(_) => {
                    connected = false;
                    serving.kill_now();
                }
            },
            () = at(serving.next_deadline()) => {}
        }
        if !connected {
            // Nobody is there to be told.
            serving.pending.clear();
            serving.tasks.iter_mut().for_each(|task| (task.open, task.told) = (0, true));
        }
    }
    drop(outbox);
    // Closing first would cut off what is on its way.
    let farewell = async { while let Ok(Some(_)) = input.message().await {} };
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
    Ok(())
}

impl Serving {
    /// Takes a task that was made, and lets its streams run.
    fn add(
        &mut self,
        born: Born,
        outbox: &Sender<v1::StepOutput>,
        ends: &UnboundedSender<u32>,
        unbuffered: bool,
        inputs: &mut Vec<pipe::Sender>,
    ) -> std::io::Result<()> {
        let Born { rank, process, failure, stdin, stdout, stderr } = born;
        let mut open = 0;
        for (stream, errors) in [(stdout, false), (stderr, true)] {
            let Some(stream) = stream else { continue };
            open += 1;
            tokio::spawn(pass_on(receiver(stream)?, rank, errors, unbuffered, outbox.clone(), ends.clone()));
        }
        inputs.extend(stdin.map(sender).transpose()?);
        let mut task = Task { rank, pid: None, failure, open, exit: None, tell_at: None, told: false };
        match process {
            Ok(pid) => task.pid = Some(pid),
            Err(text) => {
                self.pending.push_back(Out::Note(v1::StepNote { task: rank, text }));
                task.exit = Some((1, 0, false));
            }
        }
        self.tasks.push(task);
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.gone && self.pending.is_empty() && self.tasks.iter().all(|task| task.told && task.open == 0)
    }

    /// Collects every child that has ended. As orphans become our children, none left means nothing of the step is left.
    fn reap(&mut self) {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => self.ended(pid, (code, 0, false)),
                Ok(WaitStatus::Signaled(pid, signal, core)) => self.ended(pid, (0, signal as i32, core)),
                Ok(WaitStatus::StillAlive) => break,
                Err(Errno::ECHILD) => {
                    self.gone = true;
                    break;
                }
                // Stopped, continued, or interrupted: ask again.
                _ => {}
            }
        }
        // What the tasks left behind has no right to go on.
        if !self.gone && self.kill_at.is_none() && self.tasks.iter().all(|task| task.exit.is_some()) {
            self.kill_now();
        }
    }

    fn ended(&mut self, pid: Pid, exit: Exit) {
        let Some(task) = self.tasks.iter_mut().find(|task| task.pid == Some(pid)) else { return };
        task.pid = None;
        task.exit = Some(exit);
        task.tell_at = Some(Instant::now() + STEP_DRAIN);
        let mut text = String::new();
        if let Some(failure) = task.failure.take() {
            // Its writers are gone, so this does not wait. Nothing in it: the program was reached.
            let _ = failure.take(MESSAGE_TEXT_BYTES as u64).read_to_string(&mut text);
        }
        if !text.is_empty() {
            self.pending.push_back(Out::Note(v1::StepNote { task: task.rank, text }));
        }
    }

    fn stream_ended(&mut self, rank: u32) {
        if let Some(task) = self.tasks.iter_mut().find(|task| task.rank == rank) {
            task.open = task.open.saturating_sub(1);
        }
    }

    /// Tells exits that are due, alike ones together, and kills what is due.
    fn act(&mut self) {
        let now = Instant::now();
        let due = |task: &Task| {
            let drained = task.open == 0 || task.tell_at.is_some_and(|at| at <= now);
            task.exit.filter(|_| !task.told && drained)
        };
        let mut groups: Vec<(Exit, Vec<u32>)> = Vec::new();
        for task in &mut self.tasks {
            let Some(exit) = due(task) else { continue };
            task.told = true;
            match groups.iter_mut().find(|(other, _)| *other == exit) {
                Some((_, ranks)) => ranks.push(task.rank),
                None => groups.push((exit, vec![task.rank])),
            }
        }
        for ((code, signal, core_dumped), tasks) in groups {
            self.pending.push_back(Out::Exit(v1::StepExit { tasks, code, signal, core_dumped }));
        }
        if !self.gone && self.kill_at.is_some_and(|at| at <= now) {
            self.confinement.kill(Pid::this(), true);
            self.killed = true;
            self.kill_at = Some(now + STEP_KILL_AGAIN);
        }
    }

    fn kill_now(&mut self) {
        if !self.killed {
            self.kill_at = Some(Instant::now());
        }
    }

    /// Sends a signal to every process of the step. By descent, since one that was just made is in no group yet.
    fn signal(&mut self, number: i32) {
        match Signal::try_from(number) {
            Ok(Signal::SIGKILL) => self.kill_now(),
            Ok(signal) => {
                for pid in walk::descendants(Pid::this()) {
                    // One that ended meanwhile needs no signal.
                    let _ = nix::sys::signal::kill(pid, signal);
                }
            }
            // Nothing that anybody could mean.
            Err(_) => {}
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let tells = self.tasks.iter().filter(|task| !task.told).filter_map(|task| task.tell_at);
        tells.chain(self.kill_at.filter(|_| !self.gone)).min()
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn receiver(stream: PipeReader) -> std::io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(OwnedFd::from(stream))
}

fn sender(stream: PipeWriter) -> std::io::Result<pipe::Sender> {
    pipe::Sender::from_owned_fd(OwnedFd::from(stream))
}

/// Passes the output of one stream on until it ends, or nobody takes it any more.
async fn pass_on(
    mut stream: pipe::Receiver,
    task: u32,
    errors: bool,
    unbuffered: bool,
    outbox: Sender<v1::StepOutput>,
    ends: UnboundedSender<u32>,
) {
    let mut lines = Lines::default();
    let mut buffer = vec![0; STEP_DATA_BYTES / 2];
    loop {
        let length = stream.read(&mut buffer).await.unwrap_or(0);
        let data = match (length, unbuffered) {
            (0, _) => lines.rest(),
            (_, true) => buffer[..length].to_vec(),
            (_, false) => lines.push(&buffer[..length]),
        };
        if !data.is_empty() {
            let body = Some(Out::Data(v1::StepData { task, errors, data }));
            if outbox.send(v1::StepOutput { body }).await.is_err() {
                break;
            }
        }
        if length == 0 {
            break;
        }
    }
    // Fails when all is over.
    let _ = ends.send(task);
}

/// Gives standard input to every task that has it, one piece after the other. A task that does not read holds up the
/// others' input, as in a pipe, and nothing else.
async fn feed(mut inputs: Vec<pipe::Sender>, mut data: Receiver<Vec<u8>>, taken: UnboundedSender<()>) {
    while let Some(bytes) = data.recv().await {
        if bytes.is_empty() {
            return;
        }
        let mut open = Vec::with_capacity(inputs.len());
        for mut input in inputs {
            // A task that closed its input, or ended, wants no more.
            if input.write_all(&bytes).await.is_ok() {
                open.push(input);
            }
        }
        inputs = open;
        if taken.send(()).is_err() {
            return;
        }
    }
}
