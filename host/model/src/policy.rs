//! Which component fills which role: roles, slots, generations and their limits.

use crate::id::Digest;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A kind of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Who a caller is and what that identity may do.
    Authentication,
    /// Whether a job is taken, and with which changes.
    Admission,
    /// Which job is worth how much.
    Priority,
    /// What starts where and who gives way.
    Scheduling,
    /// What it costs and what is left.
    Accounting,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 5] =
        [Self::Authentication, Self::Admission, Self::Priority, Self::Scheduling, Self::Accounting];

    /// Name as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Authentication => "authentication",
            Self::Admission => "admission",
            Self::Priority => "priority",
            Self::Scheduling => "scheduling",
            Self::Accounting => "accounting",
        }
    }

    /// The role of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.name() == text)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A place that one generation fills: `scheduling`, `authentication/local`, `admission/50-defaults`.
/// Admission policies run in the order of their slots' names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slot {
    /// The role.
    pub role: Role,
    /// Credential kind for authentication, place in the chain for admission, empty for the other roles.
    pub name: String,
}

impl Slot {
    /// The slot that is meant when only the role is named.
    pub fn default_of(role: Role) -> Self {
        let name = match role {
            Role::Authentication => "local",
            Role::Admission => "50-main",
            _ => "",
        };
        Self { role, name: name.into() }
    }

    /// Reads `ROLE` or `ROLE/NAME`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once('/') {
            None => Role::parse(text).map(Self::default_of),
            Some((role, name)) => {
                let role = Role::parse(role)?;
                let named = matches!(role, Role::Authentication | Role::Admission) && !name.is_empty();
                named.then(|| Self { role, name: name.into() })
            }
        }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.as_str() {
            "" => self.role.fmt(f),
            name => write!(f, "{}/{name}", self.role),
        }
    }
}

/// Bounds of one call of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyLimits {
    /// Fuel of a call, in wasmtime's units (about one a Wasm instruction).
    pub fuel_base: u64,
    /// Fuel added for each job handed over or pending.
    pub fuel_per_job: u64,
    /// Fuel added for each node.
    pub fuel_per_node: u64,
    /// Linear memory in bytes.
    pub memory_bytes: u64,
    /// Bytes that the guest may hand over in one call.
    pub output_bytes: u64,
    /// Host work units of a call; what a unit is stands with each operation in `wit/`.
    pub work_units: u64,
}

impl Default for PolicyLimits {
    fn default() -> Self {
        Self {
            fuel_base: 50_000_000,
            fuel_per_job: 20_000,
            fuel_per_node: 2_000,
            memory_bytes: 64 << 20,
            output_bytes: 16 << 20,
            work_units: 200_000_000,
        }
    }
}

/// A component with its configuration, limits and grants, activated and rolled back as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Number, growing over the life of the cluster.
    pub number: u64,
    /// The policy's name, from its manifest.
    pub name: String,
    /// The policy's version, from its manifest.
    pub version: String,
    /// Digest of the component.
    pub component: Digest,
    /// Configuration as JSON text.
    pub config: String,
    /// Bounds of a call.
    pub limits: PolicyLimits,
    /// Imports that the site granted, such as `ephor:host/log`.
    pub grants: Vec<String>,
    /// When it was activated.
    pub since: Timestamp,
    /// Who activated it.
    pub by: String,
}
