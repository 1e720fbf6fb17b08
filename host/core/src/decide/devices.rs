//! Devices that go out of service and come back.

use super::Tx;
use super::jobs::order_end;
use crate::command::{DeviceChange, Refusal, RefusalKind, Reply};
use crate::devices::{DeviceFaults, OnFault, joined};
use crate::event::Event;
use ephor_model::{EndCause, JobId, NodeId};

/// Takes out the devices that can no longer be relied on, and deals with the jobs on them. What is said anew of one that
/// is out, or of one that was taken back in spite of it, changes nothing.
pub(super) fn faults(tx: &mut Tx<'_>, id: NodeId, faults: &DeviceFaults) {
    for (uuid, reasons) in &faults.faulty {
        let Some(node) = tx.state.nodes.get(&id) else { return };
        let Some(index) = node.spec.devices.iter().position(|d| d.uuid == *uuid) else { continue };
        let forgiven = node.devices_forgiven.get(uuid).map_or(&[][..], Vec::as_slice);
        if node.devices_out.contains_key(uuid) || reasons.iter().all(|reason| forgiven.contains(reason)) {
            continue;
        }
        tx.emit(Event::DeviceTaken { node: id, device: uuid.clone(), reason: joined(reasons), by: String::new() });
        tx.break_promises(id);
        for job in jobs_on(tx, id, index as u32) {
            let cause = match faults.jobs {
                OnFault::Keep => continue,
                OnFault::Cancel => EndCause::Cancelled,
                OnFault::Requeue => match tx.state.find(job).and_then(|(entry, _)| entry.job.spec.requeue) {
                    Some(false) => EndCause::NodeFailed,
                    _ => EndCause::Requeued,
                },
            };
            // It has an attempt, and that its end was ordered before is as well.
            let _ = order_end(tx, job, cause);
        }
    }
}

/// The jobs that hold a device or a part of it.
fn jobs_on(tx: &Tx<'_>, id: NodeId, index: u32) -> Vec<JobId> {
    let holds = |job: &&JobId| {
        let parts = tx.state.attempts.get(*job).map_or(&[][..], |attempt| &attempt.allocation.parts);
        parts.iter().any(|part| part.node == id && part.devices.contains(&index))
    };
    let here = tx.state.derived.held.get(&id).into_iter().flat_map(|held| held.jobs.iter());
    here.filter(holds).copied().collect()
}

pub(super) fn set(tx: &mut Tx<'_>, id: NodeId, index: u32, change: DeviceChange, by: String) -> Result<Reply, Refusal> {
    let Some(node) = tx.state.nodes.get(&id) else {
        return Err(Refusal::new(RefusalKind::NotFound, format!("there is no node {id}")));
    };
    let count = node.spec.devices.len();
    let Some(device) = node.spec.devices.get(index as usize).map(|d| d.uuid.clone()) else {
        let text = format!("node {} has no GPU {index}; it has {count}, counted from 0", node.spec.name);
        return Err(Refusal::new(RefusalKind::NotFound, text));
    };
    match change {
        DeviceChange::Take(reason) if reason.trim().is_empty() => {
            return Err(Refusal::new(RefusalKind::Invalid, "a GPU is taken out of service for a reason; give one"));
        }
        DeviceChange::Take(reason) => {
            tx.emit(Event::DeviceTaken { node: id, device, reason: joined(&[reason]), by });
            tx.break_promises(id);
        }
        DeviceChange::Return(forgiven) if node.devices_out.contains_key(&device) => {
            tx.emit(Event::DeviceReturned { node: id, device, forgiven, by });
        }
        DeviceChange::Return(_) => {}
    }
    Ok(Reply::Done)
}
