//! Devices out of service: a GPU that can no longer be relied on is taken out alone, and its node goes on.

use crate::records::{Attempt, Node};
use crate::state::State;
use ephor_model::{Allocation, Amounts, NodeId, ResourceId, Timestamp};
use serde::{Deserialize, Serialize};

/// Thousandths of a whole device.
const WHOLE: i64 = 1000;
/// Characters of a reason that are kept.
const REASON_CHARS: usize = 1024;

/// Why no job is given a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceOut {
    /// In words.
    pub reason: String,
    /// Who took it out; empty: its agent's word did.
    pub by: String,
    /// Since when.
    pub since: Timestamp,
}

/// What becomes of jobs on a device that is taken out because it can no longer be relied on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFault {
    /// They go on.
    #[default]
    Keep,
    /// They are ended and wait again; one that is not to run twice fails.
    Requeue,
    /// They are cancelled.
    Cancel,
}

/// What an agent says of its node's devices: those that can no longer be relied on, by uuid, each with why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFaults {
    /// The others are not mentioned.
    pub faulty: Vec<(String, Vec<String>)>,
    /// What becomes of the jobs on them.
    pub jobs: OnFault,
}

/// Several reasons as one text, of bounded length.
pub fn joined(reasons: &[String]) -> String {
    reasons.join("; ").chars().take(REASON_CHARS).collect()
}

impl Node {
    /// Why the device with that index is out of service; `None`: it is not.
    pub fn device_out(&self, index: u32) -> Option<&DeviceOut> {
        if self.devices_out.is_empty() {
            return None;
        }
        self.devices_out.get(&self.spec.devices.get(index as usize)?.uuid)
    }

    /// The indices of the devices that are out of service, ascending.
    pub fn out_of_service(&self) -> Vec<u32> {
        if self.devices_out.is_empty() {
            return Vec::new();
        }
        (0..self.spec.devices.len() as u32).filter(|index| self.device_out(*index).is_some()).collect()
    }

    /// What it offers while its devices are as they are now.
    pub fn capacity_in_service(&self) -> Amounts {
        let mut capacity = self.capacity();
        let out = self.out_of_service().len() as i64 * WHOLE;
        if out > 0 {
            capacity.set(ResourceId::GPU, (capacity.get(ResourceId::GPU) - out).max(0));
        }
        capacity
    }

    /// Forgets what was said of devices before the boot that it came with now: only what people took out stays out.
    pub(crate) fn devices_booted(&mut self) {
        self.devices_out.retain(|_, out| !out.by.is_empty());
        self.devices_forgiven.clear();
    }

    /// Forgets devices that it no longer has.
    pub(crate) fn forget_strange_devices(&mut self) {
        if self.devices_out.is_empty() && self.devices_forgiven.is_empty() {
            return;
        }
        let has = |uuid: &String| self.spec.devices.iter().any(|d| d.uuid == *uuid);
        self.devices_out.retain(|uuid, _| has(uuid));
        self.devices_forgiven.retain(|uuid, _| has(uuid));
    }
}

impl State {
    /// Thousandths of devices of a node that are out of service and that nobody holds: free, and not to be had.
    pub(crate) fn idle_out_of_service(&self, node: &Node) -> i64 {
        let held = self.derived.held.get(&node.id);
        let taken = |index: &u32| held.and_then(|h| h.devices.get(index)).copied().unwrap_or(0);
        node.out_of_service().iter().map(|index| (WHOLE - taken(index)).max(0)).sum()
    }

    /// What attempts hold of a node's devices that are out of service: who, and how many thousandths.
    pub(crate) fn held_out_of_service(&self, id: NodeId) -> Vec<(&Attempt, i64)> {
        if self.nodes.get(&id).is_none_or(|node| node.devices_out.is_empty()) {
            return Vec::new();
        }
        let jobs = self.derived.held.get(&id).into_iter().flat_map(|held| held.jobs.iter());
        let attempts = jobs.filter_map(|job| self.attempts.get(job));
        let here = |attempt| self.out_of_service_in(attempt).find(|(node, _)| *node == id);
        attempts.filter_map(|attempt| Some((&**attempt, here(attempt)?.1))).collect()
    }

    /// What an attempt holds of devices that are out of service: on which node, and how many thousandths.
    pub(crate) fn out_of_service_in(&self, attempt: &Attempt) -> impl Iterator<Item = (NodeId, i64)> {
        attempt.allocation.parts.iter().filter_map(|part| {
            let node = self.nodes.get(&part.node).filter(|node| !node.devices_out.is_empty())?;
            let out = part.devices.iter().filter(|index| node.device_out(**index).is_some()).count() as i64;
            (out > 0).then(|| (part.node, out * part.milli_per_device()))
        })
    }

    /// The first device of an allocation that is out of service, in words.
    pub fn device_out_of(&self, allocation: &Allocation) -> Option<String> {
        allocation.parts.iter().find_map(|part| {
            let node = self.nodes.get(&part.node)?;
            let (index, out) = part.devices.iter().find_map(|index| Some((index, node.device_out(*index)?)))?;
            Some(format!("GPU {index} of {} is out of service: {}", node.spec.name, out.reason))
        })
    }
}
