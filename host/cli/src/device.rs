//! The devices of a node in `ephor node show`, for people; `--json` shows all there is.

use crate::{amount, clock};
use ephor_model::DevicePath;
use ephor_proto::v1;

/// Events of one device that are shown.
const EVENTS: usize = 3;

/// What all of them are together, such as `6 h100 (1 out of service), 2 a100-1g.10gb`.
pub fn summary(devices: &[v1::Device]) -> String {
    let mut kinds: Vec<(&str, usize, usize)> = Vec::new();
    for device in devices {
        let out = usize::from(device.out.is_some());
        match kinds.iter_mut().find(|(kind, ..)| *kind == device.kind) {
            Some((_, count, gone)) => {
                *count += 1;
                *gone += out;
            }
            None => kinds.push((&device.kind, 1, out)),
        }
    }
    let shown = kinds.into_iter().map(|(kind, count, out)| match out {
        0 => format!("{count} {kind}"),
        out => format!("{count} {kind} ({out} out of service)"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// The lines about one device, with what stands before each.
pub fn lines(index: usize, device: &v1::Device) -> Vec<(&'static str, String)> {
    let mut lines = vec![format!("{index}: {}", what(device))];
    lines.extend(device.out.as_ref().map(|out| {
        let by = if out.by.is_empty() { String::new() } else { format!(" by {}", out.by) };
        format!("out of service since {}{by}: {}", clock::show(out.since), out.reason)
    }));
    let links = links(device);
    if !links.is_empty() {
        lines.push(links);
    }
    if let Some(now) = &device.now {
        let does = does(now);
        if !does.is_empty() {
            lines.push(does);
        }
        let said = now.faults.iter().filter(|fault| device.out.as_ref().is_none_or(|out| !out.reason.contains(*fault)));
        lines.extend(said.map(|fault| format!("its agent says: {fault}")));
        let last = now.events.len().saturating_sub(EVENTS);
        lines.extend(now.events[last..].iter().map(|event| format!("{} {}", clock::show(event.at), event.what)));
    }
    let margin = std::iter::once("GPU").chain(std::iter::repeat(""));
    margin.zip(lines).collect()
}

fn what(device: &v1::Device) -> String {
    let mut parts = vec![device.kind.clone()];
    if device.mem_mib > 0 {
        parts.push(amount::show("mem", device.mem_mib));
    }
    parts.push(device.uuid.clone());
    if !device.part_of.is_empty() {
        parts.push(format!("part of {}", device.part_of));
    }
    if !device.pci.is_empty() {
        parts.push(format!("PCI {}", device.pci));
    }
    if device.numa >= 0 {
        parts.push(format!("NUMA {}", device.numa));
    }
    match device.held {
        _ if !device.used => {}
        part @ 1..1000 => parts.push(format!("({} taken)", amount::show("gpu", part.into()))),
        _ => parts.push("(taken)".to_owned()),
    }
    parts.join(" ")
}

/// Others at the same distance together, nearest first, such as `NVLink x4 to 1; PCI switch to 1; PCI system to 2,3`.
fn links(device: &v1::Device) -> String {
    let mut fast: Vec<(u32, Vec<String>)> = Vec::new();
    let mut paths: Vec<(&str, Vec<String>)> = Vec::new();
    for link in &device.links {
        if link.nvlinks > 0 {
            match fast.iter_mut().find(|(count, _)| *count == link.nvlinks) {
                Some((_, to)) => to.push(link.to.to_string()),
                None => fast.push((link.nvlinks, vec![link.to.to_string()])),
            }
        }
        match paths.iter_mut().find(|(path, _)| *path == link.path) {
            Some((_, to)) => to.push(link.to.to_string()),
            None => paths.push((&link.path, vec![link.to.to_string()])),
        }
    }
    paths.sort_by_key(|(path, _)| DevicePath::named(path));
    let fast = fast.iter().map(|(count, to)| format!("NVLink x{count} to {}", to.join(",")));
    let paths = paths.iter().map(|(path, to)| format!("PCI {path} to {}", to.join(",")));
    fast.chain(paths).collect::<Vec<_>>().join("; ")
}

fn does(now: &v1::DeviceState) -> String {
    let mut parts = Vec::new();
    parts.extend(now.utilisation.map(|n| format!("{n} % busy")));
    parts.extend(now.mem_used_mib.map(|n| format!("{} in use", amount::show("mem", n))));
    parts.extend(now.temperature.map(|n| format!("{n} C")));
    parts.extend(now.power_mw.map(|n| format!("{} W", n / 1000)));
    parts.extend(now.energy_mj.map(|n| format!("{} kJ", n / 1_000_000)));
    if let (Some(bad), Some(corrected)) = (now.ecc_uncorrectable, now.ecc_corrected)
        && bad + corrected > 0
    {
        parts.push(format!("memory errors: {bad} uncorrectable, {corrected} corrected"));
    }
    if let Some(rows) = now.rows.filter(|rows| rows.correctable + rows.uncorrectable > 0) {
        parts.push(format!("{} rows replaced", rows.correctable + rows.uncorrectable));
    }
    if !now.slowed_by.is_empty() {
        parts.push(format!("slowed by {}", now.slowed_by.join(", ")));
    }
    if !now.processes.is_empty() {
        let pids: Vec<String> = now.processes.iter().map(|p| p.pid.to_string()).collect();
        parts.push(format!("processes {}", pids.join(",")));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_one_kind_stand_together() {
        let link = |to, nvlinks, path: &str| v1::DeviceLink { to, nvlinks, path: path.into() };
        let links_of = vec![link(1, 4, "switch"), link(2, 0, "system"), link(3, 0, "system"), link(4, 0, "board")];
        let device = v1::Device { kind: "a".into(), links: links_of, ..v1::Device::default() };
        assert_eq!(links(&device), "NVLink x4 to 1; PCI board to 4; PCI switch to 1; PCI system to 2,3");
        let out = v1::Device { out: Some(v1::DeviceOut::default()), ..device.clone() };
        assert_eq!(summary(&[device, out]), "2 a (1 out of service)");
    }
}
