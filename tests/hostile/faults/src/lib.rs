//! The faults that hostile policies of every role have in common.
//!
//! The configuration `{"fault": "loop"}` chooses one; without it the policy behaves. `"call"` says in which call of
//! the role it strikes, the role's first one where it is left out.

use std::hint::black_box;

use serde::Deserialize;

/// Bytes that a flood hands over at once.
pub const FLOOD_BYTES: usize = 100 << 20;
/// Bytes of a string that no limit of the host should take.
pub const HUGE_STRING_BYTES: usize = 10 << 20;

/// What a policy does wrong. Faults that a role has no use for are the same as `none`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Every role: never returns.
    Loop,
    /// Every role: takes memory without end.
    Memory,
    /// Every role: panics.
    Trap,
    /// Every role: hands over 100 MiB.
    Flood,
    /// Every role: calls itself without end.
    DeepRecursion,
    /// Every role: writes 100,000 lines to the log and then behaves.
    LogFlood,
    /// Roles that hand over texts: one of 10 MiB.
    HugeString,
    /// Priority, accounting: one value too few.
    TooFew,
    /// Priority, accounting: one value too many.
    TooMany,
    /// Priority: the largest and smallest integers; accounting: negative charges; authentication: an identity without
    /// a name that ended long ago; admission: values out of range in every setter.
    WrongValues,
    /// Scheduling: rows that no table has, in every operation.
    WrongRows,
    /// Scheduling: each job is started twice.
    DoubleStart,
    /// Scheduling: one row many times over in one list; accounting: the same allowance twice with different values.
    DuplicateIds,
    /// Scheduling: closes savepoints that were never opened, and leaves one open.
    Savepoints,
    /// Scheduling: asks for columns until the host's work budget is used up, then goes on.
    BurnWork,
    /// Admission: changes the job, then panics.
    ChangeThenTrap,
    /// Admission: changes the job, then refuses it.
    ChangeThenRefuse,
}

/// The configuration of every hostile policy.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What it does wrong.
    pub fault: Fault,
    /// In which call; empty: the first one of the role.
    pub call: String,
}

impl Config {
    /// The fault for this call, after those that are the same in every role have struck.
    pub fn strike(&self, call: &str, is_first: bool) -> Fault {
        let here = if self.call.is_empty() { is_first } else { self.call == call };
        if !here {
            return Fault::None;
        }
        match self.fault {
            Fault::Loop => spin(),
            Fault::Memory => bomb(),
            Fault::Trap => panic!("this policy panics on purpose"),
            Fault::DeepRecursion => {
                black_box(recurse(black_box(u64::MAX)));
            }
            Fault::LogFlood => log_flood(),
            _ => {}
        }
        self.fault
    }
}

/// Never returns.
pub fn spin() -> ! {
    loop {
        black_box(());
    }
}

/// Takes memory until there is none, and then traps.
pub fn bomb() -> ! {
    let mut taken: Vec<Vec<u8>> = Vec::new();
    loop {
        taken.push(black_box(vec![1; 1 << 20]));
    }
}

/// A text of so many bytes.
pub fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn recurse(n: u64) -> u64 {
    let here = black_box([n; 8]);
    if n == 0 { 0 } else { recurse(black_box(n - 1)).wrapping_add(here[3]) }
}

fn log_flood() {
    let line = text(1_000);
    for _ in 0..100_000 {
        ephor_sdk::log::info(&line);
    }
}
