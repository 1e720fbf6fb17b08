//! The few calls to the kernel for which there is no safe wrapper; other `unsafe` code of the agent is in `gpu/`.
#![allow(unsafe_code, reason = "calls into libc that nix does not wrap; each says why it is sound")]

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{ForkResult, Pid};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Duplicates the calling process.
///
/// # Errors
/// What the kernel says, or `EPERM` where the process has more than one thread, whose locks the copy could never get.
pub fn fork() -> Result<ForkResult, Errno> {
    if std::fs::read_dir("/proc/self/task").map_or(2, Iterator::count) != 1 {
        return Err(Errno::EPERM);
    }
    // SAFETY: there is no other thread, so nothing in the copy can be left locked or half-written by one.
    unsafe { nix::unistd::fork() }
}

/// A descriptor that stands for the process and becomes readable when it ended.
///
/// # Errors
/// `ESRCH` where there is no such process.
pub fn pidfd_open(pid: Pid) -> Result<OwnedFd, Errno> {
    // SAFETY: takes two integers and touches no memory of ours.
    let fd = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) })?;
    // SAFETY: the kernel has just made this descriptor for us; nobody else owns it. Descriptors fit an i32.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Tells a task when the descriptor becomes readable. Must be called within a runtime.
///
/// # Errors
/// What the kernel says: there is a bound on descriptors watched.
pub fn readable(fd: Arc<OwnedFd>) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    // SAFETY: the descriptor is open and stays so, and stays the same: the result holds a share of its only owner.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(Into::into)
}

/// Sends a signal to exactly that process, never to another that got its number since.
///
/// # Errors
/// `ESRCH` where it has ended.
pub fn pidfd_send_signal(process: BorrowedFd<'_>, signal: Signal) -> Result<(), Errno> {
    let (fd, no_info) = (process.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
    // SAFETY: the only pointer is null, which asks the kernel to fill in the information itself.
    Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal as i32, no_info, 0) }).map(drop)
}

/// Waits for one of `signals`, which must be blocked, at most this long (`None`: for ever). `None`: the time is over,
/// or something else woke us.
pub fn wait_signal(signals: &SigSet, at_most: Option<Duration>) -> Option<Signal> {
    let limit = at_most.map(|d| libc::timespec {
        // A time limit has at most 100 years, far within the range; the nanoseconds are below 10^9.
        tv_sec: d.as_secs().min(1 << 40) as libc::time_t,
        tv_nsec: d.subsec_nanos() as libc::c_long,
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both pointers are to live values or null, which the call allows for the second and third.
    let got = unsafe { libc::sigtimedwait(signals.as_ref(), std::ptr::null_mut(), limit) };
    Signal::try_from(got).ok()
}

/// Gives every signal its default meaning again; ignored ones would stay ignored through an exec.
pub fn default_signals() {
    for signal in Signal::iterator() {
        // SAFETY: SIG_DFL installs no function of ours. SIGKILL and SIGSTOP are refused, which changes nothing.
        let _ = unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigDfl) };
    }
}
