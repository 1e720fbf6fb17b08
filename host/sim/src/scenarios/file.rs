//! A file of scenarios, as it is written. Every case is read on its own, so that one with something unknown in it fails
//! alone.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The format that this version reads.
const FORMAT: &str = "ephor-scenarios/1";

#[derive(Deserialize)]
struct File {
    meta: Meta,
    scenarios: Vec<Value>,
}

#[derive(Deserialize)]
struct Meta {
    format: String,
}

/// One case.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub id: String,
    #[serde(default)]
    pub title: String,
    /// Where it comes from, for people.
    #[serde(default, rename = "origin")]
    _origin: Option<String>,
    #[serde(default, rename = "source")]
    _source: Option<String>,
    #[serde(default, rename = "note")]
    _note: Option<String>,
    /// The one step that is meant; `None`: whole cycles.
    pub action: Option<String>,
    #[serde(default)]
    pub cluster: BTreeMap<String, NodeEntry>,
    #[serde(default)]
    pub queues: Vec<QueueEntry>,
    #[serde(default)]
    pub running: Vec<JobEntry>,
    #[serde(default)]
    pub pending: Vec<JobEntry>,
    #[serde(default)]
    pub expect: BTreeMap<String, Expected>,
    /// `{placement: free}`: only what runs and waits counts, not where.
    #[serde(default)]
    pub compare: Option<BTreeMap<String, String>>,
    /// Levels of the topology, from the outermost.
    #[serde(default, rename = "topology")]
    _topology: Vec<String>,
    // Of cases about one step only.
    /// GPUs that are divided.
    pub total: Option<f64>,
    /// How much past use lowers a weight.
    pub k: Option<f64>,
    #[serde(default)]
    pub shares: Vec<ShareEntry>,
    /// What nobody gets.
    pub expect_remaining: Option<f64>,
    #[serde(default, rename = "grace_s")]
    _grace_s: Option<i64>,
    #[serde(default, rename = "cases")]
    _cases: Vec<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeEntry {
    pub gpus: u32,
    /// Cores; `None`: as many as one likes.
    pub cpu: Option<u32>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub mig: BTreeMap<String, u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueueEntry {
    pub name: String,
    pub parent: Option<String>,
    pub quota: Option<f64>,
    pub limit: Option<f64>,
    pub weight: Option<i64>,
    pub priority: Option<i64>,
}

/// A queue among which GPUs are divided, and what it must get.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShareEntry {
    pub q: String,
    pub parent: Option<String>,
    pub quota: Option<f64>,
    pub limit: Option<f64>,
    pub weight: Option<i64>,
    pub priority: Option<i64>,
    #[serde(default)]
    pub request: f64,
    /// Part of the cluster that it used lately.
    #[serde(default)]
    pub usage: f64,
    pub expect: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobEntry {
    pub job: String,
    pub queue: String,
    pub class: Class,
    #[serde(default)]
    pub gpu: f64,
    pub pods: Option<u32>,
    pub min: Option<u32>,
    #[serde(default)]
    pub at: Vec<String>,
    pub device: Option<u32>,
    pub state: Option<String>,
    pub required: Option<String>,
    pub preferred: Option<String>,
    #[serde(default)]
    pub pod_mig: Vec<BTreeMap<String, u32>>,
}

/// What a job is.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Class {
    /// Priority 50, gives way.
    Train,
    /// Priority 100, stays.
    Build,
}

/// What must have become of a job.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expected {
    pub run: Option<bool>,
    pub wait: Option<bool>,
    pub run_pods: Option<u32>,
    #[serde(default)]
    pub at: Vec<String>,
    pub device: Option<u32>,
    #[serde(default)]
    pub within: BTreeMap<String, String>,
    pub reason: Option<String>,
    pub state: Option<String>,
    #[serde(default)]
    pub explain: BTreeMap<String, String>,
}

/// A case, or its name and why it is not understood.
pub(super) type Read = Result<Case, (String, String)>;

/// The cases of a file, in order.
///
/// # Errors
/// The text is no YAML, or no file of scenarios in the format of this version.
pub(super) fn read(text: &str) -> Result<Vec<Read>, String> {
    let file: File = serde_saphyr::from_str(text).map_err(|e| e.to_string())?;
    if file.meta.format != FORMAT {
        return Err(format!("its format is '{}'; this version reads {FORMAT}", file.meta.format));
    }
    let case = |(index, value): (usize, Value)| {
        let id = value.get("id").and_then(Value::as_str).map_or_else(|| format!("case {}", index + 1), str::to_owned);
        serde_json::from_value(value).map_err(|e| (id, format!("it is not understood: {e}")))
    };
    Ok(file.scenarios.into_iter().enumerate().map(case).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_case_is_bad_alone() {
        let text = "meta: {format: ephor-scenarios/1}\nscenarios:\n\
            - {id: A, cluster: {n0: {gpus: 2}}, pending: [{job: a, queue: q, class: train, gpu: 0.5}]}\n\
            - {id: B, clusters: {}}\n- {id: C, pending: [{job: a, queue: q, class: other}]}\n";
        let cases = read(text).unwrap();
        let first = cases[0].as_ref().unwrap();
        assert_eq!((first.id.as_str(), first.cluster["n0"].gpus, first.pending[0].gpu), ("A", 2, 0.5));
        assert!(cases[1].as_ref().unwrap_err().1.contains("unknown field `clusters`"));
        assert_eq!(cases[2].as_ref().unwrap_err().0, "C");
        assert!(read("meta: {format: other/2}\nscenarios: []").unwrap_err().contains("this version reads"));
        assert!(read("a: [").is_err());
    }
}
