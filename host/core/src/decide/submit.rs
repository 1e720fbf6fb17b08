//! Takes jobs that admission let through.

use super::{Tx, bounds};
use crate::command::{Refusal, RefusalKind, Reply};
use crate::event::Event;
use crate::records::Job;
use ephor_model::{AccountId, Dependency, DependencyKind, Digest, JobId, JobSpec, JobState, QueueId, limits};
use std::sync::Arc;

pub(super) fn submit(
    tx: &mut Tx<'_>,
    mut spec: Arc<JobSpec>,
    script: Option<Digest>,
    environment: Digest,
    known_ends: &[(JobId, JobState)],
) -> Result<Reply, Refusal> {
    let (queue, account) = check(tx, &spec)?;
    let (waiting, never) = open_dependencies(tx, &spec, known_ends)?;
    let id = JobId(tx.state.meta.next_job.max(1));
    let licences = bounds::licences_of(tx, &spec)?;
    let qos = match tx.state.queues.get(&queue) {
        Some(found) => bounds::qos_of(tx, &spec, account, found)?,
        None => None,
    };
    let qos = qos.map(|(id, name)| {
        if spec.qos.is_none() {
            Arc::make_mut(&mut spec).qos = Some(name);
        }
        id
    });
    let submitted = tx.at;
    if let Some(name) = spec.reservation.clone() {
        bounds::check_reservation(tx, &spec, account, &name)?;
    }
    let job = Job { id, spec, queue, account, submitted, script, environment, waiting, never, qos, licences };
    bounds::room_for(tx, &job, job.spec.count())?;
    tx.emit(Event::Submitted { job: Arc::new(job) });
    Ok(Reply::Job(id))
}

fn check(tx: &Tx<'_>, spec: &JobSpec) -> Result<(QueueId, AccountId), Refusal> {
    let invalid = |text: String| Refusal::new(RefusalKind::Invalid, text);
    let Some((queue, found)) = tx.state.queue_by_name(&spec.queue) else {
        let names: Vec<_> = tx.state.queues.values().map(|q| q.name.as_str()).collect();
        return Err(Refusal::new(
            RefusalKind::NotFound,
            match spec.queue.as_str() {
                "" => "the job names no queue and no admission policy filled one in".to_owned(),
                name => format!("there is no queue '{name}'; there are: {}", names.join(", ")),
            },
        ));
    };
    if !found.state.takes() {
        let text = format!("queue '{}' takes no jobs now: it is {:?}", found.name, found.state).to_lowercase();
        return Err(Refusal::new(RefusalKind::Conflict, text));
    }
    let Some((account, _)) = tx.state.account_by_name(&spec.account) else {
        return Err(Refusal::new(
            RefusalKind::NotFound,
            match spec.account.as_str() {
                "" => "the job names no account and no admission policy filled one in".to_owned(),
                name => format!("there is no account '{name}'"),
            },
        ));
    };
    if let (Some(limit), Some(max)) = (spec.time_limit, found.max_time)
        && limit > max
    {
        return Err(invalid(format!(
            "a time limit of {} is above the {} of queue '{}'",
            limit.to_clock(),
            max.to_clock(),
            found.name
        )));
    }
    if let Some(max) = found.max_nodes
        && spec.request.nodes_min > max
    {
        return Err(invalid(format!("{} nodes are above the {max} of queue '{}'", spec.request.nodes_min, found.name)));
    }
    let count = spec.count();
    if count > limits::ARRAY_ELEMENTS {
        return Err(invalid(format!("an array of {count} elements is above {}", limits::ARRAY_ELEMENTS)));
    }
    let live = tx.state.derived.unfinished + u64::from(count);
    if live > limits::LIVE_JOBS as u64 {
        let text =
            format!("the cluster holds at most {} unfinished jobs; try again when some ended", limits::LIVE_JOBS);
        return Err(Refusal::new(RefusalKind::Limit, text));
    }
    Ok((queue, account))
}

/// The dependencies that are still open, and whether one can never be satisfied.
fn open_dependencies(
    tx: &Tx<'_>,
    spec: &JobSpec,
    known_ends: &[(JobId, JobState)],
) -> Result<(Vec<Dependency>, bool), Refusal> {
    let mut waiting = Vec::new();
    let mut met = 0usize;
    let mut impossible = 0usize;
    for dependency in &spec.dependencies {
        let outcome = if tx.state.find(dependency.job).is_some() {
            tx.outcome(*dependency)
        } else if let Some((_, end)) = known_ends.iter().find(|(id, _)| *id == dependency.job) {
            Some(match dependency.kind {
                DependencyKind::After | DependencyKind::AfterAny => true,
                DependencyKind::AfterOk => *end == JobState::Completed,
                DependencyKind::AfterNotOk => *end != JobState::Completed,
            })
        } else {
            let text = format!("the job depends on job {}, which is not known here", dependency.job);
            return Err(Refusal::new(RefusalKind::NotFound, text));
        };
        match outcome {
            None => waiting.push(*dependency),
            Some(true) => met += 1,
            Some(false) => impossible += 1,
        }
    }
    Ok(match spec.dependency_any {
        true if met > 0 => (Vec::new(), false),
        true => {
            let never = waiting.is_empty() && impossible > 0;
            (waiting, never)
        }
        false => (waiting, impossible > 0),
    })
}
