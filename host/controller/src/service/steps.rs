//! Steps of running jobs: planning them, and starting them on their nodes.

use super::jobs::{find, not_here, shown, target};
use super::{Answer, Services};
use crate::access::Caller;
use crate::launch::whole_cores;
use crate::steps::layout::{Ask, Refused, Room};
use ephor_core::roles::Permission;
use ephor_core::{Attempt, AttemptPhase, State};
use ephor_model::submit::hostlist;
use ephor_model::{AttemptKey, JobId, ResourceId, StepKey, limits};
use ephor_proto::v1;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tonic::{Request, Response, Status};

pub(super) async fn plan(services: &Arc<Services>, request: Request<v1::StepRequest>) -> Answer<v1::StepPlan> {
    let caller = services.access.caller(&request).await?;
    let wire = request.into_inner();
    let reference = wire.job.ok_or_else(|| Status::invalid_argument("the step names no job"))?;
    let ask = Ask::read(&wire).map_err(Status::invalid_argument)?;
    let snapshot = services.handle.snapshot();
    let state = &snapshot.state;
    let meant = find(state, reference).ok_or_else(|| {
        Status::not_found(format!("job {} has no steps: {}", shown(reference), not_here(services, reference)))
    })?;
    may_run(services, &caller, state, meant.id).await?;
    let attempt = running(state, meant.id)?;
    let (entry, ordinal) = state.find(meant.id).ok_or_else(|| Status::not_found("the job is gone"))?;
    let busy = || Ok(Response::new(v1::StepPlan { busy: true, ..v1::StepPlan::default() }));
    if !services.sessions.are_connected(attempt.allocation.parts.iter().map(|part| part.node)) {
        // As after a start of the controller: what is in use is not known before.
        return busy();
    }
    let rooms = rooms(state, attempt);
    let (step, parts) = match services.sessions.steps.plan(attempt.key, rooms, &ask) {
        Ok(planned) => planned,
        Err(Refused::Busy) => return busy(),
        Err(Refused::Never(text)) => return Err(Status::failed_precondition(text)),
    };
    let parts = parts.into_iter().map(|(node, part)| {
        let address = state.nodes.get(&node).map(|node| node.spec.address.clone()).unwrap_or_default();
        v1::StepPart { address, ..part.part }
    });
    let spec = &entry.job.spec;
    Ok(Response::new(v1::StepPlan {
        busy: false,
        attempt: Some(v1::AttemptRef { job: attempt.key.job.0, attempt: attempt.key.number }),
        step,
        parts: parts.collect(),
        job_name: spec.name.clone(),
        user: spec.owner.name.clone(),
        array_id: entry.job.id.0,
        array_index: spec.array.as_ref().and_then(|a| a.index(ordinal as u32)),
    }))
}

/// The job's owner and root, if they may change the job: a step runs as the owner, so that others would act in their name.
async fn may_run(services: &Arc<Services>, caller: &Caller, state: &State, job: JobId) -> Result<(), Status> {
    let Some((entry, _)) = state.find(job) else { return Err(Status::not_found("the job is gone")) };
    let owner = entry.job.spec.owner.uid;
    if caller.identity.uid != owner && caller.identity.uid.0 != 0 {
        return Err(Status::permission_denied(format!(
            "job {job} is not yours: only its owner and root start steps in it"
        )));
    }
    let meant = super::jobs::Meant { id: job, whole: false, owner };
    services.access.allow(caller, Permission::JobWrite, target(&meant)).await
}

/// The attempt of a job that can have steps. Its script may be quicker than the word that it began.
fn running(state: &State, job: JobId) -> Result<&Attempt, Status> {
    match state.attempts.get(&job) {
        None => Err(Status::failed_precondition(format!("job {job} does not run"))),
        Some(attempt) if matches!(attempt.phase, AttemptPhase::Ending { .. }) => {
            Err(Status::failed_precondition(format!("job {job} is being ended")))
        }
        Some(attempt) => Ok(attempt),
    }
}

/// The attempt's nodes in the order in which lists of nodes name them: scripts look for the first task on the first.
fn rooms(state: &State, attempt: &Attempt) -> Vec<Room> {
    let mut rooms: Vec<Room> = attempt.allocation.parts.iter().map(|part| room(state, part)).collect();
    let names: Vec<&str> = rooms.iter().map(|room| room.name.as_str()).collect();
    let listed = hostlist::expand(&hostlist::fold(&names)).unwrap_or_default();
    let places: BTreeMap<String, usize> = listed.into_iter().zip(0..).collect();
    rooms.sort_by_key(|room| places.get(&room.name).copied());
    rooms
}

fn room(state: &State, part: &ephor_model::AllocationPart) -> Room {
    Room {
        node: part.node,
        name: state.node_name(part.node),
        // A node's amount, which is bounded.
        cpu_milli: whole_cores(part.amounts.get(ResourceId::CPU)) as i64 * 1000,
        devices: part.devices.to_vec(),
        ..Room::default()
    }
}

pub(super) async fn start(services: &Arc<Services>, request: Request<v1::StepStart>) -> Answer<v1::Empty> {
    let caller = services.access.caller(&request).await?;
    let wire = request.into_inner();
    check(&wire).map_err(Status::invalid_argument)?;
    let attempt = wire.attempt.ok_or_else(|| Status::invalid_argument("the step names no attempt"))?;
    let attempt = AttemptKey { job: JobId(attempt.job), number: attempt.attempt };
    let snapshot = services.handle.snapshot();
    let state = &snapshot.state;
    may_run(services, &caller, state, attempt.job).await?;
    if running(state, attempt.job)?.key != attempt {
        return Err(Status::failed_precondition(format!("job {} was started anew meanwhile", attempt.job)));
    }
    let (entry, ordinal) = state.find(attempt.job).ok_or_else(|| Status::not_found("the job is gone"))?;
    let spec = &entry.job.spec;
    let common = v1::StepLaunch {
        program: wire.program,
        addresses: wire.addresses,
        certificate: wire.certificate,
        key: wire.key,
        uid: spec.owner.uid.0,
        gid: spec.owner.gid,
        job_name: spec.name.clone(),
        user: spec.owner.name.clone(),
        array_id: entry.job.id.0,
        array_index: spec.array.as_ref().and_then(|a| a.index(ordinal as u32)),
        ..v1::StepLaunch::default()
    };
    let key = StepKey { attempt, step: wire.step };
    let (parts, outcome) = services.sessions.steps.start(key).map_err(Status::failed_precondition)?;
    let mut guard = Guard { services, key, begun: false };
    services.sessions.start_step(state, key, &common, parts).map_err(Status::unavailable)?;
    match tokio::time::timeout(Duration::from_millis(limits::STEP_START_MS), outcome).await {
        Ok(Ok(Ok(()))) => {}
        Ok(Ok(Err(why))) => return Err(Status::failed_precondition(why)),
        Ok(Err(_)) => return Err(Status::failed_precondition(format!("job {} has ended meanwhile", attempt.job))),
        Err(_) => {
            let seconds = limits::STEP_START_MS / 1000;
            return Err(Status::deadline_exceeded(format!("a node did not start its part within {seconds} s")));
        }
    }
    guard.begun = true;
    Ok(Response::new(v1::Empty {}))
}

pub(super) async fn end(services: &Arc<Services>, request: Request<v1::StepRef>) -> Answer<v1::Empty> {
    let caller = services.access.caller(&request).await?;
    let wire = request.into_inner();
    let attempt = wire.attempt.ok_or_else(|| Status::invalid_argument("the step names no attempt"))?;
    let attempt = AttemptKey { job: JobId(attempt.job), number: attempt.attempt };
    let snapshot = services.handle.snapshot();
    let state = &snapshot.state;
    // One that is over took its steps along.
    if state.attempts.get(&attempt.job).is_some_and(|live| live.key == attempt) {
        may_run(services, &caller, state, attempt.job).await?;
        let nodes = services.sessions.steps.give_up(StepKey { attempt, step: wire.step });
        services.sessions.end_steps(state, attempt, Some(wire.step), &nodes);
    }
    Ok(Response::new(v1::Empty {}))
}

/// Takes a step back that did not start as a whole, also where whoever asked for it has gone.
struct Guard<'a> {
    services: &'a Services,
    key: StepKey,
    begun: bool,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.begun {
            return;
        }
        let sessions = &self.services.sessions;
        let nodes = sessions.steps.give_up(self.key);
        let snapshot = self.services.handle.snapshot();
        sessions.end_steps(&snapshot.state, self.key.attempt, Some(self.key.step), &nodes);
    }
}

/// Checks sizes: what is let through here goes to nodes as it is.
fn check(wire: &v1::StepStart) -> Result<(), String> {
    let Some(program) = &wire.program else { return Err("the step has no program".into()) };
    let bytes = |texts: &[String]| texts.iter().map(|text| text.len() + 1).sum::<usize>();
    if program.argv.first().is_none_or(String::is_empty) {
        return Err("the step has nothing to run".into());
    }
    if bytes(&program.argv) > limits::ARGUMENT_BYTES {
        return Err(format!("the arguments have more than {} bytes", limits::ARGUMENT_BYTES));
    }
    if bytes(&program.environment) > limits::ENVIRONMENT_BYTES {
        return Err(format!("the environment has more than {} bytes", limits::ENVIRONMENT_BYTES));
    }
    let paths = [Some(&program.work_dir), program.stdin.as_ref(), program.stdout.as_ref(), program.stderr.as_ref()];
    if paths.into_iter().flatten().any(|path| path.len() > limits::TEXT_BYTES) {
        return Err(format!("a path has more than {} bytes", limits::TEXT_BYTES));
    }
    let is_address = |text: &String| text.parse::<std::net::SocketAddr>().is_ok();
    if wire.addresses.is_empty()
        || wire.addresses.len() > limits::STEP_ADDRESSES
        || !wire.addresses.iter().all(is_address)
    {
        return Err(format!(
            "a step's streams are served at 1 to {} addresses such as 10.0.0.1:6000",
            limits::STEP_ADDRESSES
        ));
    }
    if wire.certificate.len() > limits::STEP_CERTIFICATE_BYTES {
        return Err(format!("the certificate has more than {} bytes", limits::STEP_CERTIFICATE_BYTES));
    }
    if wire.key.len() != limits::STEP_KEY_BYTES || !wire.key.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(format!("the key is not {} hexadecimal digits", limits::STEP_KEY_BYTES));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_to_nodes_is_bounded() {
        let good = || v1::StepStart {
            program: Some(v1::StepProgram { argv: vec!["x".into()], ..v1::StepProgram::default() }),
            addresses: vec!["[::1]:5".into()],
            key: "a".repeat(limits::STEP_KEY_BYTES),
            ..v1::StepStart::default()
        };
        assert_eq!(check(&good()), Ok(()));
        let bad = |change: &dyn Fn(&mut v1::StepStart)| {
            let mut wire = good();
            change(&mut wire);
            check(&wire).unwrap_err()
        };
        assert!(bad(&|w| w.key.clear()).contains("key"));
        assert!(bad(&|w| w.addresses = vec!["host:1".into()]).contains("addresses"));
        assert!(bad(&|w| w.program = None).contains("program"));
        assert!(bad(&|w| w.certificate = "x".repeat(5000)).contains("certificate"));
        let program =
            |w: &mut v1::StepStart, change: &dyn Fn(&mut v1::StepProgram)| w.program.iter_mut().for_each(change);
        assert!(bad(&|w| program(w, &|p| p.environment = vec!["x".repeat(2 << 20)])).contains("environment"));
        assert!(bad(&|w| program(w, &|p| p.argv.clear())).contains("nothing to run"));
    }
}
