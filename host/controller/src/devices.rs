//! What agents say of their nodes' devices: what they are, how they are doing, and which can no longer be relied on.
//!
//! What a device is, and that it is out of service, is part of the state. How it is doing changes all the time and is only
//! kept in memory, the last word of each node.

use ephor_core::{DeviceFaults, Node, NodeHealth, OnFault, State};
use ephor_model::{Device, DeviceLink, DevicePath, NodeId, limits};
use ephor_proto::v1;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Texts of one device, and of all of a node's together, that are kept of a report.
const TEXTS: usize = 32;
/// Processes of one device that are kept of a report.
const PROCESSES: usize = 64;
/// Devices out of service that an explanation names one by one.
const NAMED: usize = 8;

/// The last report of each node.
#[derive(Default)]
pub struct DeviceReports(Mutex<HashMap<NodeId, Arc<v1::GpuReport>>>);

impl DeviceReports {
    /// Takes one, cut to its bounds. Those of nodes that are deleted go.
    pub fn take(&self, state: &State, node: NodeId, report: v1::GpuReport) {
        // A map is consistent after every statement.
        let mut reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reports.insert(node, Arc::new(bounded(report)));
        if reports.len() > state.nodes.len() {
            reports.retain(|id, _| state.nodes.contains_key(id));
        }
    }

    /// The last one of a node.
    pub fn of(&self, node: NodeId) -> Option<Arc<v1::GpuReport>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&node).cloned()
    }

    /// What is said against one device at the moment.
    pub fn faults(&self, node: NodeId, uuid: &str) -> Vec<String> {
        let report = self.of(node);
        let state = report.as_ref().and_then(|report| report.devices.iter().find(|d| d.uuid == uuid));
        state.map(|d| d.faults.clone()).unwrap_or_default()
    }
}

fn bounded(mut report: v1::GpuReport) -> v1::GpuReport {
    let cut = |texts: &mut Vec<String>| {
        texts.truncate(TEXTS);
        texts.iter_mut().for_each(shorten);
    };
    shorten(&mut report.source);
    cut(&mut report.notes);
    report.devices.truncate(limits::DEVICES_PER_NODE as usize);
    for device in &mut report.devices {
        shorten(&mut device.uuid);
        cut(&mut device.faults);
        cut(&mut device.slowed_by);
        device.processes.truncate(PROCESSES);
        device.events.truncate(TEXTS);
        device.events.iter_mut().for_each(|event| shorten(&mut event.what));
    }
    report
}

fn shorten(text: &mut String) {
    let mut end = limits::TEXT_BYTES.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}

/// What a registration says against its devices.
pub fn faults_of(devices: &[v1::Device], jobs: OnFault) -> DeviceFaults {
    let faulty = devices.iter().filter(|d| !d.faults.is_empty());
    DeviceFaults { faulty: faulty.map(|d| (d.uuid.clone(), d.faults.clone())).collect(), jobs }
}

/// What a report says against devices that is news to the state.
pub fn news(state: &State, node: NodeId, report: &v1::GpuReport, jobs: OnFault) -> Option<DeviceFaults> {
    let node = state.nodes.get(&node)?;
    let is_news = |device: &&v1::DeviceState| {
        let forgiven = node.devices_forgiven.get(&device.uuid).map_or(&[][..], Vec::as_slice);
        !node.devices_out.contains_key(&device.uuid) && device.faults.iter().any(|fault| !forgiven.contains(fault))
    };
    let faulty: Vec<_> = report.devices.iter().filter(is_news).map(|d| (d.uuid.clone(), d.faults.clone())).collect();
    (!faulty.is_empty()).then_some(DeviceFaults { faulty, jobs })
}

/// A device from the wire.
pub fn device(mut d: v1::Device) -> Device {
    [&mut d.kind, &mut d.uuid, &mut d.name, &mut d.pci, &mut d.part_of].into_iter().for_each(shorten);
    d.links.truncate(limits::DEVICES_PER_NODE as usize);
    let link = |link: v1::DeviceLink| DeviceLink {
        to: link.to,
        nvlinks: link.nvlinks,
        // What it does not name is as far as can be.
        path: DevicePath::named(&link.path).unwrap_or(DevicePath::System),
    };
    Device {
        kind: d.kind,
        uuid: d.uuid,
        mem_mib: d.mem_mib,
        numa: d.numa,
        name: d.name,
        pci: d.pci,
        part_of: (!d.part_of.is_empty()).then_some(d.part_of),
        links: d.links.into_iter().map(link).collect(),
    }
}

/// A node's devices for the wire, with how many thousandths of each are held and how they are doing.
pub fn views(node: &Node, held: &dyn Fn(u32) -> i64, report: Option<&v1::GpuReport>) -> Vec<v1::Device> {
    let up = node.health == NodeHealth::Up;
    let state = |uuid: &str| report.filter(|_| up)?.devices.iter().find(|d| d.uuid == uuid).cloned();
    let link =
        |link: &DeviceLink| v1::DeviceLink { to: link.to, nvlinks: link.nvlinks, path: link.path.name().to_owned() };
    let view = |(index, d): (usize, &Device)| v1::Device {
        kind: d.kind.clone(),
        uuid: d.uuid.clone(),
        mem_mib: d.mem_mib,
        numa: d.numa,
        used: held(index as u32) > 0,
        held: u32::try_from(held(index as u32)).unwrap_or(0),
        name: d.name.clone(),
        pci: d.pci.clone(),
        part_of: d.part_of.clone().unwrap_or_default(),
        links: d.links.iter().map(link).collect(),
        faults: Vec::new(),
        out: node.device_out(index as u32).map(|out| v1::DeviceOut {
            reason: out.reason.clone(),
            by: out.by.clone(),
            since: out.since.0,
        }),
        now: state(&d.uuid),
    };
    node.spec.devices.iter().enumerate().map(view).collect()
}

/// A line about the devices that a waiting job could have if they were in service.
pub fn out_of_service(state: &State) -> Option<String> {
    let nodes = state.nodes.values().filter(|node| node.takes_jobs());
    let mut all = nodes.flat_map(|node| {
        let index = node.out_of_service().into_iter();
        index.filter_map(move |index| Some((index, &node.spec.name, node.device_out(index)?)))
    });
    let named: Vec<String> =
        all.by_ref().take(NAMED).map(|(i, name, out)| format!("GPU {i} of {name} ({})", out.reason)).collect();
    let more = all.count();
    let tail = if more > 0 { format!(", and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| format!("out of service: {}{tail}", named.join(", ")))
}
