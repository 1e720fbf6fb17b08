//! Moves finished jobs from the live state to the history, and finds them there.
//!
//! A job is appended durably there before it is forgotten here: a crash in between leaves it in both, never in neither.

use crate::handle::Handle;
use ephor_core::records::JobEntry;
use ephor_core::{Command, State};
use ephor_model::{AttemptKey, JobId, Span, Timestamp, limits};
use ephor_store::{History, HistoryJob, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// Records of one append.
const RECORDS: usize = 10_000;
/// Jobs forgotten in one command, so that submits are never behind a long one.
const FORGOTTEN_AT_ONCE: usize = 500;
/// Finished jobs that are left when there are too many: moving starts anew only after many more have ended.
const KEPT: u64 = limits::FINISHED_IN_LIVE_STATE as u64 * 3 / 4;
/// Longest wait for the charge of a job that is due; then it moves without.
const CHARGE_PATIENCE: Span = Span::minutes(10);
/// Records of an array looked at in one go.
const PAGE: usize = 10_000;

/// Runs until the controller stops. Jobs move when they ended so long ago, or when there are too many.
pub(crate) async fn run(history: Arc<History>, handle: Handle, min_age: Span) {
    let pause = Duration::from_millis((min_age.0 / 4).clamp(100, 2_000) as u64);
    loop {
        tokio::time::sleep(pause).await;
        if let Err(error) = sweep(&history, &handle, min_age).await {
            tracing::error!(error, "finished jobs stay in the live state for now");
        }
    }
}

async fn sweep(history: &Arc<History>, handle: &Handle, min_age: Span) -> Result<(), String> {
    let state = handle.snapshot().state.clone();
    if state.derived.finished == 0 {
        return Ok(());
    }
    let now = handle.now();
    let due = tokio::task::spawn_blocking(move || due(&state, now, min_age)).await.map_err(|e| e.to_string())?;
    for ids in batches(&due) {
        let (history, state) = (history.clone(), handle.snapshot().state.clone());
        let wanted = ids.to_vec();
        let append = move || history.append(&records(&state, &wanted));
        tokio::task::spawn_blocking(append).await.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
        for part in ids.chunks(FORGOTTEN_AT_ONCE) {
            let forget = part.iter().map(|(id, _)| *id).collect();
            handle.run(Command::Forget(forget)).await.map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

/// Jobs that can move, by their first ids, with the number of their elements: oldest ends first.
fn due(state: &State, now: Timestamp, min_age: Span) -> Vec<(JobId, usize)> {
    let finished = state.jobs.values().filter(|entry| entry.unfinished == 0);
    let mut ends: Vec<(Timestamp, JobId, usize)> = finished
        .filter_map(|entry| {
            let ended = entry.elements.iter().filter_map(|e| e.ended).max().unwrap_or(entry.job.submitted);
            let charged = !awaits_charge(state, entry) || now - ended > CHARGE_PATIENCE;
            charged.then_some((ended, entry.job.id, entry.elements.len()))
        })
        .collect();
    ends.sort_unstable();
    let too_many = state.derived.finished > limits::FINISHED_IN_LIVE_STATE as u64;
    let mut surplus = if too_many { state.derived.finished - KEPT } else { 0 };
    let mut due = Vec::new();
    for (ended, id, elements) in ends {
        if now - ended < min_age && surplus == 0 {
            break;
        }
        surplus = surplus.saturating_sub(elements as u64);
        due.push((id, elements));
    }
    due
}

/// Whether an attempt of the job is not charged yet: its record would lack the charge.
fn awaits_charge(state: &State, entry: &JobEntry) -> bool {
    let first = entry.job.id;
    let last = JobId(first.0 + entry.elements.len() as u64 - 1);
    let keys = AttemptKey { job: first, number: 0 }..=AttemptKey { job: last, number: u32::MAX };
    state.uncharged.range(keys).next().is_some()
}

/// Splits jobs so that each part has about [`RECORDS`] elements; an array stays whole.
fn batches(due: &[(JobId, usize)]) -> Vec<&[(JobId, usize)]> {
    let mut out = Vec::new();
    let mut rest = due;
    while !rest.is_empty() {
        let mut elements = 0;
        let fits = rest.iter().take_while(|(_, n)| {
            elements += n;
            elements <= RECORDS
        });
        let (part, more) = rest.split_at(fits.count().max(1));
        out.push(part);
        rest = more;
    }
    out
}

fn records(state: &State, jobs: &[(JobId, usize)]) -> Vec<HistoryJob> {
    let entries = jobs.iter().filter_map(|(id, _)| state.jobs.get(id)).filter(|entry| entry.unfinished == 0);
    let ordinals = entries.flat_map(|entry| (0..entry.elements.len() as u32).map(move |o| (entry, o)));
    ordinals.filter_map(|(entry, ordinal)| HistoryJob::from_entry(state, entry, ordinal)).collect()
}

/// Records that a reference means: a job, an element by its own id, all elements of an array, or the one with an index.
///
/// # Errors
/// The history cannot be read.
pub(crate) fn find(history: &History, id: JobId, index: Option<u32>) -> Result<Vec<HistoryJob>, StoreError> {
    let Some(index) = index else {
        let all = history.get_array(id, id, limits::QUERY_ROWS)?;
        return match all.is_empty() {
            true => Ok(history.get(id)?.into_iter().collect()),
            false => Ok(all),
        };
    };
    let mut from = id;
    loop {
        let page = history.get_array(id, from, PAGE)?;
        let Some(last) = page.last().map(|record| record.id) else { return Ok(Vec::new()) };
        let found = page.into_iter().find(|record| record.array.is_some_and(|place| place.index == index));
        if found.is_some() {
            return Ok(found.into_iter().collect());
        }
        from = JobId(last.0 + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_keep_arrays_whole() {
        let due: Vec<_> =
            [5_000, 4_000, 3_000, 50_000, 1].into_iter().enumerate().map(|(i, n)| (JobId(i as u64), n)).collect();
        let sizes: Vec<usize> = batches(&due).iter().map(|part| part.len()).collect();
        assert_eq!(sizes, [2, 1, 1, 1]);
        assert!(batches(&[]).is_empty());
    }
}
