//! Where a GPU sits: PCI address, NVLinks, and what lies between two of them.

use super::{export, put};
use crate::scene::Device;
use crate::world::{Code, Thing, ask};
use nvml_wrapper_sys::bindings as c;
use std::ffi::{c_char, c_uint};

/// A PCI address such as `00000000:1B:00.0` in all its forms.
fn pci_info(address: &str) -> Result<c::nvmlPciInfo_t, Code> {
    let part = |from: usize, until: usize| {
        let digits = address.get(from..until).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        digits.ok_or(c::nvmlReturn_enum_NVML_ERROR_UNKNOWN)
    };
    let mut info = c::nvmlPciInfo_t {
        busIdLegacy: [0; 16],
        domain: part(0, 8)?,
        bus: part(9, 11)?,
        device: part(12, 14)?,
        pciDeviceId: 0x2330_10de,
        pciSubSystemId: 0,
        busId: [0; 32],
    };
    let fill = |to: &mut [c_char], text: &str| {
        let last = to.len() - 1;
        to[..last].iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte as c_char);
    };
    fill(&mut info.busId, address);
    fill(&mut info.busIdLegacy, address.get(4..).unwrap_or_default());
    Ok(info)
}

/// What an NVLink leads to; `None`: the link is down.
fn link(of: c::nvmlDevice_t, number: c_uint) -> Result<Option<String>, Code> {
    let links = ask(|world| world.gpu(of))?.nvlinks;
    if links.is_empty() {
        return Err(c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED);
    }
    let link = links.get(number as usize).ok_or(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)?;
    Ok(Some(link.clone()).filter(|l| !l.is_empty()))
}

fn between(a: &Device, b: &Device) -> c::nvmlGpuTopologyLevel_t {
    let same = |a: Option<u32>, b: Option<u32>| a.is_some() && a == b;
    match () {
        () if same(a.switch, b.switch) => c::nvmlGpuLevel_enum_NVML_TOPOLOGY_SINGLE,
        () if same(a.bridge, b.bridge) => c::nvmlGpuLevel_enum_NVML_TOPOLOGY_HOSTBRIDGE,
        () if same(a.numa, b.numa) => c::nvmlGpuLevel_enum_NVML_TOPOLOGY_NODE,
        () => c::nvmlGpuLevel_enum_NVML_TOPOLOGY_SYSTEM,
    }
}

export! {
    fn nvmlDeviceGetPciInfo_v3(of: c::nvmlDevice_t, to: *mut c::nvmlPciInfo_t) {
        let address = ask(|world| match world.thing(of)? {
            Thing::Gpu(_, device) | Thing::Instance(_, device, _) => Ok(device.pci),
        })?;
        put(to, pci_info(&address)?)
    }

    fn nvmlDeviceGetTopologyCommonAncestor(
        a: c::nvmlDevice_t,
        b: c::nvmlDevice_t,
        to: *mut c::nvmlGpuTopologyLevel_t,
    ) {
        let level = ask(|world| Ok(between(&world.gpu(a)?, &world.gpu(b)?)))?;
        put(to, level)
    }

    fn nvmlDeviceGetNvLinkState(of: c::nvmlDevice_t, number: c_uint, to: *mut c::nvmlEnableState_t) {
        put(to, c::nvmlEnableState_t::from(link(of, number)?.is_some()))
    }

    fn nvmlDeviceGetNvLinkRemotePciInfo_v2(of: c::nvmlDevice_t, number: c_uint, to: *mut c::nvmlPciInfo_t) {
        let other = link(of, number)?.ok_or(c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED)?;
        put(to, pci_info(&other)?)
    }
}
