//! Every bound of the agent, with its unit and its reason; those it shares with the controller are in the model.

use std::time::Duration;

/// Attempts that one node holds at a time, ended ones that were not acknowledged included: each costs a process, a
/// folder and a file descriptor.
pub const ATTEMPTS_HELD: usize = 65_536;
/// Attempts that all virtual nodes of one process hold at a time; each costs about 300 bytes.
pub const SIMULATED_ATTEMPTS: usize = 4_000_000;
/// Connections of one user to the local socket, so that nobody can use up the agent's file descriptors.
pub const RELAY_CONNECTIONS_PER_USER: usize = 64;
/// Calls in progress on one such connection.
pub const RELAY_STREAMS: u32 = 256;
/// Bytes of one call's headers on the local socket.
pub const RELAY_HEADER_BYTES: u32 = 16 << 10;
/// Bytes of the agent's configuration, token and simulation files.
pub const CONFIG_BYTES: u64 = 16 << 20;
/// Bytes of an error text in a report.
pub const MESSAGE_TEXT_BYTES: usize = 4096;
/// Bytes of one file of a spool entry: environment and arguments at their own limits, with room to spare.
pub const SPOOL_FILE_BYTES: u64 = 8 << 20;
/// Folders of ended attempts that are kept for the next ones; each takes a few KiB of disk.
pub const FREE_SPOOL_ENTRIES: usize = 1024;
/// How long connecting to the controller, or joining, may take.
pub const CONNECT: Duration = Duration::from_secs(10);
/// A connection on which nothing was heard for this long is asked whether it lives.
pub const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// How long the answer to that may take.
pub const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(10);
/// Shortest wait before connecting again.
pub const BACKOFF_LEAST: Duration = Duration::from_millis(100);
/// Longest wait before connecting again.
pub const BACKOFF_MOST: Duration = Duration::from_secs(10);
/// Heartbeat where the controller names none.
pub const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long the answer to "which groups is this user in" is good.
pub const GROUPS_KNOWN: Duration = Duration::from_secs(60);
/// Between two looks at the GPUs: often enough for whoever looks at numbers, and next to no work for their driver.
pub const GPU_POLL: Duration = Duration::from_secs(10);
/// Shortest time between two looks at them that a configuration may ask for.
pub const GPU_POLL_LEAST: Duration = Duration::from_millis(50);
/// What happened to a GPU is kept so many times; each is told anew with every report.
pub const GPU_EVENTS: usize = 16;
/// Processes of one GPU that are told.
pub const GPU_PROCESSES: usize = 64;
/// SIGTERM to SIGKILL where nobody said how long, in milliseconds.
pub const GRACE_MS: u64 = 30_000;
/// Between two tries to kill what is left of a step.
pub const STEP_KILL_AGAIN: Duration = Duration::from_millis(500);
/// How long the end of a task waits for the end of its output, which a process that it left behind may hold open.
pub const STEP_DRAIN: Duration = Duration::from_millis(200);
/// How long a step's streams may take to be reached, over all addresses.
pub const STEP_CONNECT: Duration = Duration::from_secs(20);
/// Messages that wait for whoever started a step; then its tasks wait.
pub const STEP_OUTBOX: usize = 16;
/// Bytes of output on their way to whoever started a step, for each node.
pub const STEP_WINDOW_BYTES: u32 = 1 << 20;

/// Signals for an attempt that its shim has not taken.
pub const SIGNALS_KEPT: usize = 16;
