//! Takes jobs that admission let through.

use super::{Tx, bounds, dependencies};
use crate::command::{Refusal, RefusalKind, Reply};
use crate::event::Event;
use crate::records::Job;
use ephor_model::{AccountId, Digest, JobId, JobSpec, QosId, QueueId, Span, limits};
use std::sync::Arc;

pub(super) fn submit(
    tx: &mut Tx<'_>,
    mut spec: Arc<JobSpec>,
    script: Option<Digest>,
    environment: Digest,
    known_ends: &dependencies::KnownEnds,
) -> Result<Reply, Refusal> {
    let (queue, account) = check(tx, &spec, None)?;
    let (waiting, never) = dependencies::open(tx, &spec, known_ends)?;
    let id = JobId(tx.state.meta.next_job.max(1));
    let licences = bounds::licences_of(tx, &spec)?;
    let qos = qos(tx, &mut spec, queue, account)?;
    let submitted = tx.at;
    if let Some(name) = spec.reservation.clone() {
        bounds::check_reservation(tx, &spec, account, &name)?;
    }
    tx.state.derived.alike.share(&mut spec);
    let job = Job { id, spec, queue, account, submitted, script, environment, waiting, never, qos, licences };
    bounds::room_for(tx, &job, job.spec.count(), None)?;
    tx.emit(Event::Submitted { job: Arc::new(job) });
    tx.settle_elements(id);
    Ok(Reply::Job(id))
}

/// The QOS of a job; where it names none, the one that it gets is written into it.
pub(super) fn qos(
    tx: &Tx<'_>,
    spec: &mut Arc<JobSpec>,
    queue: QueueId,
    account: AccountId,
) -> Result<Option<QosId>, Refusal> {
    let Some(found) = tx.state.queues.get(&queue) else { return Ok(None) };
    let qos = bounds::qos_of(tx, spec, account, found)?;
    Ok(qos.map(|(id, name)| {
        if spec.qos.is_none() {
            Arc::make_mut(spec).qos = Some(name);
        }
        id
    }))
}

/// Checks a new job, or one that is to change from `was`.
pub(super) fn check(tx: &Tx<'_>, spec: &JobSpec, was: Option<&Job>) -> Result<(QueueId, AccountId), Refusal> {
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
    // A job that is in a queue already may still be changed after the queue was closed.
    if !found.state.takes() && was.is_none_or(|job| job.queue != queue) {
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
    if let Some(deadline) = spec.deadline.filter(|_| spec.latest_start().is_some_and(|latest| latest < tx.at)) {
        let limit = spec.time_limit.unwrap_or(Span(0)).to_clock();
        let left = Span((deadline - tx.at).0.max(0)).to_clock();
        return Err(invalid(format!(
            "with a time limit of {limit} the job cannot end before its deadline, {left} from now"
        )));
    }
    let count = spec.count();
    if count > limits::ARRAY_ELEMENTS {
        return Err(invalid(format!("an array of {count} elements is above {}", limits::ARRAY_ELEMENTS)));
    }
    let live = tx.state.derived.unfinished + u64::from(count);
    if was.is_none() && live > limits::LIVE_JOBS as u64 {
        let text =
            format!("the cluster holds at most {} unfinished jobs; try again when some ended", limits::LIVE_JOBS);
        return Err(Refusal::new(RefusalKind::Limit, text));
    }
    Ok((queue, account))
}
