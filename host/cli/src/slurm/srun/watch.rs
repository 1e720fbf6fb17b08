//! Watching a step to its end: what its nodes say, the signals of this process, standard input, and what ends all tasks.

use super::board::Board;
use super::files::Files;
use super::input::Input;
use super::listen::Listening;
use super::server::{self, News};
use super::writer::Writer;
use crate::output;
use ephor_proto::v1;
use ephor_slurm::srun::{PROGRAM, Step};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{Sender, unbounded_channel};
use tokio::time::{Instant, sleep_until};
use tonic::Status;
use v1::step_input::Body as In;
use v1::step_output::Body as Out;

/// How long the nodes have to call: connecting takes them up to 20 s for each address that leads nowhere.
const ATTACH: Duration = Duration::from_secs(60);
/// Two ^C within this time are meant for the tasks.
const TWICE: Duration = Duration::from_secs(1);
/// Signals that are passed on as they are.
const PASSED_ON: [i32; 5] = [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM];

struct Watch<'a> {
    step: &'a Step,
    name: String,
    board: Board,
    nodes: BTreeMap<String, Sender<Result<v1::StepInput, Status>>>,
    /// Signals that came before all nodes did.
    early: Vec<i32>,
    /// Nodes that have not taken the last piece of input.
    untaken: BTreeSet<String>,
    /// When the first task ended, and when all are ended for that.
    first_end: Option<Instant>,
    kill_at: Option<Instant>,
    interrupted: Option<Instant>,
    interrupt_sent: Option<Instant>,
    ending: bool,
}

/// Serves the step until all its nodes have said everything; gives the exit code.
///
/// # Errors
/// The port cannot be served, or signals cannot be watched.
pub async fn watch(
    step: &Step,
    plan: &v1::StepPlan,
    listening: Listening,
    files: &Files,
    writer: Writer,
    input: Input,
) -> anyhow::Result<u8> {
    let (news, mut heard) = unbounded_channel();
    server::start(plan, listening, files, step.label, writer.pieces.clone(), news)?;
    let mut signals = Signals::watch()?;
    let name = super::name(plan);
    let mut watch = Watch {
        step,
        board: Board::new(name.clone(), plan),
        name,
        nodes: BTreeMap::new(),
        early: Vec::new(),
        untaken: BTreeSet::new(),
        first_end: None,
        kill_at: None,
        interrupted: None,
        interrupt_sent: None,
        ending: false,
    };
    let give_up = Instant::now() + ATTACH;
    let mut input = Some(input);
    let mut pieces = None;
    while !watch.board.is_over() {
        if watch.board.is_whole()
            && let Some(input) = input.take()
        {
            pieces = Some(input.start());
        }
        let ready = pieces.is_some() && watch.untaken.is_empty();
        tokio::select! {
            Some((node, news)) = heard.recv() => watch.heard(&node, news),
            number = signals.next() => watch.signalled(number),
            piece = next(&mut pieces), if ready => watch.feed(piece.unwrap_or_default(), &mut pieces),
            () = sleep_until(give_up), if !watch.board.is_whole() => {
                let line = watch.board.give_up();
                line.iter().for_each(|line| output::problem(line));
                watch.kill();
            }
            () = at(watch.kill_at) => {
                watch.kill_at = None;
                let seconds = watch.first_end.map_or(0, |at| at.elapsed().as_secs());
                watch.say(&format!("First task exited {seconds}s ago"));
                watch.board.status().iter().for_each(|line| output::problem(line));
                watch.terminate();
            }
        }
    }
    let code = watch.board.code();
    // The connections close with their senders.
    drop(watch);
    writer.drain().await;
    Ok(code)
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn next(pieces: &mut Option<tokio::sync::mpsc::Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match pieces {
        Some(pieces) => pieces.recv().await,
        None => std::future::pending().await,
    }
}

impl Watch<'_> {
    fn say(&self, text: &str) {
        if !self.step.quiet {
            output::problem(&format!("{PROGRAM}: {text}"));
        }
    }

    fn heard(&mut self, node: &str, news: News) {
        match news {
            News::Attached(inbox) => {
                self.board.attached(node);
                for number in &self.early {
                    // There is room: it is new.
                    let _ = inbox.try_send(Ok(v1::StepInput { body: Some(In::Signal(*number)) }));
                }
                self.nodes.insert(node.to_owned(), inbox);
            }
            News::Said(Out::Exit(exit)) => self.exited(node, exit),
            News::Said(Out::Note(note)) => {
                output::problem(&format!("{PROGRAM}: error: {node}: task {}: {}", note.task, note.text));
            }
            News::Said(Out::Taken(_)) => {
                self.untaken.remove(node);
            }
            // Output goes another way.
            News::Said(Out::Running(_) | Out::Data(_)) => {}
            News::Closed => {
                self.nodes.remove(node);
                self.untaken.remove(node);
                if let Some(line) = self.board.closed(node) {
                    output::problem(&line);
                    self.terminate();
                }
            }
        }
    }

    fn exited(&mut self, node: &str, exit: v1::StepExit) {
        let (line, bad) = self.board.exited(node, exit);
        line.iter().for_each(|line| output::problem(line));
        if self.first_end.is_none() {
            let now = Instant::now();
            self.first_end = Some(now);
            self.kill_at = (self.step.wait > 0).then(|| now + Duration::from_secs(self.step.wait.into()));
        }
        if bad && self.step.kill_on_bad_exit {
            self.terminate();
        }
    }

    /// Ends all tasks, and says so.
    fn terminate(&mut self) {
        if !self.ending {
            self.say(&format!("Terminating StepId={}", self.name));
        }
        self.kill();
    }

    fn kill(&mut self) {
        if !std::mem::replace(&mut self.ending, true) {
            self.send(libc::SIGKILL);
        }
    }

    fn send(&mut self, number: i32) {
        if !self.board.is_whole() {
            self.early.push(number);
        }
        for inbox in self.nodes.values() {
            // A node that takes nothing is stuck, or gone: its connection will say so.
            let _ = inbox.try_send(Ok(v1::StepInput { body: Some(In::Signal(number)) }));
        }
    }

    fn signalled(&mut self, number: i32) {
        match number {
            libc::SIGINT => self.interrupt(),
            libc::SIGQUIT => self.kill(),
            number => self.send(number),
        }
    }

    /// The first ^C tells how the tasks are, a second soon after goes to them, and a third ends them.
    fn interrupt(&mut self) {
        let soon = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() <= TWICE);
        if self.step.quit_on_interrupt || soon(self.interrupt_sent) {
            self.say("forcing job termination");
            return self.kill();
        }
        if self.step.disable_status || soon(self.interrupted) {
            self.interrupt_sent = Some(Instant::now());
            self.say(&format!("sending Ctrl-C to StepId={}", self.name));
            return self.send(libc::SIGINT);
        }
        self.interrupted = Some(Instant::now());
        self.say("interrupt (one more within 1 sec to abort)");
        if !self.step.quiet {
            self.board.status().iter().for_each(|line| output::problem(line));
        }
    }

    /// Gives a piece of input to every node, all of which must take it before the next.
    fn feed(&mut self, piece: Vec<u8>, pieces: &mut Option<tokio::sync::mpsc::Receiver<Vec<u8>>>) {
        if piece.is_empty() {
            *pieces = None;
        }
        let is_last = piece.is_empty();
        for (node, inbox) in &self.nodes {
            let sent = inbox.try_send(Ok(v1::StepInput { body: Some(In::Data(piece.clone())) }));
            if sent.is_ok() && !is_last {
                self.untaken.insert(node.clone());
            }
        }
    }
}

/// The signals of this process that mean something to a step.
struct Signals {
    interrupt: Signal,
    quit: Signal,
    passed_on: Vec<(i32, Signal)>,
}

impl Signals {
    fn watch() -> std::io::Result<Self> {
        let passed_on = PASSED_ON.iter().map(|number| Ok((*number, signal(SignalKind::from_raw(*number))?)));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            passed_on: passed_on.collect::<std::io::Result<_>>()?,
        })
    }

    async fn next(&mut self) -> i32 {
        let passed_on = &mut self.passed_on;
        let any = std::future::poll_fn(|context| {
            for (number, signal) in passed_on.iter_mut() {
                if signal.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*number);
                }
            }
            std::task::Poll::Pending
        });
        tokio::select! {
            _ = self.interrupt.recv() => libc::SIGINT,
            _ = self.quit.recv() => libc::SIGQUIT,
            number = any => number,
        }
    }
}
