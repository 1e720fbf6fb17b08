//! `ephor job why`: what a job waits for, in numbers, who said so, and when it could start.

use super::job_view::{Source, not_yet_inside, open_dependencies};
use super::jobs::{find, shown};
use super::{Answer, Services};
use crate::devices::out_of_service;
use crate::handle::Snapshot;
use crate::policies::Policies;
use crate::scheduling::{JobExplanation, PolicySource};
use ephor_core::records::JobEntry;
use ephor_core::replica::{priority_row, totals};
use ephor_core::roles::{Permission, PriorityBatch, Target};
use ephor_core::{Element, State};
use ephor_model::submit::hostlist;
use ephor_model::{Hold, JobId, JobState, ResourceId, Span, Timestamp};
use ephor_proto::v1;
use std::sync::Arc;
use tonic::{Request, Response, Status};

pub(super) async fn explain(services: &Arc<Services>, request: Request<v1::JobRef>) -> Answer<v1::Explanation> {
    let caller = services.access.caller(&request).await?;
    let reference = request.into_inner();
    let snapshot = services.handle.snapshot();
    let Some(meant) = find(&snapshot.state, reference) else {
        return super::list::explain_finished(services, &caller, reference).await;
    };
    let target = Target { owner: Some(meant.owner), name: meant.id.to_string() };
    services.access.allow(&caller, Permission::JobRead, target).await?;
    // Of an array the first element that waits speaks for all that wait.
    let id = if meant.whole { first_pending(&snapshot.state, meant.id) } else { meant.id };
    let element = |snapshot: &Snapshot| snapshot.state.element(id).map(|(entry, e)| (entry.clone(), e.clone()));
    let gone = || Status::not_found(format!("there is no job {}", shown(reference)));
    let (entry, element) = element(&snapshot).ok_or_else(gone)?;
    let now = services.handle.now();
    let notes = services.handle.notes();
    let source = Source { state: &snapshot.state, notes: &notes, now };
    let ordinal = (id.0 - entry.job.id.0) as u32;
    let mut answer = v1::Explanation { job: source.element(&entry, ordinal), ..v1::Explanation::default() };
    answer.lines = match element.state {
        JobState::Pending => held_back(&snapshot.state, &entry, &element, now),
        _ => past(&snapshot.state, id, &element),
    };
    if element.state == JobState::Pending && answer.lines.is_empty() {
        if let Some(said) = services.handle.explain(id).await {
            let JobExplanation { lines, policy, earliest, promised } = said;
            answer.lines = lines;
            if entry.job.spec.request.total().get(ResourceId::GPU) > 0 {
                answer.lines.extend(out_of_service(&snapshot.state));
            }
            if let Some(at) = earliest {
                answer.lines.push(match promised {
                    true => promised_on(&snapshot.state, id),
                    false => "the time below counts only jobs that run, not those that go before it".into(),
                });
                answer.earliest_start = Some(at.0);
            }
            answer.policy = policy;
        }
        if let Some(detail) = element.detail.as_ref().filter(|_| element.attempts > 0) {
            answer.lines.push(format!("its last attempt ended: {detail}"));
        }
        let policies = services.policies.clone();
        let factors = move || factors(&policies, &snapshot.state, id, now);
        answer.priority = services.queries.run(caller.peer.uid.0, factors).await.map_err(super::busy)?;
        let sum = answer.priority.iter().map(|f| f.value).fold(0, i64::saturating_add);
        answer.job.iter_mut().for_each(|job| job.priority = sum);
    }
    Ok(Response::new(answer))
}

/// That a start is promised, and where.
fn promised_on(state: &State, id: JobId) -> String {
    let Some(promise) = state.promises.get(&id) else { return "the time below is promised to it".into() };
    let names = promise.allocation.parts.iter().map(|p| state.node_name(p.node)).collect::<Vec<_>>();
    format!("the time below is promised to it, on {}", hostlist::fold(&names))
}

fn first_pending(state: &State, first: JobId) -> JobId {
    let pending =
        state.jobs.get(&first).and_then(|entry| entry.elements.iter().position(|e| e.state == JobState::Pending));
    JobId(first.0 + pending.unwrap_or(0) as u64)
}

/// What keeps a pending job from being looked at by the scheduler at all.
fn held_back(state: &State, entry: &JobEntry, element: &Element, now: Timestamp) -> Vec<String> {
    let job = &entry.job;
    let mut lines = Vec::new();
    match element.hold {
        Hold::None => {}
        Hold::User => lines.push("its owner holds it; 'ephor job release' lets it go".into()),
        Hold::Admin => lines.push("an operator holds it; only an operator can release it".into()),
    }
    if job.never || element.never {
        lines.push("a job that it depends on ended in another way, so it can never start; cancel it".into());
    } else if job.keeps_waiting(element) {
        lines.push(format!("it waits for {}", open_dependencies(state, job)));
    }
    let begin = element.eligible.or(job.spec.begin).filter(|at| *at > now);
    if let Some(at) = begin {
        let ahead = (at - now).to_clock();
        lines.push(format!("it may not start before {} UTC, in {ahead}", at.to_iso(Span(0))));
    }
    if let Some(latest) = job.spec.latest_start() {
        let left = Span((latest - now).0.max(0)).to_clock();
        lines.push(format!("it ends unstarted unless it starts within {left}, because of its deadline"));
    }
    match state.queues.get(&job.queue) {
        Some(queue) if !queue.state.starts() => {
            lines.push(format!("queue '{}' starts no jobs now", queue.name));
        }
        Some(_) => {}
        None => lines.push(format!("its queue '{}' is gone", job.spec.queue)),
    }
    lines.extend(not_yet_inside(state, job, now));
    lines
}

/// What became of a job that does not wait.
fn past(state: &State, id: JobId, element: &Element) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(attempt) = state.attempts.get(&id) {
        let nodes: Vec<String> = attempt.allocation.parts.iter().map(|p| state.node_name(p.node)).collect();
        lines.push(format!("it holds {} since {} UTC", nodes.join(", "), attempt.started.to_iso(Span(0))));
        if let Some(eviction) = attempt.eviction() {
            lines.push(format!("it gives way: {}", eviction.why));
        }
        if attempt.told_to_end().is_some() {
            lines.push("its end was ordered; its node has not confirmed it yet".into());
        }
        if attempt.lost {
            lines.push("its node is silent: it is lost, not ended, until the node comes back".into());
        }
    } else {
        lines.push(format!("exit code {}, signal {}", element.exit.code, element.exit.signal));
        lines.extend(element.detail.as_ref().map(ToString::to_string));
    }
    lines
}

fn factors(policies: &Policies, state: &State, id: JobId, now: Timestamp) -> Vec<v1::Factor> {
    let (Some(policy), Some(row)) = (policies.priority(now), priority_row(state, id)) else { return Vec::new() };
    let batch = Arc::new(PriorityBatch { now, rows: vec![row], totals: totals(state) });
    match policy.explain(batch, 0) {
        Ok(factors) => factors.into_iter().map(|f| v1::Factor { name: f.name, value: f.value, how: f.how }).collect(),
        Err(fault) => vec![v1::Factor { name: "unknown".into(), value: 0, how: fault.to_string() }],
    }
}
