//! The manifest: what a policy says of itself, readable without running it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::BuildError;

/// A kind of decision.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Who is calling, and what they may do.
    Authentication,
    /// Whether a job is taken, and with what changes.
    Admission,
    /// Which job is worth how much.
    Priority,
    /// What starts where.
    Scheduling,
    /// What use costs.
    Accounting,
}

impl Role {
    /// The interface that a component of this role exports, without its version.
    pub fn interface(self) -> String {
        format!("ephor:{self}/{self}")
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Authentication => "authentication",
            Self::Admission => "admission",
            Self::Priority => "priority",
            Self::Scheduling => "scheduling",
            Self::Accounting => "accounting",
        })
    }
}

/// Fuel for one call: `base + per_job x jobs + per_node x nodes`; about one unit an instruction.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fuel {
    /// Units of every call.
    pub base: u64,
    /// Units for each job that the call is about.
    pub per_job: u64,
    /// Units for each node of the cluster.
    pub per_node: u64,
}

/// What a policy says of itself.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Lower-case letters, digits and dashes; the name of the crate.
    pub name: String,
    /// The version of the crate.
    pub version: String,
    /// The decision it makes.
    pub role: Role,
    /// One line for people.
    pub summary: String,
    /// Packages of the contract that it was built against, with versions.
    pub packages: Vec<String>,
    /// Interfaces of `ephor:host` that it asks for, without version.
    pub imports: Vec<String>,
    /// Admission only: whether it changes jobs, or only looks.
    #[serde(default)]
    pub mutating: bool,
    /// JSON Schema of the configuration.
    pub schema: Map<String, Value>,
    /// Fuel that a call may burn.
    pub fuel: Fuel,
    /// Bytes of linear memory that an instance may have.
    pub memory_bytes: u64,
}

impl Manifest {
    /// Reads and checks a manifest.
    ///
    /// # Errors
    /// [`BuildError::Manifest`] with the field and what it should be.
    pub fn parse(json: &[u8]) -> Result<Self, BuildError> {
        let manifest: Self = serde_json::from_slice(json).map_err(|why| BuildError::Manifest(why.to_string()))?;
        match manifest.complaint() {
            Some(text) => Err(BuildError::Manifest(text)),
            None => Ok(manifest),
        }
    }

    fn complaint(&self) -> Option<String> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(plain) {
            return Some(format!("name {:?} must be 1 to 64 lower-case letters, digits and dashes", self.name));
        }
        if self.summary.trim().is_empty() || self.summary.contains('\n') {
            return Some("summary must be one line that says what the policy does".to_owned());
        }
        let package = format!("ephor:{}@", self.role);
        if !self.packages.iter().any(|p| p.starts_with(&package)) {
            return Some(format!("packages must name the package of the role, such as \"{package}0.1.0\""));
        }
        if let Some(other) = self.imports.iter().find(|i| !i.starts_with("ephor:host/") || i.contains('@')) {
            return Some(format!("imports may name interfaces of ephor:host without a version, not {other:?}"));
        }
        if self.mutating && self.role != Role::Admission {
            return Some(format!("mutating is for admission only, and the role is {}", self.role));
        }
        if self.fuel.base == 0 {
            return Some("fuel.base must be more than 0: a call with no fuel ends at its first instruction".to_owned());
        }
        if !(65_536..=4_294_967_296).contains(&self.memory_bytes) {
            return Some(format!("memory_bytes must be 65536 (one page) to 4294967296, not {}", self.memory_bytes));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Value {
        serde_json::json!({
            "name": "a-b", "version": "0.1.0", "role": "scheduling", "summary": "Does it.",
            "packages": ["ephor:scheduling@0.1.0"], "imports": ["ephor:host/log"], "schema": {},
            "fuel": {"base": 1, "per_job": 0, "per_node": 0}, "memory_bytes": 1_048_576
        })
    }

    fn complaint(change: impl FnOnce(&mut Value)) -> String {
        let mut json = example();
        change(&mut json);
        match Manifest::parse(json.to_string().as_bytes()) {
            Ok(manifest) => panic!("taken: {manifest:?}"),
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn a_good_one_is_taken_and_mutating_defaults_to_false() {
        let manifest = Manifest::parse(example().to_string().as_bytes()).unwrap();
        assert_eq!((manifest.role, manifest.mutating), (Role::Scheduling, false));
    }

    #[test]
    fn complaints_name_the_field() {
        assert!(complaint(|j| j["name"] = "A b".into()).contains("lower-case"));
        assert!(complaint(|j| j["extra"] = 1.into()).contains("extra"));
        assert!(complaint(|j| j["role"] = "cooking".into()).contains("cooking"));
        assert!(complaint(|j| j["summary"] = " ".into()).contains("summary"));
        assert!(complaint(|j| j["packages"] = Value::Array(vec![])).contains("ephor:scheduling@0.1.0"));
        assert!(complaint(|j| j["imports"][0] = "wasi:io/streams".into()).contains("wasi:io/streams"));
        assert!(complaint(|j| j["mutating"] = true.into()).contains("admission only"));
        assert!(complaint(|j| j["fuel"]["base"] = 0.into()).contains("fuel.base"));
        assert!(complaint(|j| j["memory_bytes"] = 0.into()).contains("memory_bytes"));
    }
}
