//! Nodes, and the tokens with which new ones join.

use super::{Answer, Services, status_of};
use crate::devices::{DeviceReports, views};
use crate::sessions::name_of_resource;
use crate::trust::{SIMULATE, Token, fresh_secret, is_node_name, secret_digest};
use ephor_core::command::DeviceChange;
use ephor_core::roles::{Permission, Target};
use ephor_core::state::Held;
use ephor_core::{Command, Node, NodeHealth, State};
use ephor_model::{ResourceId, Span, limits};
use ephor_proto::convert::amounts_to_wire;
use ephor_proto::v1;
use std::sync::Arc;
use tonic::{Request, Response, Status};

pub(super) async fn list(services: &Arc<Services>, request: Request<v1::Empty>) -> Answer<v1::NodeList> {
    let caller = services.access.caller(&request).await?;
    services.access.allow(&caller, Permission::ClusterRead, Target::default()).await?;
    let inner = services.clone();
    let nodes = move || {
        let snapshot = inner.handle.snapshot();
        let now = inner.handle.now();
        let seen = |node: &Node| inner.sessions.heard(node.id).map(|ago| now.0 - ago.as_millis() as i64);
        let devices = &inner.sessions.devices;
        snapshot.state.nodes.values().map(|node| view(&snapshot.state, node, devices, seen(node))).collect()
    };
    let nodes = services.queries.run(caller.peer.uid.0, nodes).await.map_err(super::busy)?;
    Ok(Response::new(v1::NodeList { nodes }))
}

fn view(state: &State, node: &Node, devices: &DeviceReports, last_seen: Option<i64>) -> v1::Node {
    let none = Held::default();
    let held = state.derived.held.get(&node.id).unwrap_or(&none);
    let (reason, by, since) = match (&node.drain, node.health) {
        (Some(drain), _) => (drain.reason.clone(), drain.by.clone(), Some(drain.since.0)),
        (None, NodeHealth::Down) => (node.health_reason.clone(), String::new(), Some(node.since.0)),
        (None, NodeHealth::Up) => (String::new(), String::new(), None),
    };
    let report = devices.of(node.id);
    let taken = |index: u32| held.devices.get(&index).copied().unwrap_or(0);
    v1::Node {
        name: node.spec.name.clone(),
        state: state_name(node, held).into(),
        reason,
        reason_by: by,
        reason_since: since,
        capacity: amounts_to_wire(&node.capacity(), name_of_resource),
        allocated: amounts_to_wire(&held.amounts, name_of_resource),
        features: node.features(),
        devices: views(node, &taken, report.as_deref()),
        address: node.spec.address.clone(),
        boot_id: node.spec.boot_id.clone(),
        agent_version: node.spec.agent_version.clone(),
        last_seen,
        jobs: held.jobs.iter().map(|job| job.0).collect(),
        device_source: report.as_ref().map(|r| r.source.clone()).unwrap_or_default(),
        devices_at: report.as_ref().map(|r| r.at),
        device_notes: report.as_ref().map(|r| r.notes.clone()).unwrap_or_default(),
    }
}

fn state_name(node: &Node, held: &Held) -> &'static str {
    let busy = !held.jobs.is_empty();
    match (node.health, &node.drain) {
        (NodeHealth::Down, _) if node.spec.boot_id.is_empty() => "UNKNOWN",
        (NodeHealth::Down, _) => "DOWN",
        (NodeHealth::Up, Some(_)) if busy => "DRAINING",
        (NodeHealth::Up, Some(_)) => "DRAINED",
        (NodeHealth::Up, None) if !busy => "IDLE",
        (NodeHealth::Up, None) => {
            let full = held.amounts.get(ResourceId::CPU) >= node.capacity().get(ResourceId::CPU);
            if full { "ALLOCATED" } else { "MIXED" }
        }
    }
}

pub(super) async fn act(services: &Arc<Services>, request: Request<v1::NodeActionRequest>) -> Answer<v1::Empty> {
    let caller = services.access.caller(&request).await?;
    let v1::NodeActionRequest { action, nodes, reason, gpu } = request.into_inner();
    if nodes.is_empty() || nodes.len() > limits::APPLY_OBJECTS {
        return Err(Status::invalid_argument(format!("name 1 to {} nodes", limits::APPLY_OBJECTS)));
    }
    let reason = match v1::NodeAction::try_from(action) {
        Ok(v1::NodeAction::Drain) if reason.trim().is_empty() || reason.len() > limits::TEXT_BYTES => {
            let text = format!("a node or GPU is drained for a reason of up to {} bytes; give one", limits::TEXT_BYTES);
            return Err(Status::invalid_argument(text));
        }
        Ok(v1::NodeAction::Drain) => Some(reason),
        Ok(v1::NodeAction::Resume) => None,
        Err(_) => return Err(Status::invalid_argument("there is no such action")),
    };
    let snapshot = services.handle.snapshot();
    // All must be known before the first is touched.
    let mut ids = Vec::with_capacity(nodes.len());
    for name in &nodes {
        let node = snapshot.state.node_by_name(name);
        ids.push(node.ok_or_else(|| Status::not_found(format!("there is no node '{name}'; nothing was done")))?.id);
    }
    let targets = nodes.iter().map(|name| Target { owner: None, name: name.clone() }).collect();
    let verdicts = services.access.allow_each(&caller, Permission::ClusterWrite, targets).await?;
    verdicts.into_iter().collect::<Result<Vec<()>, _>>()?;
    let mut waiting = Vec::with_capacity(ids.len());
    for node in ids {
        let by = caller.identity.name.clone();
        let command = match gpu {
            None => Command::DrainNode { node, reason: reason.clone(), by },
            Some(device) => {
                let uuid = snapshot.state.nodes.get(&node).and_then(|n| n.spec.devices.get(device as usize));
                let said = uuid.map(|d| services.sessions.devices.faults(node, &d.uuid)).unwrap_or_default();
                let change = reason.clone().map_or(DeviceChange::Return(said), DeviceChange::Take);
                Command::SetDevice { node, device, change, by }
            }
        };
        waiting.push(services.handle.enqueue(command).await.map_err(status_of)?);
    }
    for pending in waiting {
        pending.reply().await.map_err(status_of)?;
    }
    Ok(Response::new(v1::Empty {}))
}

pub(super) async fn issue_token(services: &Arc<Services>, request: Request<v1::TokenRequest>) -> Answer<v1::Token> {
    let caller = services.access.caller(&request).await?;
    let node = request.into_inner().node;
    if !node.is_empty() && !is_node_name(node.strip_prefix(SIMULATE).unwrap_or(&node)) {
        let text = format!("'{}' cannot name a node: use letters, digits and . _ -", node.escape_debug());
        return Err(Status::invalid_argument(text));
    }
    services.access.allow(&caller, Permission::NodeToken, Target { owner: None, name: node.clone() }).await?;
    let (token, expires) = new_token(services, node).await?;
    Ok(Response::new(v1::Token { token, expires }))
}

/// Opens a token: its line, and when it runs out.
pub(crate) async fn new_token(services: &Services, node: String) -> Result<(String, i64), Status> {
    let secret = fresh_secret();
    let expires = services.handle.now() + Span(limits::TOKEN_LIFE_MS);
    let command = Command::IssueToken { token: secret_digest(&secret), node };
    services.handle.run(command).await.map_err(status_of)?;
    let authority = services.authority.certificate().to_owned();
    let token = Token { address: services.agents_address.clone(), authority, secret };
    Ok((token.to_line(), expires.0))
}
