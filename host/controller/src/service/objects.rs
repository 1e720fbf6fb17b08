//! Objects of the cluster: queues, accounts, users, QOS, licences, reservations and additions to nodes, as `ephor apply` and `export`
//! have them.

use super::qos::{licence_to_wire, qos_from_wire, qos_to_wire};
use super::reservations::{reservation_from_wire, reservation_to_wire};
use super::{Answer, Services, internal, status_of};
use crate::sessions::name_of_resource;
use ephor_core::command::{ObjectKind, Objects};
use ephor_core::roles::{Permission, Target};
use ephor_core::{Command, Reply, State};
use ephor_model::{Account, Amounts, Licence, Queue, QueueState, ResourceId, Span, Uid, User, limits};
use ephor_proto::convert::{Malformed, amounts_from_wire, amounts_to_wire};
use ephor_proto::limits::{associations_from_wire, associations_to_wire, limits_from_wire, limits_to_wire};
use ephor_proto::v1;
use std::sync::Arc;
use tonic::{Request, Response, Status};

const QUEUE_STATES: [(QueueState, &str); 4] = [
    (QueueState::Open, "open"),
    (QueueState::Stopped, "stopped"),
    (QueueState::Draining, "draining"),
    (QueueState::Closed, "closed"),
];

/// Everything that an administrator made, as objects.
pub(super) async fn export(services: &Arc<Services>, request: Request<v1::Empty>) -> Answer<v1::ObjectSet> {
    let caller = services.access.caller(&request).await?;
    services.access.allow(&caller, Permission::ClusterRead, Target::default()).await?;
    let snapshot = services.handle.snapshot();
    let set = move || {
        let state = &snapshot.state;
        let extra = |n: &&Arc<ephor_core::Node>| !n.extra_features.is_empty() || !n.extra_amounts.is_empty();
        v1::ObjectSet {
            queues: state.queues.values().map(|q| queue_to_wire(state, q)).collect(),
            accounts: state.accounts.values().map(|a| account_to_wire(a)).collect(),
            users: state.users.values().map(|u| user_to_wire(u)).collect(),
            qos: state.qos.values().map(|q| qos_to_wire(q)).collect(),
            licences: state.licences.values().map(|l| licence_to_wire(l)).collect(),
            reservations: state.reservations.values().map(|r| reservation_to_wire(state, r)).collect(),
            nodes: state
                .nodes
                .values()
                .filter(extra)
                .map(|n| v1::NodeObject {
                    name: n.spec.name.clone(),
                    features: n.extra_features.clone(),
                    extra: amounts_to_wire(&n.extra_amounts, name_of_resource),
                })
                .collect(),
        }
    };
    let set = services.queries.run(caller.peer.uid.0, set).await.map_err(super::busy)?;
    Ok(Response::new(set))
}

pub(super) async fn apply(services: &Arc<Services>, request: Request<v1::ObjectSet>) -> Answer<v1::ApplyReply> {
    let caller = services.access.caller(&request).await?;
    let set = request.into_inner();
    let count = named(&set).count();
    if count > limits::APPLY_OBJECTS {
        let text = format!("{count} objects at once are more than {}; apply them in parts", limits::APPLY_OBJECTS);
        return Err(Status::invalid_argument(text));
    }
    let targets = named(&set).map(|(kind, name)| Target { owner: None, name: format!("{kind}/{name}") }).collect();
    let verdicts = services.access.allow_each(&caller, Permission::ClusterWrite, targets).await?;
    verdicts.into_iter().collect::<Result<Vec<()>, _>>()?;
    let objects = objects_from_wire(set).map_err(|e| Status::invalid_argument(e.to_string()))?;
    match services.handle.run(Command::Apply(objects)).await.map_err(status_of)? {
        Reply::Applied { created, changed, unchanged } => {
            Ok(Response::new(v1::ApplyReply { created, changed, unchanged }))
        }
        other => Err(internal(format!("an apply was answered with {other:?}"))),
    }
}

fn named(set: &v1::ObjectSet) -> impl Iterator<Item = (&'static str, &str)> {
    let queues = set.queues.iter().map(|q| ("queue", q.name.as_str()));
    let accounts = set.accounts.iter().map(|a| ("account", a.name.as_str()));
    let users = set.users.iter().map(|u| ("user", u.name.as_str()));
    let nodes = set.nodes.iter().map(|n| ("node", n.name.as_str()));
    let qos = set.qos.iter().map(|q| ("qos", q.name.as_str()));
    let licences = set.licences.iter().map(|l| ("licence", l.name.as_str()));
    let reservations = set.reservations.iter().map(|r| ("reservation", r.name.as_str()));
    queues.chain(accounts).chain(users).chain(nodes).chain(qos).chain(licences).chain(reservations)
}

pub(super) async fn delete(services: &Arc<Services>, request: Request<v1::DeleteRequest>) -> Answer<v1::Empty> {
    let caller = services.access.caller(&request).await?;
    let v1::DeleteRequest { kind: kind_name, name } = request.into_inner();
    let kind = match kind_name.as_str() {
        "queue" => ObjectKind::Queue,
        "account" => ObjectKind::Account,
        "user" => ObjectKind::User,
        "node" => ObjectKind::Node,
        "qos" => ObjectKind::Qos,
        "licence" => ObjectKind::Licence,
        "reservation" => ObjectKind::Reservation,
        other => {
            let text = format!(
                "'{other}' is no kind of object; write queue, account, user, qos, licence, reservation or node"
            );
            return Err(Status::invalid_argument(text));
        }
    };
    let target = Target { owner: None, name: format!("{kind_name}/{name}") };
    services.access.allow(&caller, Permission::ClusterWrite, target).await?;
    services.handle.run(Command::Delete { kind, name }).await.map_err(status_of)?;
    Ok(Response::new(v1::Empty {}))
}

pub(super) fn queue_to_wire(state: &State, queue: &Queue) -> v1::QueueObject {
    let parent = queue.parent.and_then(|id| state.queues.get(&id)).map(|q| q.name.clone());
    let state_name = QUEUE_STATES.iter().find(|(s, _)| *s == queue.state).map_or("", |(_, name)| name);
    v1::QueueObject {
        name: queue.name.clone(),
        parent,
        state: state_name.into(),
        default: queue.default,
        priority: queue.priority,
        default_time: queue.default_time.map(|t| t.0),
        max_time: queue.max_time.map(|t| t.0),
        max_nodes: queue.max_nodes,
        default_mem_per_cpu: queue.default_mem_per_cpu,
        node_features: queue.node_features.clone(),
        quota: amounts_to_wire(&queue.quota, name_of_resource),
        limit: amounts_to_wire(&queue.limit, name_of_resource),
        weight: queue.weight,
        limits: limits_to_wire(&queue.limits),
        per_user: limits_to_wire(&queue.per_user),
        default_qos: queue.default_qos.clone(),
    }
}

fn account_to_wire(account: &Account) -> v1::AccountObject {
    v1::AccountObject {
        name: account.name.clone(),
        parent: account.parent.clone(),
        description: account.description.clone(),
        shares: account.shares,
        limits: limits_to_wire(&account.limits),
        per_user: limits_to_wire(&account.per_user),
        default_qos: account.default_qos.clone(),
    }
}

fn user_to_wire(user: &User) -> v1::UserObject {
    v1::UserObject {
        name: user.name.clone(),
        uid: user.uid.0,
        default_account: user.default_account.clone(),
        accounts: user.accounts.clone(),
        limits: limits_to_wire(&user.limits),
        associations: associations_to_wire(&user.associations),
    }
}

fn objects_from_wire(set: v1::ObjectSet) -> Result<Objects, Malformed> {
    let amounts = |wire: &[v1::Amount]| amounts_from_wire(wire, ResourceId::from_well_known_name);
    Ok(Objects {
        queues: set.queues.into_iter().map(queue_from_wire).collect::<Result<_, _>>()?,
        accounts: set
            .accounts
            .into_iter()
            .map(|a| {
                check_text("the description of an account", &a.description)?;
                if a.shares < 0 {
                    return Err(Malformed(format!("account '{}' has negative shares", a.name)));
                }
                let fail = |e: Malformed| Malformed(format!("account '{}': {e}", a.name));
                Ok(Account {
                    limits: limits_from_wire(a.limits).map_err(fail)?,
                    per_user: limits_from_wire(a.per_user).map_err(fail)?,
                    default_qos: a.default_qos,
                    parent: a.parent,
                    description: a.description,
                    shares: a.shares,
                    name: a.name,
                })
            })
            .collect::<Result<_, _>>()?,
        users: set
            .users
            .into_iter()
            .map(|u| {
                let fail = |e: Malformed| Malformed(format!("user '{}': {e}", u.name));
                Ok(User {
                    uid: Uid(u.uid),
                    limits: limits_from_wire(u.limits).map_err(fail)?,
                    associations: associations_from_wire(u.associations).map_err(fail)?,
                    default_account: u.default_account,
                    accounts: u.accounts,
                    name: u.name,
                })
            })
            .collect::<Result<_, _>>()?,
        qos: set.qos.into_iter().map(qos_from_wire).collect::<Result<_, _>>()?,
        reservations: set.reservations.into_iter().map(reservation_from_wire).collect::<Result<_, _>>()?,
        licences: set.licences.into_iter().map(|l| Licence { name: l.name, count: l.count }).collect(),
        nodes: set
            .nodes
            .into_iter()
            .map(|n| amounts(&n.extra).map(|extra| (n.name, n.features, extra)))
            .collect::<Result<_, _>>()?,
    })
}

fn queue_from_wire(q: v1::QueueObject) -> Result<(Queue, Option<String>), Malformed> {
    let fail = |text: String| Malformed(format!("queue '{}': {text}", q.name));
    let state = match q.state.as_str() {
        "" => QueueState::Open,
        name => QUEUE_STATES
            .iter()
            .find(|(_, n)| *n == name)
            .map(|(s, _)| *s)
            .ok_or_else(|| fail(format!("'{name}' is no state; write open, stopped, draining or closed")))?,
    };
    let span = |what: &str, ms: Option<i64>| match ms {
        Some(ms) if ms <= 0 || ms > limits::TIME_LIMIT_MS => {
            Err(fail(format!("{what} must be above 0 and at most 100 years")))
        }
        ms => Ok(ms.map(Span)),
    };
    let amounts = |what: &str, wire: &[v1::Amount]| -> Result<Amounts, Malformed> {
        amounts_from_wire(wire, ResourceId::from_well_known_name).map_err(|e| fail(format!("{what}: {e}")))
    };
    if q.node_features.len() > 64 || q.node_features.iter().any(|f| f.is_empty() || f.len() > limits::NAME_BYTES) {
        return Err(fail(format!("at most 64 node features of up to {} bytes are taken", limits::NAME_BYTES)));
    }
    if q.max_nodes == Some(0) || q.default_mem_per_cpu.is_some_and(|m| m > limits::AMOUNT as u64) {
        return Err(fail("max_nodes must be above 0, and default_mem_per_cpu countable".into()));
    }
    let queue = Queue {
        parent: None,
        state,
        default: q.default,
        priority: q.priority,
        default_time: span("default_time", q.default_time)?,
        max_time: span("max_time", q.max_time)?,
        max_nodes: q.max_nodes,
        default_mem_per_cpu: q.default_mem_per_cpu,
        quota: amounts("quota", &q.quota)?,
        limit: amounts("limit", &q.limit)?,
        weight: q.weight,
        limits: limits_from_wire(q.limits).map_err(|e| fail(e.to_string()))?,
        per_user: limits_from_wire(q.per_user).map_err(|e| fail(e.to_string()))?,
        default_qos: q.default_qos.clone(),
        node_features: q.node_features,
        name: q.name,
    };
    Ok((queue, q.parent))
}

pub(super) fn check_text(what: &str, text: &str) -> Result<(), Malformed> {
    match text.len() > limits::TEXT_BYTES || text.contains('\0') {
        true => Err(Malformed(format!("{what} has more than {} bytes or holds a NUL byte", limits::TEXT_BYTES))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_survives_the_wire() {
        let mut queue = Queue { name: "q".into(), state: QueueState::Draining, weight: 3, ..Queue::default() };
        queue.limit.set(ResourceId::CPU, 8000);
        queue.max_time = Some(Span::minutes(5));
        let wire = queue_to_wire(&State::default(), &queue);
        assert_eq!(queue_from_wire(wire).unwrap(), (queue, None));
    }

    #[test]
    fn bad_objects_are_named() {
        let error = |change: fn(&mut v1::QueueObject)| {
            let mut q = v1::QueueObject { name: "q".into(), ..v1::QueueObject::default() };
            change(&mut q);
            queue_from_wire(q).unwrap_err().to_string()
        };
        assert!(error(|q| q.state = "ajar".into()).contains("ajar"));
        assert!(error(|q| q.max_time = Some(0)).contains("max_time"));
        assert!(error(|q| q.limit = vec![v1::Amount { resource: "beer".into(), value: 1 }]).contains("beer"));
        assert!(error(|q| q.limit = vec![v1::Amount { resource: "cpu".into(), value: -1 }]).contains("range"));
    }
}
