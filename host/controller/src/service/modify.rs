//! Changing jobs: merge the change into the job as it is, authorise and admit on a pool of threads, then one command.

use super::jobs::{find, is_operator, not_here, shown, target};
use super::submit::{allow_queue, chain, known_ends};
use super::{Answer, Services, busy, internal, status_of};
use crate::access::Caller;
use ephor_core::command::Actor;
use ephor_core::decide::Change;
use ephor_core::roles::{Intent, Permission};
use ephor_core::{Command, Reply};
use ephor_model::{Blobs, Draft};
use ephor_proto::modify::{changed, changes_from_wire};
use ephor_proto::v1;
use std::sync::Arc;
use tonic::{Request, Response, Status};

pub(super) async fn modify(services: &Arc<Services>, request: Request<v1::ModifyRequest>) -> Answer<v1::ModifyReply> {
    let caller = services.access.caller(&request).await?;
    let wire = request.into_inner();
    let (inner, uid) = (services.clone(), caller.peer.uid.0);
    let (command, messages) =
        services.admission.run(uid, move || admit(&inner, &caller, wire)).await.map_err(busy)??;
    match services.handle.run(command).await.map_err(status_of)? {
        Reply::Done => Ok(Response::new(v1::ModifyReply { messages })),
        other => Err(internal(format!("a change was answered with {other:?}"))),
    }
}

fn admit(services: &Services, caller: &Caller, wire: v1::ModifyRequest) -> Result<(Command, Vec<String>), Status> {
    let reference = wire.job.unwrap_or_default();
    let state = services.handle.snapshot().state.clone();
    let Some(meant) = find(&state, reference) else {
        let why = not_here(services, reference);
        return Err(Status::not_found(format!("job {} cannot be changed: {why}", shown(reference))));
    };
    services.access.allow_here(caller, Permission::JobWrite, &target(&meant))?;
    let Some(entry) = state.jobs.get(&meant.id).filter(|e| meant.whole || e.job.spec.array.is_none()) else {
        let text = "the elements of an array share what they ask for: change the whole array";
        return Err(Status::invalid_argument(text));
    };
    let (job, was) = (entry.job.clone(), entry.job.spec.clone());
    let malformed = |e: ephor_proto::convert::Malformed| Status::invalid_argument(e.to_string());
    let changes = changes_from_wire(&wire.fields, wire.values.unwrap_or_default()).map_err(malformed)?;
    let spec = changed(&changes, &was).map_err(malformed)?;
    let asked = spec.queue.clone();
    if asked != was.queue {
        allow_queue(services, caller, &asked)?;
    }
    let blob = |digest| match services.store.blob(&digest) {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(internal(format!("blob {digest} of job {} is gone", job.id))),
        Err(error) => Err(internal(error)),
    };
    let blobs = Blobs { script: job.script.map(blob).transpose()?, environment: blob(job.environment)? };
    let intent = Intent::Modify(was.clone());
    let (draft, messages) = chain(services, caller, state.clone(), &intent, Draft { spec, blobs })?;
    let mut spec = draft.spec;
    // Law 9: whatever a policy made of the job, it runs as who submitted it.
    spec.owner = was.owner.clone();
    if spec.queue != asked {
        allow_queue(services, caller, &spec.queue)?;
    }
    let known_ends = known_ends(services, &state, &spec.dependencies).map_err(internal)?;
    let by = Actor { name: caller.identity.name.clone(), operator: is_operator(caller, meant.owner) };
    let change = Change { was, spec: Arc::new(spec) };
    Ok((Command::Modify { job: meant.id, change, known_ends, by }, messages))
}
