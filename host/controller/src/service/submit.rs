//! Submitting: parse, authorise and admit on a pool of threads, then one command.

use super::{Answer, Services, busy, internal, status_of};
use crate::access::Caller;
use ephor_core::roles::{ClusterView, Intent, Permission, Target, Verdict};
use ephor_core::{Command, Reply, State};
use ephor_model::submit::directive::check_script;
use ephor_model::{Blobs, Dependency, Digest, Draft, JobState, Owner, limits};
use ephor_proto::convert::draft_from_wire;
use ephor_proto::v1;
use ephor_store::StoreError;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// A job that was let in, ready for the sequencer.
struct Admitted {
    command: Command,
    blobs: Vec<(Digest, Vec<u8>)>,
    messages: Vec<String>,
}

pub(super) async fn submit(services: &Arc<Services>, request: Request<v1::SubmitRequest>) -> Answer<v1::SubmitReply> {
    let caller = services.access.caller(&request).await?;
    let wire = request.into_inner();
    let uid = caller.peer.uid.0;
    let inner = services.clone();
    let admitted = services.admission.run(uid, move || admit(&inner, &caller, wire)).await.map_err(busy)??;
    let reply = services.handle.run_with_blobs(admitted.command, admitted.blobs).await.map_err(status_of)?;
    match reply {
        Reply::Job(id) => Ok(Response::new(v1::SubmitReply { job: id.0, messages: admitted.messages })),
        other => Err(internal(format!("a submit was answered with {other:?}"))),
    }
}

fn admit(services: &Services, caller: &Caller, wire: v1::SubmitRequest) -> Result<Admitted, Status> {
    let state = services.handle.snapshot().state.clone();
    // Before anything of the request is looked at any further.
    let asked = wire.queue.clone();
    let queue = match asked.as_str() {
        "" => state.queues.values().find(|q| q.default).map(|q| q.name.clone()).unwrap_or_default(),
        _ => asked,
    };
    allow_queue(services, caller, &queue)?;
    let mut draft = draft_from_wire(wire).map_err(|e| Status::invalid_argument(e.to_string()))?;
    if let Some(script) = &draft.blobs.script {
        check_script(script).map_err(|e| Status::invalid_argument(e.to_string()))?;
    }
    let who = &caller.identity;
    let owner = Owner { uid: who.uid, gid: who.gid, name: who.name.clone() };
    draft.spec.owner = owner.clone();
    let (draft, messages) = chain(services, caller, state.clone(), &Intent::Submit, draft)?;
    let Draft { mut spec, blobs } = draft;
    // Law 9: whatever a policy made of the job, it runs as who is connected.
    spec.owner = owner;
    if spec.queue != queue {
        allow_queue(services, caller, &spec.queue)?;
    }
    let known_ends = known_ends(services, &state, &spec.dependencies).map_err(internal)?;
    let Blobs { script, environment } = blobs;
    let mut stored = Vec::with_capacity(2);
    let script = script.map(|text| keep(&mut stored, text));
    let environment = keep(&mut stored, environment);
    let command = Command::Submit { spec: Arc::new(spec), script, environment, known_ends };
    Ok(Admitted { command, blobs: stored, messages })
}

pub(super) fn allow_queue(services: &Services, caller: &Caller, queue: &str) -> Result<(), Status> {
    let target = Target { owner: None, name: queue.to_owned() };
    services.access.allow_here(caller, Permission::Submit, &target)
}

/// The admission policies one after the other. A refusal or a failure of one ends it (law 6).
pub(super) fn chain(
    services: &Services,
    caller: &Caller,
    state: State,
    intent: &Intent,
    draft: Draft,
) -> Result<(Draft, Vec<String>), Status> {
    let feasibility = services.feasibility.clone();
    let never_runs = Box::new(move |state: &State, draft: &Draft| feasibility.never_runs(state, draft));
    let view = Arc::new(ClusterView { state, never_runs });
    match services.policies.slots().admit(services.handle.now(), &caller.identity, intent, draft, &view) {
        Ok(Verdict::Admit(draft, lines)) => Ok((*draft, lines)),
        Ok(Verdict::Refuse(text)) => Err(Status::failed_precondition(text)),
        Err(fault) => {
            let what = if *intent == Intent::Submit { "taken" } else { "changed" };
            Err(Status::unavailable(format!("the job was not {what}: {fault}")))
        }
    }
}

/// What finished and is perhaps only in the history: how it ended. An array counts as completed when all its elements
/// are.
pub(super) fn known_ends(
    services: &Services,
    state: &State,
    dependencies: &[Dependency],
) -> Result<Vec<(Dependency, JobState)>, StoreError> {
    let mut ends = Vec::new();
    for dependency in dependencies.iter().filter(|d| d.job.0 > 0) {
        let (job, index) = (dependency.job, dependency.index);
        let end = match state.find(job) {
            Some((entry, ordinal)) => {
                let one = match (index, &entry.job.spec.array) {
                    (Some(index), Some(array)) => array.ordinal(index).map(|o| o as usize),
                    _ => Some(ordinal).filter(|ordinal| *ordinal > 0),
                };
                let meant = entry.elements.iter().enumerate().filter(|(i, _)| one.is_none_or(|one| *i == one));
                worst(meant.map(|(_, element)| element.state))
            }
            None => match index {
                None => services.history.outcome(job)?,
                Some(index) => {
                    let all = services.history.get_array(job, job, limits::ARRAY_ELEMENTS as usize)?;
                    all.iter().find(|e| e.array.is_some_and(|place| place.index == index)).map(|e| e.state)
                }
            },
        };
        ends.extend(end.map(|end| (*dependency, end)));
    }
    Ok(ends)
}

/// `Completed` where all are, else another final state; `None` where one is not final, or there is none.
fn worst(states: impl Iterator<Item = JobState>) -> Option<JobState> {
    let mut worst = None;
    for state in states {
        if !state.is_final() {
            return None;
        }
        if worst.is_none_or(|w| w == JobState::Completed) {
            worst = Some(state);
        }
    }
    worst
}

fn keep(stored: &mut Vec<(Digest, Vec<u8>)>, bytes: Vec<u8>) -> Digest {
    let digest = Digest(Sha256::digest(&bytes).into());
    stored.push((digest, bytes));
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_spoils_an_array() {
        use JobState::{Completed, Failed, Running};
        assert_eq!(worst([Completed, Failed, Completed].into_iter()), Some(Failed));
        assert_eq!(worst([Completed, Completed].into_iter()), Some(Completed));
        assert_eq!(worst([Failed, Running].into_iter()), None);
        assert_eq!(worst([].into_iter()), None);
    }
}
