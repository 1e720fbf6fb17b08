//! Signals for running jobs: passed on to the first node of each, and not remembered.

use super::jobs::{JOBS_AT_ONCE, find, not_here, problem, target};
use super::{Answer, Services};
use ephor_core::roles::Permission;
use ephor_core::{AttemptPhase, State};
use ephor_model::JobId;
use ephor_proto::v1;
use std::sync::Arc;
use tonic::{Request, Response, Status};

pub(super) async fn send(services: &Arc<Services>, request: Request<v1::SignalRequest>) -> Answer<v1::JobActionReply> {
    let caller = services.access.caller(&request).await?;
    let wire = request.into_inner();
    if wire.jobs.len() > JOBS_AT_ONCE {
        let text = format!("{} jobs at once are more than {JOBS_AT_ONCE}; name fewer", wire.jobs.len());
        return Err(Status::invalid_argument(text));
    }
    let (number, to) = (wire.number, wire.to());
    if !(1..=31).contains(&number) {
        return Err(Status::invalid_argument(format!("{number} is no signal; signals are 1 to 31")));
    }
    let snapshot = services.handle.snapshot();
    let state = &snapshot.state;
    let mut problems = Vec::new();
    let mut wanted = Vec::new();
    for reference in wire.jobs {
        match find(state, reference) {
            Some(meant) => wanted.push((reference, meant)),
            None => problems.push(problem(reference, not_here(services, reference))),
        }
    }
    let targets = wanted.iter().map(|(_, meant)| target(meant)).collect();
    let verdicts = services.access.allow_each(&caller, Permission::JobWrite, targets).await?;
    for ((reference, meant), verdict) in wanted.into_iter().zip(verdicts) {
        let count =
            if meant.whole { state.find(meant.id).map_or(1, |(entry, _)| entry.elements.len() as u64) } else { 1 };
        let sent = verdict.map_err(|status| status.message().to_owned()).and_then(|()| {
            let each = (0..count).map(|ordinal| one(services, state, JobId(meant.id.0 + ordinal), number, to));
            // Of an array those get it that run; where none does, the first says why.
            let all: Vec<Result<(), String>> = each.collect();
            match all.iter().any(Result::is_ok) {
                true => Ok(()),
                false => all.into_iter().next().unwrap_or(Ok(())),
            }
        });
        if let Err(text) = sent {
            problems.push(problem(reference, text));
        }
    }
    Ok(Response::new(v1::JobActionReply { problems }))
}

fn one(services: &Services, state: &State, job: JobId, number: i32, to: v1::SignalTo) -> Result<(), String> {
    match state.attempts.get(&job) {
        None if state.element(job).is_some_and(|(_, element)| element.state.is_final()) => Err("it has ended".into()),
        None => Err("it does not run yet, so that nothing could get the signal".into()),
        Some(attempt) if matches!(attempt.phase, AttemptPhase::Ending { .. }) => Err("it is being ended".into()),
        Some(attempt) => services.sessions.signal(state, attempt, number, to),
    }
}
