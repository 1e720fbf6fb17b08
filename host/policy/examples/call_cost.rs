//! Prints what the policy calls of one submit cost: authenticate, authorize and admit, as one JSON object a line.
//!
//! `cargo run --release -p ephor-policy --example call_cost`

use ephor_core::State;
use ephor_core::roles::{Admission, Authentication, ClusterView, Credential, Intent, Peer, Permission, Target};
use ephor_model::{Account, Blobs, Draft, Identity, JobSpec, Payload, Queue, Role, Timestamp, Uid};
use ephor_policy::{Host, LoadError, Loaded, Request, Services, bounds, builtin};
use std::sync::Arc;
use std::time::Instant;

const CALLS: u32 = 5_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let host = Host::new(Services::default())?;
    let load = |role, name, config| -> Result<Arc<Loaded>, LoadError> {
        let component = builtin::find(name).ok_or_else(|| LoadError::Host(format!("{name} is not embedded")))?;
        let grants = vec!["ephor:host/directory".to_owned()];
        let maxima = bounds::site_maxima(role);
        Ok(host.prepare(&Request { role, component, config, grants: &grants, maxima })?.activate(1))
    };
    let authentication = load(Role::Authentication, "auth-local", r#"{"allow_unknown": true}"#)?;
    let admission = load(Role::Admission, "admission-defaults", "{}")?;
    let (authentication_policy, admission_policy) = (authentication.authentication()?, admission.admission()?);

    let now = Timestamp(1_000_000);
    let peer = Peer { uid: Uid(1000), gid: 1000, node: None };
    let who = Identity { uid: Uid(1000), gid: 1000, name: "alice".into(), roles: Vec::new() };
    let target = Target { owner: None, name: "main".into() };
    let mut state = State::default();
    let queue = Queue { name: "main".into(), default: true, ..Queue::default() };
    state.queues.insert(ephor_model::QueueId(1), Arc::new(queue));
    state
        .accounts
        .insert(ephor_model::AccountId(1), Arc::new(Account { name: "default".into(), ..Account::default() }));
    let view = Arc::new(ClusterView { state, never_runs: Box::new(|_, _| None) });
    let spec = JobSpec::new("cost", Payload::Argv(vec!["true".into()]));
    let draft = Draft { spec, blobs: Blobs::default() };

    measure("policy_authenticate", || authentication_policy.authenticate(now, &Credential::Local, &peer).map(drop))?;
    measure("policy_authorize", || authentication_policy.authorize(now, &who, Permission::Submit, &target).map(drop))?;
    measure("policy_admit", || admission_policy.admit(now, &who, &Intent::Submit, draft.clone(), &view).map(drop))?;
    for loaded in [authentication, admission] {
        let stats = loaded.stats();
        let name = &loaded.about().name;
        println!(r#"{{"name":"{name}","mean_fuel":{},"budget":{}}}"#, stats.mean_fuel, stats.last_budget);
    }
    println!(r#"{{"name":"instances","allocation":"{:?}"}}"#, host.allocation());
    Ok(())
}

/// Times calls one by one and prints mean and extremes in microseconds.
fn measure(name: &str, mut call: impl FnMut() -> Result<(), ephor_core::Fault>) -> Result<(), ephor_core::Fault> {
    let (mut sum, mut min, mut max) = (0.0, f64::MAX, 0.0_f64);
    for _ in 0..CALLS {
        let began = Instant::now();
        call()?;
        let took = began.elapsed().as_secs_f64() * 1e6;
        (sum, min, max) = (sum + took, min.min(took), max.max(took));
    }
    let mean = sum / f64::from(CALLS);
    println!(r#"{{"name":"{name}","value":{mean:.1},"unit":"us","runs":{CALLS},"min":{min:.1},"max":{max:.1}}}"#);
    Ok(())
}
