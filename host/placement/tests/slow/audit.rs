//! The auditor: whether what a job was given is what it asked for, and nothing is held twice at any time.

use ephor_model::allocation::Allocation;
use ephor_model::id::NodeId;
use ephor_model::request::{GpuRequest, Request};
use ephor_model::resource::{Amounts, ResourceId};
use ephor_placement::{Need, NodeView};
use std::collections::{BTreeMap, BTreeSet};

/// Something held in `[from, until)`.
pub struct Held<'a> {
    pub from: i64,
    pub until: i64,
    pub allocation: &'a Allocation,
    /// Whether the devices are decided.
    pub runs: bool,
}

/// An allocation against the request that it answers.
pub fn answers(need: &Need, nodes: &BTreeMap<NodeId, NodeView>, allocation: &Allocation) -> Result<(), String> {
    let request = &need.request;
    let ids: Vec<NodeId> = allocation.parts.iter().map(|p| p.node).collect();
    if !ids.is_sorted_by(|a, b| a < b) {
        return Err("parts are not by ascending node".into());
    }
    let names: Vec<&String> = ids.iter().map(|id| &nodes[id].name).collect();
    if request.node_list.iter().any(|name| !names.contains(&name)) || names.iter().any(|n| request.exclude.contains(n))
    {
        return Err(format!("wrong nodes {names:?}"));
    }
    let count = ids.len() as u32;
    if count < request.nodes_min || request.nodes_max.is_some_and(|most| count > most) {
        return Err(format!("{count} nodes"));
    }
    let tasks: u32 = allocation.parts.iter().map(|p| p.tasks).sum();
    let asked = request.tasks.unwrap_or(count * request.tasks_per_node.unwrap_or(1));
    if tasks != asked || allocation.parts.iter().any(|p| p.tasks == 0) {
        return Err(format!("{tasks} tasks in place of {asked}"));
    }
    let mut gpus = 0;
    for part in &allocation.parts {
        let view = &nodes[&part.node];
        if !view.up || need.request.features.iter().chain(&need.queue_features).any(|f| !view.features.contains(f)) {
            return Err(format!("{} does not suit", view.name));
        }
        if request.tasks_per_node.is_some_and(|most| part.tasks > most) {
            return Err(format!("{} tasks on one node", part.tasks));
        }
        let devices: BTreeSet<u32> = part.devices.iter().copied().collect();
        let right =
            |d: &u32| view.devices.get(*d as usize).map_or(request.gpu_types.is_empty(), |k| request.takes_gpu_type(k));
        let right_devices = devices.iter().filter(|d| right(d)).count() as u32;
        gpus += right_devices;
        if devices.len() != part.devices.len()
            || i64::try_from(devices.len()) != Ok((part.amounts.get(ResourceId::GPU) + 999) / 1000)
        {
            return Err(format!("devices {:?} for {:?}", part.devices, part.amounts));
        }
        amounts(request, part.tasks, &part.amounts, &view.capacity, right_devices)?;
        if !request.exclusive && right_devices != devices.len() as u32 {
            return Err(format!("devices {:?} of the wrong kind", part.devices));
        }
    }
    match request.gpus {
        GpuRequest::Total(n) if gpus < n || gpus > n && !request.exclusive => Err(format!("{gpus} GPUs in all")),
        _ => Ok(()),
    }
}

fn amounts(request: &Request, tasks: u32, given: &Amounts, capacity: &Amounts, devices: u32) -> Result<(), String> {
    let mut asked = request.per_task().scaled(i64::from(tasks));
    asked.add(&request.per_node());
    let enough_devices = i64::from(devices) * 1000 >= asked.get(ResourceId::GPU);
    if let GpuRequest::Total(_) = request.gpus {
        asked.set(ResourceId::GPU, given.get(ResourceId::GPU));
    }
    let right = if request.exclusive { given == capacity && given.covers(&asked) } else { *given == asked };
    (right && enough_devices).then_some(()).ok_or_else(|| format!("{given:?} in place of {asked:?}"))
}

/// Whether at every time everything held fits the nodes.
pub fn nothing_twice(nodes: &BTreeMap<NodeId, NodeView>, held: &[Held<'_>]) -> Result<(), String> {
    let times: BTreeSet<i64> = held.iter().flat_map(|h| [h.from, h.until]).collect();
    for time in times {
        let mut sums: BTreeMap<NodeId, Amounts> = BTreeMap::new();
        let mut kinds: BTreeMap<(NodeId, &str), i64> = BTreeMap::new();
        let mut parts: BTreeMap<(NodeId, &str), i64> = BTreeMap::new();
        let mut devices: BTreeMap<(NodeId, u32), i64> = BTreeMap::new();
        for held in held.iter().filter(|h| h.from <= time && time < h.until) {
            for part in &held.allocation.parts {
                sums.entry(part.node).or_default().add(&part.amounts);
                let view = &nodes[&part.node];
                let milli = part.share().map(i64::from);
                for device in &part.devices {
                    let kind = (part.node, view.devices[*device as usize].as_str());
                    match milli {
                        None => *kinds.entry(kind).or_default() += 1,
                        Some(milli) => *parts.entry(kind).or_default() += milli,
                    }
                    let on_device = devices.entry((part.node, *device)).or_default();
                    *on_device += if held.runs { milli.unwrap_or(1000) } else { 0 };
                    if *on_device > 1000 {
                        return Err(format!("device {device} of {} gives {on_device} at {time}", view.name));
                    }
                }
            }
        }
        for (id, sum) in sums {
            if !nodes[&id].capacity.covers(&sum) {
                return Err(format!("{} holds {sum:?} at {time}", nodes[&id].name));
            }
        }
        // Parts need as many GPUs as they fill, at least.
        parts.into_iter().for_each(|(kind, milli)| *kinds.entry(kind).or_default() += (milli + 999) / 1000);
        for ((id, kind), count) in kinds {
            if (nodes[&id].devices.iter().filter(|d| *d == kind).count() as i64) < count {
                return Err(format!("{} holds {count} of {kind} at {time}", nodes[&id].name));
            }
        }
    }
    Ok(())
}
