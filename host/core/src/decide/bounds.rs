//! Limits at submit: which QOS and licences a job gets, and whether one more is still within the bounds.

use super::Tx;
use crate::command::{Refusal, RefusalKind};
use crate::pools;
use crate::records::Job;
use crate::reservations;
use ephor_model::{AccountId, JobSpec, QosId, Queue, ResourceId, Span, limits};

/// The QOS that a job asks for, else its account's (or that of the account above), else its queue's.
pub(super) fn qos_of(
    tx: &Tx<'_>,
    spec: &JobSpec,
    account: AccountId,
    queue: &Queue,
) -> Result<Option<(QosId, String)>, Refusal> {
    let accounts = pools::accounts_up(tx.state, account);
    let accounts: Vec<_> = accounts.iter().filter_map(|id| tx.state.accounts.get(id)).collect();
    let default = accounts.iter().find_map(|a| a.default_qos.as_ref()).or(queue.default_qos.as_ref());
    let Some(name) = spec.qos.as_ref().or(default) else { return Ok(None) };
    let Some((id, qos)) = tx.state.qos_by_name(name) else {
        let names: Vec<_> = tx.state.qos.values().map(|q| q.name.as_str()).collect();
        let there = if names.is_empty() { "none is set up".into() } else { format!("there are: {}", names.join(", ")) };
        return Err(Refusal::new(RefusalKind::NotFound, format!("there is no QOS '{name}'; {there}")));
    };
    // Who may use an account may use what those above it may.
    let account_may = qos.accounts.is_empty() || accounts.iter().any(|a| qos.accounts.contains(&a.name));
    let user_may = qos.users.is_empty() || qos.users.contains(&spec.owner.name);
    let refuse = |text: String| Err(Refusal::new(RefusalKind::Conflict, text));
    match (account_may, user_may) {
        (false, _) => refuse(format!("QOS '{name}' is not for jobs of account '{}'", spec.account)),
        (_, false) => refuse(format!("QOS '{name}' is not for user '{}'", spec.owner.name)),
        _ => Ok(Some((id, name.clone()))),
    }
}

/// The licences that a job asks for, by number.
pub(super) fn licences_of(tx: &Tx<'_>, spec: &JobSpec) -> Result<Vec<(ResourceId, u32)>, Refusal> {
    let invalid = |text: String| Refusal::new(RefusalKind::Invalid, text);
    if spec.licences.len() > limits::LICENCES_PER_JOB {
        let (n, most) = (spec.licences.len(), limits::LICENCES_PER_JOB);
        return Err(invalid(format!("{n} kinds of licences are more than a job may ask for: {most}")));
    }
    let mut found: Vec<(ResourceId, u32)> = Vec::new();
    for (name, count) in &spec.licences {
        let Some((id, licence)) = tx.state.licence_by_name(name) else {
            let names: Vec<_> = tx.state.licences.values().map(|l| l.name.as_str()).collect();
            let there =
                if names.is_empty() { "none is set up".into() } else { format!("there are: {}", names.join(", ")) };
            return Err(Refusal::new(RefusalKind::NotFound, format!("there is no licence '{name}'; {there}")));
        };
        if *count == 0 || found.iter().any(|(known, _)| *known == id) {
            return Err(invalid(format!("licence '{name}' is asked for twice, or 0 times")));
        }
        if *count > licence.count {
            let most = licence.count;
            return Err(invalid(format!("the job asks for {count} licences '{name}', and there are {most} in all")));
        }
        found.push((id, *count));
    }
    Ok(found)
}

/// Whether a job may run in the reservation that it names, and could before that is over.
pub(super) fn check_reservation(tx: &Tx<'_>, spec: &JobSpec, account: AccountId, name: &str) -> Result<(), Refusal> {
    let conflict = |text: String| Err(Refusal::new(RefusalKind::Conflict, text));
    let Some((_, found)) = tx.state.reservation_by_name(name) else {
        return Err(Refusal::new(RefusalKind::NotFound, format!("there is no reservation '{name}'")));
    };
    if !reservations::may_use(tx.state, found, &spec.owner.name, account) {
        let (user, account) = (&spec.owner.name, &spec.account);
        return conflict(format!("reservation '{name}' is not for user '{user}' or account '{account}'"));
    }
    let left = found.end - found.start.max(tx.at);
    if left <= Span(0) {
        return conflict(format!("reservation '{name}' is over"));
    }
    match spec.time_limit {
        Some(limit) if limit <= left => {}
        limit => {
            let limit = limit.map_or_else(|| "none".to_owned(), Span::to_clock);
            let left = left.to_clock();
            return conflict(format!("reservation '{name}' lasts {left}, and the job's time limit is {limit}"));
        }
    }
    if spec.request.nodes_min as usize > found.nodes.len() {
        let (asked, has) = (spec.request.nodes_min, found.nodes.len());
        return conflict(format!("reservation '{name}' has {has} nodes, and the job asks for {asked}"));
    }
    Ok(())
}

/// Whether `more` jobs like this may come, beside those that are there.
pub(super) fn room_for(tx: &Tx<'_>, job: &Job, more: u32) -> Result<(), Refusal> {
    match pools::refuse_submit(tx.state, job, more) {
        Some(text) => Err(Refusal::new(RefusalKind::Limit, text)),
        None => Ok(()),
    }
}
