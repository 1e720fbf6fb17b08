//! GPUs as the controller is told of them.

use super::driver::{Found, Link};
use super::inventory::Known;
use super::watch::Health;
use crate::limits::GPU_PROCESSES;
use ephor_proto::v1;

/// How GPUs are introduced, in the order of their index.
pub fn devices(known: &[Known]) -> Vec<v1::Device> {
    known.iter().map(|k| device(&k.found, known)).collect()
}

fn device(found: &Found, all: &[Known]) -> v1::Device {
    let link = |link: &Link| {
        let to = all.iter().position(|k| k.found.uuid == link.to)?;
        Some(v1::DeviceLink { to: to as u32, nvlinks: link.fast, path: link.path.name().to_owned() })
    };
    v1::Device {
        kind: found.kind.clone(),
        uuid: found.uuid.clone(),
        mem_mib: found.mem_mib,
        numa: found.numa,
        name: found.name.clone(),
        pci: found.pci.clone(),
        part_of: found.part_of.clone().unwrap_or_default(),
        links: found.links.iter().filter_map(link).collect(),
        ..v1::Device::default()
    }
}

/// How a GPU is doing.
pub(super) fn state(known: &Known, health: &Health) -> v1::DeviceState {
    let reading = &health.reading;
    let rows = reading.rows.map(|rows| v1::RemappedRows {
        correctable: rows.correctable,
        uncorrectable: rows.uncorrectable,
        pending: rows.pending,
        failed: rows.failed,
    });
    let process =
        |p: &super::driver::Process| v1::DeviceProcess { pid: p.pid, mem_mib: p.mem_mib, utilisation: p.utilisation };
    v1::DeviceState {
        uuid: known.found.uuid.clone(),
        faults: health.faults(known),
        ecc_uncorrectable: reading.ecc.map(|(n, _)| n),
        ecc_corrected: reading.ecc.map(|(_, n)| n),
        rows,
        slowed_by: reading.slowed.iter().map(|s| (*s).to_owned()).collect(),
        utilisation: reading.utilisation,
        mem_used_mib: reading.mem_used_mib,
        temperature: reading.temperature,
        power_mw: reading.power_mw,
        energy_mj: reading.energy_mj,
        processes: reading.processes.iter().take(GPU_PROCESSES).map(process).collect(),
        events: health.events.iter().map(|(at, what)| v1::DeviceEvent { at: *at, what: what.clone() }).collect(),
    }
}
