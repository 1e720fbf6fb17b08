//! QOS and licences as objects, and what is in use of every limit.

use super::{Answer, Services, busy};
use ephor_core::State;
use ephor_core::pools::{self, Pool, Scope};
use ephor_core::roles::{Permission, Target};
use ephor_model::{Licence, Qos, limits};
use ephor_proto::convert::Malformed;
use ephor_proto::limits::{limits_from_wire, limits_to_wire};
use ephor_proto::v1;
use std::sync::Arc;
use tonic::{Request, Response};

pub(super) fn qos_to_wire(qos: &Qos) -> v1::QosObject {
    v1::QosObject {
        name: qos.name.clone(),
        description: qos.description.clone(),
        priority: qos.priority,
        accounts: qos.accounts.clone(),
        users: qos.users.clone(),
        limits: limits_to_wire(&qos.limits),
        per_user: limits_to_wire(&qos.per_user),
        per_account: limits_to_wire(&qos.per_account),
    }
}

pub(super) fn qos_from_wire(q: v1::QosObject) -> Result<Qos, Malformed> {
    let fail = |e: Malformed| Malformed(format!("QOS '{}': {e}", q.name));
    super::objects::check_text("the description of a QOS", &q.description)?;
    if q.accounts.len().max(q.users.len()) > limits::NAMES_PER_OBJECT {
        let text = format!("QOS '{}' names more than {} accounts or users", q.name, limits::NAMES_PER_OBJECT);
        return Err(Malformed(text));
    }
    Ok(Qos {
        limits: limits_from_wire(q.limits).map_err(fail)?,
        per_user: limits_from_wire(q.per_user).map_err(fail)?,
        per_account: limits_from_wire(q.per_account).map_err(fail)?,
        description: q.description,
        priority: q.priority,
        accounts: q.accounts,
        users: q.users,
        name: q.name,
    })
}

pub(super) fn licence_to_wire(licence: &Licence) -> v1::LicenceObject {
    v1::LicenceObject { name: licence.name.clone(), count: licence.count }
}

pub(super) async fn pools(services: &Arc<Services>, request: Request<v1::Empty>) -> Answer<v1::PoolList> {
    let caller = services.access.caller(&request).await?;
    services.access.allow(&caller, Permission::ClusterRead, Target::default()).await?;
    let snapshot = services.handle.snapshot();
    let list = move || {
        let state = &snapshot.state;
        pools::list(state).iter().map(|pool| pool_to_wire(state, pool)).collect()
    };
    let pools = services.queries.run(caller.peer.uid.0, list).await.map_err(busy)?;
    Ok(Response::new(v1::PoolList { pools }))
}

fn pool_to_wire(state: &State, pool: &Pool) -> v1::PoolView {
    let queue = |id| state.queues.get(&id).map(|q| q.name.clone());
    let account = |id| state.accounts.get(&id).map(|a| a.name.clone());
    let qos = |id| state.qos.get(&id).map(|q| q.name.clone());
    let (kind, name) = match pool.scope {
        Scope::Queue(id) | Scope::QueueUser(id, _) => ("queue", queue(id)),
        Scope::Account(id) | Scope::AccountUser(id, _) => ("account", account(id)),
        Scope::User(uid) => ("user", state.users.get(&uid).map(|u| u.name.clone())),
        Scope::Qos(id) | Scope::QosUser(id, _) | Scope::QosAccount(id, _) => ("qos", qos(id)),
        Scope::Licence(id) => ("licence", state.licences.get(&id).map(|l| l.name.clone())),
        Scope::Reservation(no) => ("reservation", state.reservations.get(&no).map(|r| r.name.clone())),
    };
    v1::PoolView {
        kind: kind.into(),
        name: name.unwrap_or_default(),
        whose: pool.whose(state),
        what: pool.what(state),
        used: pool.used,
        most: pool.ceiling,
    }
}
