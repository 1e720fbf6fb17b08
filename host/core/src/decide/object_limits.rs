//! QOS, licences and the names that limits use: what must hold before such objects are made or deleted.

use super::objects::check_name;
use crate::command::{Objects, Refusal, RefusalKind};
use crate::pools::{self, LICENCE_PREFIX};
use crate::state::State;
use ephor_model::{Account, Licence, Qos, QosId, ResourceId, UseLimits, limits};
use std::collections::{BTreeMap, BTreeSet};

/// Checks that every name in limits, and every QOS that is a default, is there or comes with the same command.
pub(super) fn check_names(state: &State, objects: &Objects) -> Result<(), Refusal> {
    let licences: BTreeSet<&str> = objects.licences.iter().map(|l| l.name.as_str()).collect();
    let qos: BTreeSet<&str> = objects.qos.iter().map(|q| q.name.as_str()).collect();
    let check = |what: String, limits: &UseLimits| {
        let known = |name: &str| {
            let coming = name.strip_prefix(LICENCE_PREFIX).is_some_and(|l| licences.contains(l));
            coming || pools::resource_by_name(state, name).is_some()
        };
        match limits.resources().find(|name| !known(name)) {
            None => Ok(()),
            Some(name) => {
                let text = format!(
                    "the limits of {what} name '{name}', which is no resource here: \
                     there are cpu, mem, gpu, gpu.mem, node and {LICENCE_PREFIX}NAME"
                );
                Err(Refusal::new(RefusalKind::NotFound, text))
            }
        }
    };
    let check_default = |what: String, name: &Option<String>| match name {
        Some(name) if !qos.contains(name.as_str()) && state.qos_by_name(name).is_none() => {
            Err(Refusal::new(RefusalKind::NotFound, format!("{what} names QOS '{name}', which is not there")))
        }
        _ => Ok(()),
    };
    for (queue, _) in &objects.queues {
        let what = || format!("queue '{}'", queue.name);
        check(what(), &queue.limits)?;
        check(what(), &queue.per_user)?;
        check_default(what(), &queue.default_qos)?;
    }
    for account in &objects.accounts {
        let what = || format!("account '{}'", account.name);
        check(what(), &account.limits)?;
        check(what(), &account.per_user)?;
        check_default(what(), &account.default_qos)?;
    }
    for user in &objects.users {
        let what = || format!("user '{}'", user.name);
        check(what(), &user.limits)?;
        user.associations.iter().try_for_each(|a| check(what(), &a.limits))?;
    }
    for qos in &objects.qos {
        let what = || format!("QOS '{}'", qos.name);
        [&qos.limits, &qos.per_user, &qos.per_account].into_iter().try_for_each(|l| check(what(), l))?;
        let there =
            |name: &String| state.account_by_name(name).is_some() || objects.accounts.iter().any(|a| a.name == *name);
        if let Some(account) = qos.accounts.iter().find(|name| !there(name)) {
            let text = format!("{} names account '{account}', which is not there", what());
            return Err(Refusal::new(RefusalKind::NotFound, text));
        }
    }
    Ok(())
}

pub(super) fn plan_qos(state: &State, wanted: Vec<Qos>) -> Result<Vec<(QosId, Qos)>, Refusal> {
    let mut ids: BTreeMap<String, QosId> = state.qos.iter().map(|(id, q)| (q.name.clone(), *id)).collect();
    let mut next = state.meta.next_qos;
    let mut out = Vec::with_capacity(wanted.len());
    for qos in wanted {
        check_name("QOS", &qos.name)?;
        let id = *ids.entry(qos.name.clone()).or_insert_with(|| {
            next += 1;
            QosId(next - 1)
        });
        out.push((id, qos));
    }
    Ok(out)
}

pub(super) fn plan_licences(state: &State, wanted: Vec<Licence>) -> Result<Vec<(ResourceId, Licence)>, Refusal> {
    let mut ids: BTreeMap<String, ResourceId> = state.licences.iter().map(|(id, l)| (l.name.clone(), *id)).collect();
    let mut made = state.meta.licences_made;
    let mut out = Vec::with_capacity(wanted.len());
    for licence in wanted {
        check_name("licence", &licence.name)?;
        let id = match ids.get(&licence.name) {
            Some(id) => *id,
            None if made >= limits::LICENCES => {
                let text = format!("{} licences were made here, and no more can be", limits::LICENCES);
                return Err(Refusal::new(RefusalKind::Limit, text));
            }
            None => {
                made += 1;
                ResourceId(ResourceId::FIRST_SITE + made - 1)
            }
        };
        ids.insert(licence.name.clone(), id);
        out.push((id, licence));
    }
    Ok(out)
}

/// Refuses accounts that would lie below themselves.
pub(super) fn check_tree(state: &State, wanted: &[Account]) -> Result<(), Refusal> {
    let mut parents: BTreeMap<&str, Option<&str>> =
        state.accounts.values().map(|a| (a.name.as_str(), a.parent.as_deref())).collect();
    parents.extend(wanted.iter().map(|a| (a.name.as_str(), a.parent.as_deref())));
    for account in wanted {
        let mut at = account.parent.as_deref();
        for _ in 0..=parents.len() {
            match at {
                None => break,
                Some(name) if name == account.name => {
                    let text = format!("account '{name}' would lie below itself");
                    return Err(Refusal::new(RefusalKind::Invalid, text));
                }
                Some(name) => at = parents.get(name).copied().flatten(),
            }
        }
    }
    Ok(())
}

pub(super) fn check_qos_unused(state: &State, id: QosId, name: &str) -> Result<(), Refusal> {
    let conflict = |text: String| Err(Refusal::new(RefusalKind::Conflict, text));
    let jobs = state.jobs.values().filter(|e| e.job.qos == Some(id)).count();
    if jobs > 0 {
        return conflict(format!("QOS '{name}' still has {jobs} jobs"));
    }
    let names = |default: &Option<String>| default.as_deref() == Some(name);
    if let Some(queue) = state.queues.values().find(|q| names(&q.default_qos)) {
        return conflict(format!("QOS '{name}' is the default of queue '{}'", queue.name));
    }
    if let Some(account) = state.accounts.values().find(|a| names(&a.default_qos)) {
        return conflict(format!("QOS '{name}' is the default of account '{}'", account.name));
    }
    Ok(())
}

pub(super) fn check_licence_unused(state: &State, id: ResourceId, name: &str) -> Result<(), Refusal> {
    let jobs = state.jobs.values().filter(|e| e.job.licences.iter().any(|(l, _)| *l == id)).count();
    match jobs {
        0 => Ok(()),
        _ => {
            let text =
                format!("licence '{name}' is still asked for by {jobs} jobs; set its count to 0 and let them end");
            Err(Refusal::new(RefusalKind::Conflict, text))
        }
    }
}
