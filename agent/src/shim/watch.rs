//! Watching an attempt to its end: reaping, time limit, orders to end it, and the last sweep.

use super::start::Started;
use crate::facts::now_ms;
use crate::limits::MESSAGE_TEXT_BYTES;
use crate::spool::{EndOrder, Entry, Status};
use crate::sys;
use ephor_model::{EndCause, SignalTo, WarningSignal};
use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io::Read;
use std::time::{Duration, Instant};

/// Killing is tried again at this pace while processes are left.
const KILL_AGAIN: Duration = Duration::from_millis(500);

struct Watch {
    started: Started,
    /// Exit code and signal of the first process, once it has ended.
    exit: Option<(i32, i32)>,
    /// It had its signal before the time limit.
    warned: bool,
    /// How many of the signals in its folder it had.
    signals: u64,
    /// Why it is being ended, if it is.
    cause: Option<EndCause>,
    /// When to kill what is left.
    kill_at: Option<Instant>,
    /// Whether that was tried before.
    killed: bool,
}

/// Waits for the end of an attempt and of everything that belongs to it.
pub fn watch(entry: &Entry, signals: &SigSet, started: Started) -> Status {
    let mut watch = Watch { started, exit: None, warned: false, signals: 0, cause: None, kill_at: None, killed: false };
    watch.read_limit(entry);
    while !watch.reap() {
        watch.act();
        match sys::wait_signal(signals, watch.next_deadline()) {
            Some(Signal::SIGTERM) => {
                // Without an order in the folder it was a person with `kill`: as good as a cancellation.
                let order = entry.end_order().ok().flatten();
                watch.end(order.unwrap_or(EndOrder { cause: EndCause::Cancelled, grace_ms: None }));
            }
            Some(Signal::SIGUSR1) => {
                watch.read_limit(entry);
                watch.read_signals(entry);
            }
            _ => {}
        }
    }
    watch.started.confinement.remove();
    watch.status()
}

impl Watch {
    /// Collects every child that has ended; `true` when none is left. As orphans become our children, none left
    /// means nothing of the attempt is left.
    fn reap(&mut self) -> bool {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => self.ended(pid, (code, 0)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => self.ended(pid, (0, signal as i32)),
                Ok(WaitStatus::StillAlive) => return false,
                Err(Errno::ECHILD) => return true,
                // Stopped, continued, or interrupted: ask again.
                _ => {}
            }
        }
    }

    /// Takes another time limit, where the folder has one.
    fn read_limit(&mut self, entry: &Entry) {
        if let Ok(Some(limit)) = entry.limit() {
            self.started.limits.0 = limit.ms;
        }
    }

    /// Passes on the signals that came since the last time.
    fn read_signals(&mut self, entry: &Entry) {
        let Ok(signals) = entry.signals() else { return };
        for order in signals.after(self.signals) {
            if let Ok(signal) = Signal::try_from(order.number) {
                self.pass_on(signal, order.to);
            }
        }
        self.signals = signals.count;
    }

    fn ended(&mut self, pid: Pid, exit: (i32, i32)) {
        if pid == self.started.pid {
            self.exit = Some(exit);
        }
    }

    fn act(&mut self) {
        let now = Instant::now();
        // Where the attempt ends by itself, what it left behind has no right to go on. Where it is being ended, the
        // others have the grace that was given to all.
        if self.exit.is_some() && self.cause.is_none() && self.kill_at.is_none() {
            self.kill_at = Some(now);
        }
        if self.warning().is_some_and(|at| at <= now) {
            self.warn();
        }
        if self.limit().is_some_and(|limit| limit <= now) {
            self.end(EndOrder { cause: EndCause::TimeLimit, grace_ms: None });
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            self.started.confinement.kill(Pid::this(), self.killed);
            self.killed = true;
            self.kill_at = Some(now + KILL_AGAIN);
        }
    }

    /// Asks everything to end. The first cause stands; of several graces the shortest counts.
    fn end(&mut self, order: EndOrder) {
        if self.exit.is_none() {
            self.cause.get_or_insert(order.cause);
        }
        let at = Instant::now() + Duration::from_millis(order.grace_ms.unwrap_or(self.started.limits.1));
        self.kill_at = Some(self.kill_at.map_or(at, |before| before.min(at)));
        for signal in [Signal::SIGTERM, Signal::SIGCONT] {
            self.started.confinement.signal(Pid::this(), signal);
        }
    }

    /// When the time limit strikes, as long as it still can.
    fn limit(&self) -> Option<Instant> {
        if self.exit.is_some() || self.cause.is_some() {
            return None;
        }
        self.started.limits.0.map(|ms| self.started.at + Duration::from_millis(ms))
    }

    /// When it gets its signal before the time limit, as long as it still can.
    fn warning(&self) -> Option<Instant> {
        let signal = self.started.signal.filter(|_| !self.warned)?;
        let before = Duration::from_millis(signal.before.0.try_into().unwrap_or(0));
        self.limit().map(|limit| limit.checked_sub(before).map_or(self.started.at, |at| at.max(self.started.at)))
    }

    fn warn(&mut self) {
        self.warned = true;
        let Some(WarningSignal { number, to_script, .. }) = self.started.signal else { return };
        if let Ok(signal) = Signal::try_from(number) {
            self.pass_on(signal, if to_script { SignalTo::Script } else { SignalTo::Others });
        }
    }

    fn pass_on(&self, signal: Signal, to: SignalTo) {
        let first = self.started.pid;
        let to_first = to != SignalTo::Others || !self.started.is_script;
        if to_first && self.exit.is_none() {
            // By its number: at the very beginning it is in no group yet. It was not reaped, so that the number is its own.
            let _ = kill(first, signal);
        }
        if to != SignalTo::Script {
            self.started.confinement.signal_but(Pid::this(), signal, first);
        }
    }

    fn next_deadline(&self) -> Option<Duration> {
        let next = [self.limit(), self.warning(), self.kill_at].into_iter().flatten().min();
        next.map(|at| at.saturating_duration_since(Instant::now()))
    }

    fn status(mut self) -> Status {
        let mut message = String::new();
        // All writers are gone, so this does not wait. Nothing in it: the program was reached.
        let _ = (&mut self.started.failure).take(MESSAGE_TEXT_BYTES as u64).read_to_string(&mut message);
        let (exit_code, exit_signal) = self.exit.unwrap_or_default();
        let cause = if message.is_empty() { EndCause::Exited } else { EndCause::LaunchFailed };
        let (cpu_ms, peak_mem_mib) = usage();
        Status {
            ended_ms: now_ms(),
            exit_code,
            exit_signal,
            cause: self.cause.unwrap_or(cause),
            message,
            cpu_ms,
            peak_mem_mib,
        }
    }
}

/// CPU time in milliseconds and the largest process in MiB, over everything that was reaped.
fn usage() -> (i64, i64) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return (0, 0) };
    let ms = |t: nix::sys::time::TimeVal| t.tv_sec() * 1000 + t.tv_usec() / 1000;
    (ms(usage.user_time() + usage.system_time()), (usage.max_rss() + 1023) / 1024)
}
