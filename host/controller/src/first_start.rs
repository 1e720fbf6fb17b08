//! What a new cluster begins with: the built-in policies, a queue and an account.

use crate::directory::login_name;
use crate::handle::Handle;
use crate::policies::{Policies, Wanted};
use anyhow::Context;
use ephor_core::command::Objects;
use ephor_core::{Command, State};
use ephor_model::{Account, Queue, Role, Slot};
use ephor_policy::builtin;
use nix::unistd::geteuid;
use std::sync::Arc;

/// Who makes what a new cluster begins with.
const BY: &str = "first start";
/// Name of the first queue.
const QUEUE: &str = "main";
/// Name of the first account; the built-in admission policy names it too.
const ACCOUNT: &str = "default";

/// Fills what was never filled: objects where there are none, policies where none was ever activated.
///
/// # Errors
/// A command was refused, or a built-in policy does not load.
pub async fn fill(handle: &Handle, policies: &Arc<Policies>) -> anyhow::Result<()> {
    let state = handle.snapshot().state.clone();
    let objects = missing_objects(&state);
    if objects != Objects::default() {
        handle.run(Command::Apply(objects)).await.context("making the first queue and account")?;
    }
    // A slot that an administrator emptied stays empty: only a cluster that never had a policy gets the built-in ones.
    if state.meta.next_generation > 0 || !state.policies.is_empty() {
        return Ok(());
    }
    for (role, name) in [
        (Role::Authentication, "auth-local"),
        (Role::Admission, "admission-defaults"),
        (Role::Priority, "priority-multifactor"),
        (Role::Scheduling, "scheduling-backfill"),
        (Role::Accounting, "accounting-tres"),
    ] {
        let Some(component) = builtin::find(name) else {
            tracing::error!("this build has no policy '{name}'; root can activate one for {role}");
            continue;
        };
        let (config, grants) = match role {
            Role::Authentication => (operators(), vec!["ephor:host/directory".to_owned()]),
            _ => (String::new(), Vec::new()),
        };
        let slot = Slot::default_of(role);
        let wanted = Wanted { slot, component: component.to_vec(), config, grants, by: BY.into() };
        policies.activate(handle, wanted).await.with_context(|| format!("activating the built-in policy '{name}'"))?;
    }
    Ok(())
}

fn missing_objects(state: &State) -> Objects {
    let mut objects = Objects::default();
    if state.queues.is_empty() && state.meta.next_queue == 0 {
        let queue = Queue { name: QUEUE.into(), default: true, weight: 1, ..Queue::default() };
        objects.queues.push((queue, None));
    }
    if state.accounts.is_empty() && state.meta.next_account == 0 {
        let description = "jobs that name no account".into();
        objects.accounts.push(Account { name: ACCOUNT.into(), description, shares: 1, ..Account::default() });
    }
    objects
}

/// Configuration of the first authentication policy. An ordinary user who starts a controller operates it.
fn operators() -> String {
    let uid = geteuid();
    if uid.is_root() {
        return String::new();
    }
    let config = match login_name(uid) {
        Some(name) => serde_json::json!({ "operators": [name] }),
        None => serde_json::json!({ "operators": [format!("uid{uid}")], "allow_unknown": true }),
    };
    config.to_string()
}
