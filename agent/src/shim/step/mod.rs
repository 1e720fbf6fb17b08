//! Holds the tasks that one node has of a step: starts them, carries their streams to whoever started the step, and
//! leaves nothing behind.
//!
//! It ends when its tasks have ended, and ends them when the connection is lost: a step does not outlive whoever started
//! it. SIGTERM is the agent's word that the step is to end at once.

mod birth;
mod files;
mod lines;
mod link;
mod serve;

use super::{Held, take};
use crate::facts::now_ms;
use crate::spool::{Entry, SpoolError, Status, StepOrder};
use ephor_model::EndCause;
use nix::sys::signal::SigSet;
use tokio::runtime::Builder;

/// Runs one node's part of a step, from its entry to its end.
pub fn hold(entry: &Entry) -> Result<Held, SpoolError> {
    let Some(ready) = take(entry, &SigSet::all())? else { return Ok(Held::ByAnother) };
    let done = match (ready, entry.step_order()) {
        (Err(e), _) => Err(format!("the shim cannot adopt processes: {}", e.desc())),
        (_, Err(e)) => Err(e.to_string()),
        (_, Ok(order)) => run(order),
    };
    let status = match done {
        Ok(()) => Status::unstarted(EndCause::Exited, "", now_ms()),
        Err(why) => Status::unstarted(EndCause::LaunchFailed, why, now_ms()),
    };
    entry.set_status(&status)?;
    Ok(Held::Ended)
}

fn run(mut order: StepOrder) -> Result<(), String> {
    // One thread: tasks are forked from it.
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|e| format!("cannot wait: {e}"))?;
    let link = runtime.block_on(link::connect(&order))?;
    for group in [&order.attempt_group, &order.confinement] {
        group.make().map_err(|e| format!("cannot make the group {group:?}: {e}"))?;
    }
    files::empty(&order);
    let tasks = birth::start(&order);
    // An environment can be large, and a step can be long.
    (order.environment, order.argv) = (Vec::new(), Vec::new());
    order.tasks = Vec::new();
    let confinement = order.confinement.clone();
    let done = runtime.block_on(serve::serve(order, tasks, link));
    confinement.remove();
    done
}
