//! The manifest: what a policy says of itself, readable without running it.

use crate::bounds;
use crate::error::LoadError;
use ephor_model::{PolicyLimits, Role, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Fuel of one call: `base + per_job x jobs + per_node x nodes`, about one unit an instruction.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fuel {
    /// Units of every call.
    pub base: u64,
    /// Units for each job that is handed over or pending.
    pub per_job: u64,
    /// Units for each node of the cluster.
    pub per_node: u64,
}

impl Fuel {
    /// Fuel of a call about so many jobs and nodes.
    pub fn of(self, jobs: u64, nodes: u64) -> u64 {
        let jobs = self.per_job.saturating_mul(jobs);
        self.base.saturating_add(jobs).saturating_add(self.per_node.saturating_mul(nodes))
    }
}

/// What a policy says of itself.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// The decision it makes.
    pub role: Role,
    /// One line for people.
    pub summary: String,
    /// Packages of the contract that it was built against, such as `ephor:scheduling@0.1.0`.
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
    /// [`LoadError::Manifest`] with the field and what it should be.
    pub fn parse(json: &[u8]) -> Result<Self, LoadError> {
        if json.len() > bounds::MANIFEST_BYTES {
            let text = format!("it has {} bytes; at most {} are taken", json.len(), bounds::MANIFEST_BYTES);
            return Err(LoadError::Manifest(text));
        }
        let manifest: Self = serde_json::from_slice(json).map_err(|e| LoadError::Manifest(e.to_string()))?;
        match manifest.complaint() {
            Some(text) => Err(LoadError::Manifest(text)),
            None => Ok(manifest),
        }
    }

    fn complaint(&self) -> Option<String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '+' | '_');
        for (field, text) in [("name", &self.name), ("version", &self.version)] {
            if text.is_empty() || text.len() > limits::NAME_BYTES || !text.chars().all(plain) {
                return Some(format!("{field} {text:?} must be 1 to {} letters, digits and -._+", limits::NAME_BYTES));
            }
        }
        if self.summary.len() > limits::TEXT_BYTES || self.summary.chars().any(char::is_control) {
            return Some(format!("summary must be one line of at most {} bytes", limits::TEXT_BYTES));
        }
        if self.mutating && self.role != Role::Admission {
            return Some(format!("mutating is for admission only, and the role is {}", self.role));
        }
        if self.fuel.base == 0 {
            return Some("fuel.base must be more than 0: a call with no fuel ends at its first instruction".to_owned());
        }
        if self.memory_bytes < 65_536 {
            return Some(format!("memory_bytes must be at least 65536 (one page), not {}", self.memory_bytes));
        }
        None
    }

    /// Bounds of a call: what the policy wishes, within what the site allows.
    pub fn bounded_by(&self, site: &PolicyLimits) -> PolicyLimits {
        PolicyLimits {
            fuel_base: self.fuel.base.min(site.fuel_base),
            fuel_per_job: self.fuel.per_job.min(site.fuel_per_job),
            fuel_per_node: self.fuel.per_node.min(site.fuel_per_node),
            memory_bytes: self.memory_bytes.min(site.memory_bytes),
            output_bytes: site.output_bytes,
            work_units: site.work_units,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Value {
        serde_json::json!({
            "name": "a-b", "version": "0.1.0", "role": "scheduling", "summary": "Does it.",
            "packages": ["ephor:scheduling@0.1.0"], "imports": ["ephor:host/log"], "schema": {},
            "fuel": {"base": 1000, "per_job": 0, "per_node": 7}, "memory_bytes": 1_048_576
        })
    }

    fn complaint(change: impl FnOnce(&mut Value)) -> String {
        let mut json = example();
        change(&mut json);
        Manifest::parse(json.to_string().as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn wishes_are_bounded_by_the_site() {
        let manifest = Manifest::parse(example().to_string().as_bytes()).unwrap();
        assert!(!manifest.mutating);
        let site = PolicyLimits { fuel_base: 500, memory_bytes: 1 << 30, ..PolicyLimits::default() };
        let bounded = manifest.bounded_by(&site);
        assert_eq!((bounded.fuel_base, bounded.fuel_per_node, bounded.memory_bytes), (500, 7, 1 << 20));
        assert_eq!(manifest.fuel.of(u64::MAX, 3), 1021);
        assert_eq!(Fuel { base: 1, per_job: 2, per_node: 0 }.of(u64::MAX, 0), u64::MAX);
    }

    #[test]
    fn complaints_name_the_field() {
        assert!(complaint(|j| j["name"] = "A b".into()).contains("name"));
        assert!(complaint(|j| j["extra"] = 1.into()).contains("extra"));
        assert!(complaint(|j| j["role"] = "cooking".into()).contains("cooking"));
        assert!(complaint(|j| j["summary"] = "a\nb".into()).contains("summary"));
        assert!(complaint(|j| j["mutating"] = true.into()).contains("admission only"));
        assert!(complaint(|j| j["fuel"]["base"] = 0.into()).contains("fuel.base"));
        assert!(complaint(|j| j["memory_bytes"] = 0.into()).contains("memory_bytes"));
        assert!(complaint(|j| j["summary"] = "x".repeat(bounds::MANIFEST_BYTES).into()).contains("bytes"));
    }
}
