//! One measured figure, as it is printed.

use serde::Serialize;

/// See the module.
#[derive(Serialize)]
pub struct Figure {
    /// Name.
    pub name: String,
    /// Median of the runs.
    pub value: f64,
    /// Unit.
    pub unit: &'static str,
    /// How many runs.
    pub runs: usize,
    /// Smallest run.
    pub min: f64,
    /// Largest run.
    pub max: f64,
    /// What was set.
    pub settings: serde_json::Value,
}

impl Figure {
    /// The median of some runs.
    ///
    /// # Panics
    /// Without a run.
    pub fn of(name: impl Into<String>, unit: &'static str, mut runs: Vec<f64>, settings: serde_json::Value) -> Self {
        assert!(!runs.is_empty(), "a figure needs a run");
        runs.sort_by(f64::total_cmp);
        let round = |x: f64| (x * 1000.0).round() / 1000.0;
        Self {
            name: name.into(),
            value: round(runs[runs.len() / 2]),
            unit,
            runs: runs.len(),
            min: round(runs[0]),
            max: round(runs[runs.len() - 1]),
            settings,
        }
    }
}
