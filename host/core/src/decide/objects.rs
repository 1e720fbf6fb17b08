//! Queues, accounts, users, QOS, licences, reservations and additions to nodes: created, changed and
//! deleted, all or none.

use super::{Tx, object_limits, reservations};
use crate::command::{ObjectKind, Objects, Refusal, RefusalKind, Reply};
use crate::event::Event;
use ephor_model::{Account, AccountId, Amounts, NodeId, Queue, QueueId, User, limits};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) fn apply(tx: &mut Tx<'_>, objects: Objects) -> Result<Reply, Refusal> {
    let count = objects.count();
    if count > limits::APPLY_OBJECTS {
        let text = format!("{count} objects at once are above {}; apply them in parts", limits::APPLY_OBJECTS);
        return Err(Refusal::new(RefusalKind::Limit, text));
    }
    // Everything is worked out before the first event, so that a bad object leaves nothing half-done.
    object_limits::check_names(tx.state, &objects)?;
    let licences = object_limits::plan_licences(tx.state, objects.licences)?;
    let qos = object_limits::plan_qos(tx.state, objects.qos)?;
    let queues = plan_queues(tx, objects.queues)?;
    let accounts = plan_accounts(tx, objects.accounts)?;
    let users = plan_users(tx, objects.users, &accounts)?;
    let nodes = plan_nodes(tx, objects.nodes)?;
    let wishes = reservations::plan(tx, objects.reservations, &accounts)?;
    let mut tally = Tally::default();
    for (id, is) in licences {
        let change = Change::of(tx.state.licences.get(&id).map(|l| **l == is));
        tally.note(tx, change, Event::LicenceSet { licence: id, is });
    }
    for (id, is) in qos {
        let change = Change::of(tx.state.qos.get(&id).map(|q| **q == is));
        tally.note(tx, change, Event::QosSet { qos: id, is });
    }
    for (id, is) in queues {
        let change = Change::of(tx.state.queues.get(&id).map(|q| **q == is));
        tally.note(tx, change, Event::QueueSet { queue: id, is });
    }
    for (id, is) in accounts {
        let change = Change::of(tx.state.accounts.get(&id).map(|a| **a == is));
        tally.note(tx, change, Event::AccountSet { account: id, is });
    }
    for is in users {
        let change = Change::of(tx.state.users.get(&is.uid).map(|u| **u == is));
        tally.note(tx, change, Event::UserSet { is });
    }
    for (id, name, features, extra) in nodes {
        let before = tx.state.nodes.get(&id).cloned();
        let same = before.as_ref().map(|n| n.extra_features == features && n.extra_amounts == extra);
        tally.note(tx, Change::of(same), Event::NodeSet { node: id, name, features, extra });
        tx.break_promises_if_less(id, before.as_deref());
    }
    for (no, is) in wishes {
        let change = Change::of(tx.state.reservations.get(&no).map(|r| **r == is));
        tally.note(tx, change, Event::ReservationSet { reservation: no, is: Arc::new(is) });
        tx.lift_promises_under(no);
    }
    Ok(Reply::Applied { created: tally.created, changed: tally.changed, unchanged: tally.unchanged })
}

enum Change {
    Created,
    Changed,
    Unchanged,
}

impl Change {
    fn of(same_as_before: Option<bool>) -> Self {
        match same_as_before {
            None => Self::Created,
            Some(false) => Self::Changed,
            Some(true) => Self::Unchanged,
        }
    }
}

#[derive(Default)]
struct Tally {
    created: u32,
    changed: u32,
    unchanged: u32,
}

impl Tally {
    fn note(&mut self, tx: &mut Tx<'_>, change: Change, event: Event) {
        match change {
            Change::Created => self.created += 1,
            Change::Changed => self.changed += 1,
            Change::Unchanged => {
                self.unchanged += 1;
                return;
            }
        }
        tx.emit(event);
    }
}

pub(super) fn check_name(kind: &str, name: &str) -> Result<(), Refusal> {
    let good = !name.is_empty()
        && name.len() <= limits::NAME_BYTES
        && name.chars().all(|c| c.is_alphanumeric() || "._-+@".contains(c));
    match good {
        true => Ok(()),
        false => Err(Refusal::new(
            RefusalKind::Invalid,
            format!(
                "'{}' cannot name a {kind}: use letters, digits and . _ - + @, up to {} bytes",
                name.escape_debug(),
                limits::NAME_BYTES
            ),
        )),
    }
}

/// A feature may also be the domain of a level, such as `rack=r1`.
fn check_feature(feature: &str) -> Result<(), Refusal> {
    match feature.split_once('=') {
        Some((level, domain)) => check_name("level", level).and_then(|()| check_name("domain", domain)),
        None => check_name("feature", feature),
    }
}

fn plan_queues(tx: &Tx<'_>, wanted: Vec<(Queue, Option<String>)>) -> Result<Vec<(QueueId, Queue)>, Refusal> {
    let mut next = tx.state.meta.next_queue;
    let mut ids: BTreeMap<String, QueueId> = tx.state.queues.iter().map(|(id, q)| (q.name.clone(), *id)).collect();
    let mut after: BTreeMap<QueueId, Queue> = tx.state.queues.iter().map(|(id, q)| (*id, (**q).clone())).collect();
    let mut named = Vec::new();
    for (queue, parent) in wanted {
        check_name("queue", &queue.name)?;
        if queue.weight < 0 {
            return Err(Refusal::new(RefusalKind::Invalid, format!("queue '{}' has a negative weight", queue.name)));
        }
        let id = *ids.entry(queue.name.clone()).or_insert_with(|| {
            next += 1;
            QueueId(next - 1)
        });
        named.push((id, queue, parent));
    }
    let mut out = Vec::new();
    for (id, mut queue, parent) in named {
        queue.parent = match parent {
            None => None,
            Some(name) => Some(*ids.get(&name).ok_or_else(|| {
                Refusal::new(
                    RefusalKind::NotFound,
                    format!("queue '{}' lies below '{name}', which is not there", queue.name),
                )
            })?),
        };
        after.insert(id, queue.clone());
        out.push((id, queue));
    }
    for (id, queue) in &out {
        let mut above = queue.parent;
        for _ in 0..=after.len() {
            match above {
                None => break,
                Some(up) if up == *id => {
                    let text = format!("queue '{}' would lie below itself", queue.name);
                    return Err(Refusal::new(RefusalKind::Invalid, text));
                }
                Some(up) => above = after.get(&up).and_then(|q| q.parent),
            }
        }
    }
    // The newest word on the default wins: the others stop being it.
    let defaults: Vec<QueueId> = out.iter().filter(|(_, q)| q.default).map(|(id, _)| *id).collect();
    match defaults.as_slice() {
        [] => {}
        [one] => {
            for (id, queue) in after.iter_mut().filter(|(id, q)| q.default && *id != one) {
                if !out.iter().any(|(o, _)| o == id) {
                    queue.default = false;
                    out.push((*id, queue.clone()));
                }
            }
        }
        _ => return Err(Refusal::new(RefusalKind::Invalid, "at most one queue can be the default")),
    }
    Ok(out)
}

fn plan_accounts(tx: &Tx<'_>, wanted: Vec<Account>) -> Result<Vec<(AccountId, Account)>, Refusal> {
    let mut next = tx.state.meta.next_account;
    let names: BTreeSet<&str> =
        tx.state.accounts.values().map(|a| a.name.as_str()).chain(wanted.iter().map(|a| a.name.as_str())).collect();
    for account in &wanted {
        check_name("account", &account.name)?;
        if let Some(parent) = &account.parent
            && (!names.contains(parent.as_str()) || *parent == account.name)
        {
            let text = format!("account '{}' lies below '{parent}', which is not there", account.name);
            return Err(Refusal::new(RefusalKind::NotFound, text));
        }
    }
    object_limits::check_tree(tx.state, &wanted)?;
    let mut ids: BTreeMap<String, AccountId> = BTreeMap::new();
    let out = wanted.into_iter().map(|account| {
        let known = tx.state.account_by_name(&account.name).map(|(id, _)| id);
        let id = known.unwrap_or_else(|| {
            *ids.entry(account.name.clone()).or_insert_with(|| {
                next += 1;
                AccountId(next - 1)
            })
        });
        (id, account)
    });
    Ok(out.collect())
}

fn plan_users(tx: &Tx<'_>, wanted: Vec<User>, accounts: &[(AccountId, Account)]) -> Result<Vec<User>, Refusal> {
    for user in &wanted {
        check_name("user", &user.name)?;
        let associated = user.associations.iter().map(|a| &a.account);
        for name in user.accounts.iter().chain(&user.default_account).chain(associated) {
            let there = tx.state.account_by_name(name).is_some() || accounts.iter().any(|(_, a)| a.name == *name);
            if !there {
                let text = format!("user '{}' names account '{name}', which is not there", user.name);
                return Err(Refusal::new(RefusalKind::NotFound, text));
            }
        }
    }
    Ok(wanted)
}

type NodeSet = (NodeId, String, Vec<String>, Amounts);

fn plan_nodes(tx: &Tx<'_>, wanted: Vec<(String, Vec<String>, Amounts)>) -> Result<Vec<NodeSet>, Refusal> {
    let mut next = tx.state.meta.next_node;
    let mut fresh: BTreeMap<String, NodeId> = BTreeMap::new();
    let mut out = Vec::new();
    for (name, mut features, extra) in wanted {
        check_name("node", &name)?;
        for feature in &features {
            check_feature(feature)?;
        }
        features.sort();
        features.dedup();
        let id = tx.state.node_by_name(&name).map(|n| n.id).unwrap_or_else(|| {
            *fresh.entry(name.clone()).or_insert_with(|| {
                next += 1;
                NodeId(next - 1)
            })
        });
        out.push((id, name, features, extra));
    }
    Ok(out)
}

pub(super) fn delete(tx: &mut Tx<'_>, kind: ObjectKind, name: &str) -> Result<Reply, Refusal> {
    let missing = |what: &str| Refusal::new(RefusalKind::NotFound, format!("there is no {what} '{name}'"));
    let conflict = |text: String| Err(Refusal::new(RefusalKind::Conflict, text));
    match kind {
        ObjectKind::Queue => {
            let (id, _) = tx.state.queue_by_name(name).ok_or_else(|| missing("queue"))?;
            let jobs = tx.state.jobs.values().filter(|e| e.job.queue == id).count();
            if jobs > 0 {
                return conflict(format!("queue '{name}' still has {jobs} jobs; set it to closed and let them end"));
            }
            if let Some(child) = tx.state.queues.values().find(|q| q.parent == Some(id)) {
                return conflict(format!("queue '{}' lies below '{name}'", child.name));
            }
            tx.emit(Event::QueueDeleted { queue: id });
        }
        ObjectKind::Account => {
            let (id, _) = tx.state.account_by_name(name).ok_or_else(|| missing("account"))?;
            let jobs = tx.state.jobs.values().filter(|e| e.job.account == id).count();
            if jobs > 0 {
                return conflict(format!("account '{name}' still has {jobs} jobs"));
            }
            if let Some(user) = tx.state.users.values().find(|u| u.default_account.as_deref() == Some(name)) {
                return conflict(format!("account '{name}' is the default of user '{}'", user.name));
            }
            if let Some(child) = tx.state.accounts.values().find(|a| a.parent.as_deref() == Some(name)) {
                return conflict(format!("account '{}' lies below '{name}'", child.name));
            }
            tx.emit(Event::AccountDeleted { account: id });
        }
        ObjectKind::User => {
            let uid = tx.state.users.values().find(|u| u.name == name).map(|u| u.uid).ok_or_else(|| missing("user"))?;
            tx.emit(Event::UserDeleted { uid });
        }
        ObjectKind::Node => {
            let node = tx.state.node_by_name(name).ok_or_else(|| missing("node"))?;
            let id = node.id;
            if node.health == crate::records::NodeHealth::Up {
                return conflict(format!("node '{name}' answers; stop its agent first"));
            }
            let jobs = tx.state.derived.held.get(&id).map_or(0, |h| h.jobs.len());
            if jobs > 0 {
                return conflict(format!("node '{name}' still holds {jobs} jobs whose end is not known"));
            }
            tx.break_promises(id);
            tx.emit(Event::NodeDeleted { node: id });
        }
        ObjectKind::Qos => {
            let (id, _) = tx.state.qos_by_name(name).ok_or_else(|| missing("QOS"))?;
            object_limits::check_qos_unused(tx.state, id, name)?;
            tx.emit(Event::QosDeleted { qos: id });
        }
        ObjectKind::Licence => {
            let (id, _) = tx.state.licence_by_name(name).ok_or_else(|| missing("licence"))?;
            object_limits::check_licence_unused(tx.state, id, name)?;
            tx.emit(Event::LicenceDeleted { licence: id });
        }
        ObjectKind::Reservation => {
            let (no, _) = tx.state.reservation_by_name(name).ok_or_else(|| missing("reservation"))?;
            let asks = |e: &&Arc<crate::records::JobEntry>| {
                e.unfinished > 0 && e.job.spec.reservation.as_deref() == Some(name)
            };
            let jobs = tx.state.jobs.values().filter(asks).count();
            if jobs > 0 {
                return conflict(format!("reservation '{name}' is still asked for by {jobs} jobs; cancel them first"));
            }
            tx.emit(Event::ReservationDeleted { reservation: no });
        }
    }
    Ok(Reply::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_may_be_the_domain_of_a_level() {
        for good in ["ib", "rack=r1", "switch2=spine-1"] {
            assert!(check_feature(good).is_ok(), "{good}");
        }
        for bad in ["", "=", "rack=", "=r1", "a=b=c", "a b", "rack=r,1"] {
            assert!(check_feature(bad).is_err(), "{bad}");
        }
    }
}
