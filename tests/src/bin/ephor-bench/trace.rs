//! How long a whole log takes in the simulator, through the WebAssembly policy.

use crate::figure::Figure;
use ephor_sim::settings::Settings;
use ephor_sim::simulate::{Choice, Options, simulate};
use serde_json::json;
use std::path::Path;

/// Where the log lies beside a checkout; it is not part of the project.
const KTH: &str = "../shared/traces/KTH-SP2-1996-2.1-cln.swf.gz";

/// The KTH log under EASY; nothing where the log is not there.
pub fn kth() -> anyhow::Result<Vec<Figure>> {
    if !Path::new(KTH).exists() {
        eprintln!("sim_kth_easy is left out: there is no {KTH}");
        return Ok(Vec::new());
    }
    let choice = Choice { scheduling: "backfill".into(), settings: Settings::default(), ..Choice::default() };
    let options = Options { trace: KTH.into(), processors: Some(100), choice, ..Options::default() };
    let mut runs = Vec::new();
    let mut cycles = 0;
    for _ in 0..5 {
        let report = simulate(&options, &mut ())?;
        cycles = report.cycles;
        runs.push(report.wall_s);
    }
    Ok(vec![Figure::of("sim_kth_easy", "s", runs, json!({"jobs": 28_467, "processors": 100, "cycles": cycles}))])
}
