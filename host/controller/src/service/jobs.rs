//! Acting on jobs, and their scripts.

use super::{Answer, Services, busy, internal, status_of};
use crate::access::Caller;
use ephor_core::command::{Action, Actor};
use ephor_core::roles::{Permission, Target};
use ephor_core::{Command, State};
use ephor_model::{JobId, Uid, limits};
use ephor_proto::v1;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// Jobs of one request.
pub(super) const JOBS_AT_ONCE: usize = limits::QUERY_ROWS;

/// What a reference means in the live state.
pub(super) struct Meant {
    /// The job or element.
    pub id: JobId,
    /// All elements of the array.
    pub whole: bool,
    /// Its owner.
    pub owner: Uid,
}

/// Looks a reference up: `123` is a job, an element by its own id, or a whole array; `123_4` is an element.
pub(super) fn find(state: &State, reference: v1::JobRef) -> Option<Meant> {
    let (entry, ordinal) = state.find(JobId(reference.job))?;
    let owner = entry.job.spec.owner.uid;
    match reference.index {
        None => {
            let whole = ordinal == 0 && entry.job.spec.array.is_some();
            Some(Meant { id: JobId(reference.job), whole, owner })
        }
        Some(index) => {
            let array = entry.job.spec.array.as_ref().filter(|_| ordinal == 0)?;
            let id = JobId(entry.job.id.0 + u64::from(array.ordinal(index)?));
            Some(Meant { id, whole: false, owner })
        }
    }
}

/// A reference as people write it.
pub(super) fn shown(reference: v1::JobRef) -> String {
    reference.index.map_or_else(|| reference.job.to_string(), |index| format!("{}_{index}", reference.job))
}

pub(super) fn target(meant: &Meant) -> Target {
    Target { owner: Some(meant.owner), name: meant.id.to_string() }
}

pub(super) async fn act(
    services: &Arc<Services>,
    request: Request<v1::JobActionRequest>,
) -> Answer<v1::JobActionReply> {
    let caller = services.access.caller(&request).await?;
    let request = request.into_inner();
    if request.jobs.len() > JOBS_AT_ONCE {
        let text = format!("{} jobs at once are more than {JOBS_AT_ONCE}; name fewer", request.jobs.len());
        return Err(Status::invalid_argument(text));
    }
    let action = match v1::JobAction::try_from(request.action) {
        Ok(v1::JobAction::Cancel) => Action::Cancel,
        Ok(v1::JobAction::Hold) => Action::Hold,
        Ok(v1::JobAction::Release) => Action::Release,
        Ok(v1::JobAction::Requeue) => Action::Requeue,
        Err(_) => return Err(Status::invalid_argument("there is no such action")),
    };
    let snapshot = services.handle.snapshot();
    let mut problems = Vec::new();
    let mut wanted = Vec::new();
    for reference in request.jobs {
        match find(&snapshot.state, reference) {
            Some(meant) => wanted.push((reference, meant)),
            None => problems.push(problem(reference, not_here(services, reference))),
        }
    }
    drop(snapshot);
    let targets = wanted.iter().map(|(_, meant)| target(meant)).collect();
    let verdicts = services.access.allow_each(&caller, Permission::JobWrite, targets).await?;
    // All are sent before the first is waited for, so that they share a commit.
    let mut waiting = Vec::new();
    for ((reference, meant), verdict) in wanted.into_iter().zip(verdicts) {
        let by = Actor { name: caller.identity.name.clone(), operator: is_operator(&caller, meant.owner) };
        match verdict {
            Ok(()) => {
                let command = Command::Act { action, job: meant.id, whole: meant.whole, by };
                waiting.push((reference, services.handle.enqueue(command).await.map_err(status_of)?));
            }
            Err(status) => problems.push(problem(reference, status.message().to_owned())),
        }
    }
    for (reference, pending) in waiting {
        if let Err(error) = pending.reply().await {
            let status = status_of(error);
            if status.code() == tonic::Code::Unavailable {
                return Err(status);
            }
            problems.push(problem(reference, status.message().to_owned()));
        }
    }
    Ok(Response::new(v1::JobActionReply { problems }))
}

/// Whoever may act on a job that is not theirs acts as an operator: the policy let them. So does root.
pub(super) fn is_operator(caller: &Caller, owner: Uid) -> bool {
    caller.identity.uid != owner || caller.identity.uid.0 == 0
}

pub(super) fn problem(reference: v1::JobRef, error: String) -> v1::JobProblem {
    v1::JobProblem { job: shown(reference), error }
}

/// Why a job that is not in the live state cannot be acted on.
pub(super) fn not_here(services: &Services, reference: v1::JobRef) -> String {
    let next = services.handle.snapshot().state.meta.next_job;
    match reference.job < next && reference.index.is_none() {
        true => "it ended a while ago and is only in the history".into(),
        false => "there is no such job".into(),
    }
}

pub(super) async fn script(services: &Arc<Services>, request: Request<v1::JobRef>) -> Answer<v1::Blob> {
    let caller = services.access.caller(&request).await?;
    let reference = request.into_inner();
    let snapshot = services.handle.snapshot();
    let meant = find(&snapshot.state, reference).ok_or_else(|| {
        Status::not_found(format!(
            "the script of job {} is not here: {}",
            shown(reference),
            not_here(services, reference)
        ))
    })?;
    services.access.allow(&caller, Permission::JobRead, target(&meant)).await?;
    let digest = snapshot.state.find(meant.id).and_then(|(entry, _)| entry.job.script);
    let digest =
        digest.ok_or_else(|| Status::not_found(format!("job {} runs a command, not a script", shown(reference))))?;
    let store = services.store.clone();
    let blob = services.queries.run(caller.peer.uid.0, move || store.blob(&digest)).await.map_err(busy)?;
    match blob.map_err(internal)? {
        Some(data) => Ok(Response::new(v1::Blob { data })),
        None => Err(Status::not_found(format!("the script of job {} is gone", shown(reference)))),
    }
}
