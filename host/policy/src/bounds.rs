//! Every bound of the policy host that is not a generation's own, with its unit and its reason.

use ephor_model::{PolicyLimits, Role};

/// Bytes of a manifest. The largest part is the schema of the configuration.
pub const MANIFEST_BYTES: usize = 256 << 10;
/// Imports or exports of a component; the contract has about ten.
pub const NAMES: usize = 1_000;
/// Lines that a call may write to the log, as `wit/host` says.
pub const LOG_LINES: u32 = 64;
/// Bytes that a call may write to the log, as `wit/host` says.
pub const LOG_BYTES: usize = 16 << 10;
/// Resources of the host (placings, slots) that a call may hold at a time.
pub const RESOURCES: usize = 10_000;
/// Nodes of all slots that a call holds at a time; the host keeps about 100 bytes for each.
pub const NODES_IN_SLOTS: usize = 4_000_000;
/// Handles in a component's own tables.
pub const HANDLES: usize = 20_000;
/// Entries in all tables of an instance; a table holds functions that are called by pointer.
pub const TABLE_ELEMENTS: usize = 100_000;
/// Linear memories of a component. One is what toolchains make.
pub const MEMORIES: u32 = 2;
/// Tables of a component.
pub const TABLES: u32 = 16;
/// Core instances of a component; an interpreter in a component has about twenty.
pub const CORE_INSTANCES: u32 = 64;
/// Calls that run at the same time. More wait: each may hold up to its limit of memory.
pub const CALLS_AT_ONCE: u32 = 32;
/// Instances of a generation that wait for its next calls; as many as make waking the thread for them cheap.
pub const AHEAD: usize = 16;
/// Instances of all generations that wait for a call or to be taken down, besides those that are called.
pub const AHEAD_AT_ONCE: u32 = 64;
/// Bytes of memory of all used instances that wait to be taken down.
pub const AHEAD_BYTES: usize = 1 << 30;
/// Bytes of each linear memory that stay resident between calls: a Rust guest's stack (1 MiB), its data and some heap.
pub const MEMORY_KEPT: usize = 2 << 20;
/// Bytes of each table that stay resident between calls.
pub const TABLE_KEPT: usize = 64 << 10;
/// Bytes of stack that Wasm may use; a thread of the smallest default size (2 MiB) keeps most of its own.
pub const STACK_BYTES: usize = 512 << 10;
/// Frames of a trap that are kept for the message.
pub const FRAMES: usize = 8;
/// Frames of a trap that are looked at: the panic machinery of a guest takes some.
pub const FRAMES_READ: usize = 24;
/// Faults of a generation that are remembered.
pub const FAULTS_KEPT: usize = 16;
/// Bytes of a fault's message.
pub const FAULT_BYTES: usize = 2048;
/// Roles of an identity.
pub const ROLES: usize = 32;
/// Groups of a user that a policy is told of; Linux knows no more of one process.
pub const GROUPS: usize = 65_536;
/// Lines that an admission policy may tell the user.
pub const ADMIT_LINES: usize = 64;
/// Features of one job.
pub const FEATURES: usize = 64;
/// Parts of one priority.
pub const FACTORS: usize = 64;
/// Rows of allowances, as `wit/accounting` says.
pub const ALLOWANCES: usize = 100_000;
/// Rows that one operation of a cycle takes.
pub const ROWS_AT_ONCE: usize = 100_000;
/// Largest charge of one attempt, in accounting units: eight of them in one sum stay below what 64 bits hold.
pub const CHARGE: i64 = 1 << 60;
/// Compiled components kept in the cache folder.
pub const CACHED: usize = 64;

/// What a site allows a role where it says nothing else. Host work is worth about 10 ns a unit; a scheduling cycle
/// may take far more of it than one login.
pub fn site_maxima(role: Role) -> PolicyLimits {
    let work_units = match role {
        Role::Authentication => 5_000_000,
        Role::Admission => 10_000_000,
        Role::Priority | Role::Accounting => 50_000_000,
        Role::Scheduling => 200_000_000,
    };
    let usual = PolicyLimits { work_units, ..PolicyLimits::default() };
    match role {
        // Room to weigh every node for each of many jobs, as `scheduling-packing` does.
        Role::Scheduling => PolicyLimits { fuel_per_job: 400_000, fuel_per_node: 300_000, ..usual },
        _ => usual,
    }
}
