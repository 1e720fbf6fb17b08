//! What the policies' calls cost in a running controller: read from its own counters after a load of submits.

use crate::figure::Figure;
use crate::submits;
use ephor_proto::v1;
use ephor_tests::{Options, TestCluster};
use serde_json::json;

/// Mean time of a call, for each slot, after 5,000 submits.
pub fn run() -> anyhow::Result<Vec<Figure>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cluster = TestCluster::start(Options { agents: 0, simulated: 4, ..Options::default() });
    let policies = runtime.block_on(async {
        submits::one(&cluster, 8, 1, 5_000).await?;
        anyhow::Ok(cluster.client().await.list_policies(v1::Empty {}).await?.into_inner().policies)
    })?;
    let figures = policies.into_iter().filter(|p| p.calls > 0).map(|p| {
        let settings = json!({"policy": p.name, "calls": p.calls, "max_us": p.max_call_ns as f64 / 1000.0,
            "mean_fuel": p.mean_fuel, "fuel_budget": p.fuel_budget});
        Figure::of(format!("policy_call_{}", p.slot), "us", vec![p.mean_call_ns as f64 / 1000.0], settings)
    });
    Ok(figures.collect())
}
