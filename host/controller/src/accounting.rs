//! Charges what ended, through the accounting policy, and lets the ledger fade at its boundaries.
//!
//! When the policy fails, attempts stay uncharged and are handed over again later, to the same generation or the next.

use crate::handle::Handle;
use crate::policies::Policies;
use ephor_core::Command;
use ephor_core::records::Uncharged;
use ephor_core::roles::Accounting;
use ephor_model::AttemptKey;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Attempts of one call.
const BATCH: usize = 10_000;
/// Between two looks.
const PERIOD: Duration = Duration::from_millis(500);
/// Longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Runs until the controller stops.
pub async fn run(policies: Arc<Policies>, handle: Handle) {
    // After a failure: which generation failed, and when it is asked again. A new one is asked at once.
    let mut failed: Option<(u64, Instant)> = None;
    let mut pause = PERIOD;
    loop {
        tokio::time::sleep(PERIOD).await;
        fade(&handle).await;
        let generation = policies.accounting().map_or(0, |loaded| loaded.about().generation);
        if failed.is_some_and(|(which, until)| which == generation && Instant::now() < until) {
            continue;
        }
        loop {
            match charge(&policies, &handle).await {
                // A full batch: more is waiting.
                Ok(BATCH) => continue,
                Ok(_) => (failed, pause) = (None, PERIOD),
                Err(error) => {
                    tracing::warn!(error, "ended attempts stay uncharged for now");
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    failed = Some((generation, Instant::now() + pause));
                }
            }
            break;
        }
    }
}

/// Charges one batch: how many attempts it had.
async fn charge(policies: &Policies, handle: &Handle) -> Result<usize, String> {
    let snapshot = handle.snapshot();
    if snapshot.state.uncharged.is_empty() {
        return Ok(0);
    }
    let loaded = match policies.accounting() {
        Ok(loaded) => loaded,
        // A site without accounting is a site that charges nothing.
        Err(fault) if crate::policies::is_missing(&fault) => return Ok(0),
        Err(fault) => return Err(fault.to_string()),
    };
    let rows: Vec<Uncharged> = snapshot.state.uncharged.values().take(BATCH).map(|u| (**u).clone()).collect();
    drop(snapshot);
    let keys: Vec<AttemptKey> = rows.iter().map(|u| u.key).collect();
    let call = move || loaded.accounting()?.charge(Arc::new(rows));
    let prices = tokio::task::spawn_blocking(call).await.map_err(|e| e.to_string())?.map_err(|f| f.to_string())?;
    let count = keys.len();
    let charges = keys.into_iter().zip(prices).collect();
    handle.run(Command::Charge(charges)).await.map_err(|e| e.to_string())?;
    Ok(count)
}

async fn fade(handle: &Handle) {
    let meta = handle.snapshot().state.meta.clone();
    let due = meta.fading.period.0 > 0 && handle.now() >= meta.faded_at + meta.fading.period;
    if due && let Err(error) = handle.run(Command::Fade).await {
        tracing::warn!(%error, "the ledger did not fade; it is tried again");
    }
}
