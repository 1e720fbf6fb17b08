//! Policies: listed with their figures, activated, rolled back, disabled.

use super::{Answer, Services, status_of};
use crate::policies::{ChangeError, Wanted, falls_back};
use ephor_core::PolicySlot;
use ephor_core::roles::{Permission, Target};
use ephor_model::{Generation, Slot, Timestamp};
use ephor_policy::{Loaded, Pick};
use ephor_proto::v1;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// Faults shown of a slot.
const FAULTS_SHOWN: usize = 16;

pub(super) async fn list(services: &Arc<Services>, request: Request<v1::Empty>) -> Answer<v1::PolicyList> {
    let caller = services.access.policy_caller(&request).await?;
    if !caller.rescuer {
        services.access.allow(&caller, Permission::ClusterRead, Target::default()).await?;
    }
    let snapshot = services.handle.snapshot();
    let policies = snapshot.state.policies.iter().map(|(slot, filled)| view(services, slot, filled)).collect();
    Ok(Response::new(v1::PolicyList { policies }))
}

pub(super) async fn activate(
    services: &Arc<Services>,
    request: Request<v1::ComponentUpload>,
) -> Answer<v1::PolicyView> {
    let caller = services.access.policy_caller(&request).await?;
    let v1::ComponentUpload { slot, component, config, grants } = request.into_inner();
    let slot = read_slot(&slot)?;
    services.access.allow(&caller, Permission::PolicyWrite, target(&slot)).await?;
    let by = caller.identity.name.clone();
    let wanted = Wanted { slot: slot.clone(), component, config, grants, by };
    services.policies.activate(&services.handle, wanted).await.map_err(refused)?;
    Ok(Response::new(current(services, &slot)))
}

pub(super) async fn roll_back(services: &Arc<Services>, request: Request<v1::SlotRef>) -> Answer<v1::PolicyView> {
    let caller = services.access.policy_caller(&request).await?;
    let slot = read_slot(&request.into_inner().slot)?;
    services.access.allow(&caller, Permission::PolicyWrite, target(&slot)).await?;
    services.policies.roll_back(&services.handle, slot.clone()).await.map_err(refused)?;
    Ok(Response::new(current(services, &slot)))
}

pub(super) async fn disable(services: &Arc<Services>, request: Request<v1::SlotRef>) -> Answer<v1::Empty> {
    let caller = services.access.policy_caller(&request).await?;
    let slot = read_slot(&request.into_inner().slot)?;
    services.access.allow(&caller, Permission::PolicyWrite, target(&slot)).await?;
    services.policies.disable(&services.handle, slot).await.map_err(refused)?;
    Ok(Response::new(v1::Empty {}))
}

fn read_slot(text: &str) -> Result<Slot, Status> {
    let plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) && name.len() <= 64;
    Slot::parse(text).filter(|slot| plain(&slot.name)).ok_or_else(|| {
        Status::invalid_argument(format!(
            "'{}' is not a slot; write ROLE or ROLE/NAME, such as scheduling, admission/50-main or authentication/local; \
             roles are authentication, admission, priority, scheduling and accounting",
            text.escape_debug()
        ))
    })
}

fn target(slot: &Slot) -> Target {
    Target { owner: None, name: slot.to_string() }
}

fn refused(error: ChangeError) -> Status {
    match error {
        ChangeError::Command(error) => status_of(error),
        ChangeError::Load(error) => Status::invalid_argument(error.to_string()),
        error @ ChangeError::TooLarge(_) => Status::invalid_argument(error.to_string()),
        error @ (ChangeError::Gone(_) | ChangeError::Store(_)) => super::internal(error),
    }
}

/// What fills a slot now.
fn current(services: &Services, slot: &Slot) -> v1::PolicyView {
    let snapshot = services.handle.snapshot();
    let filled = snapshot.state.policies.get(slot).cloned().unwrap_or_default();
    view(services, slot, &filled)
}

fn view(services: &Services, slot: &Slot, filled: &PolicySlot) -> v1::PolicyView {
    let now = services.handle.now();
    let loaded = services.policies.slots().live(slot);
    let mut view = v1::PolicyView {
        slot: slot.to_string(),
        state: state_name(services, slot, filled, now).into(),
        rollback_to: filled.earlier.iter().rev().map(|g| g.number).collect(),
        last_faults: faults(&services.policies.generations(slot)),
        ..v1::PolicyView::default()
    };
    if let Some(generation) = &filled.live {
        describe(&mut view, generation);
        match loaded {
            Ok(loaded) => figures(&mut view, &loaded),
            // It decides by the state, and this machine could not load it.
            Err(fault) => view.last_faults.push(v1::PolicyFault {
                at: services.started.0,
                generation: generation.number,
                kind: fault.kind.name().into(),
                message: fault.message,
                count: 1,
            }),
        }
    }
    view
}

fn state_name(services: &Services, slot: &Slot, filled: &PolicySlot, now: Timestamp) -> &'static str {
    if filled.live.is_none() {
        return "disabled";
    }
    match services.policies.slots().pick(slot, now) {
        Pick::LastGood(_) | Pick::Resting if falls_back(slot.role) => "falling-back",
        _ => "live",
    }
}

fn describe(view: &mut v1::PolicyView, generation: &Generation) {
    view.name.clone_from(&generation.name);
    view.version.clone_from(&generation.version);
    view.generation = generation.number;
    view.digest = generation.component.to_string();
    view.config.clone_from(&generation.config);
    view.grants.clone_from(&generation.grants);
    view.since = generation.since.0;
    view.by.clone_from(&generation.by);
    view.fuel_budget = generation.limits.fuel_base;
}

fn figures(view: &mut v1::PolicyView, loaded: &Loaded) {
    let stats = loaded.stats();
    view.calls = stats.calls;
    view.faults = stats.faults.iter().map(|(_, count)| count).sum();
    view.mean_call_ns = stats.mean_ns;
    view.max_call_ns = stats.max_ns;
    view.mean_fuel = stats.mean_fuel;
    if stats.calls > 0 {
        view.fuel_budget = stats.last_budget;
    }
}

/// The newest faults of all generations of a slot, oldest first; repeated ones once, with their number.
fn faults(generations: &[Arc<Loaded>]) -> Vec<v1::PolicyFault> {
    let mut all: Vec<v1::PolicyFault> = Vec::new();
    for loaded in generations {
        let generation = loaded.about().generation;
        for past in loaded.stats().last_faults {
            let kind = past.fault.kind.name();
            match all.last_mut() {
                Some(last)
                    if last.generation == generation && last.kind == kind && last.message == past.fault.message =>
                {
                    last.count += 1;
                    last.at = past.at.0;
                }
                _ => all.push(v1::PolicyFault {
                    at: past.at.0,
                    generation,
                    kind: kind.into(),
                    message: past.fault.message,
                    count: 1,
                }),
            }
        }
    }
    all.sort_by_key(|fault| fault.at);
    all.split_off(all.len().saturating_sub(FAULTS_SHOWN))
}
