//! What a scene file says.

use serde::Deserialize;

/// A machine with GPUs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scene {
    /// Version of the driver.
    pub driver: String,
    /// Version of the library.
    pub nvml: String,
    /// The return code of the initialisation; 0: it goes well, 9: the driver is not loaded.
    pub init: u32,
    /// Symbols that a library of this age does not have. The stand-in cannot take them away from itself: whoever makes a
    /// copy of it for a test does.
    pub lacks: Vec<String>,
    /// The GPUs, in the order of their index.
    pub device: Vec<Device>,
    /// XID errors to come.
    pub event: Vec<Event>,
    /// What else changes by itself.
    pub change: Vec<Change>,
}

/// One GPU.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Device {
    pub name: String,
    pub uuid: String,
    pub memory_mib: u64,
    /// Such as `00000000:1B:00.0`.
    pub pci: String,
    /// NUMA node of the memory that lies next to it.
    pub numa: Option<u32>,
    /// Those with the same number are below one PCIe switch, or below one host bridge.
    pub switch: Option<u32>,
    pub bridge: Option<u32>,
    /// PCI address of what each NVLink leads to; empty: the link is down.
    pub nvlinks: Vec<String>,
    /// Its instances where MIG is on, none of them among those; absent: it knows no MIG.
    pub mig: Option<Vec<Mig>>,
    /// It has fallen off the bus.
    pub lost: bool,
    /// Uncorrectable and corrected errors since the driver was loaded; absent: it has no ECC.
    pub ecc: Option<(u64, u64)>,
    /// Rows remapped for correctable and for uncorrectable errors; absent: it remaps none.
    pub remapped: Option<(u32, u32)>,
    pub remap_pending: bool,
    pub remap_failed: bool,
    /// Bits, as the library has them.
    pub throttle: u64,
    /// Percent.
    pub utilisation: u32,
    pub memory_used_mib: u64,
    pub temperature: u32,
    pub power_mw: u32,
    /// Millijoules at the initialisation, and how many come with each second.
    pub energy_mj: u64,
    pub energy_mj_per_s: u64,
    pub process: Vec<Process>,
}

/// One MIG instance.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mig {
    pub uuid: String,
    /// Such as `1g.10gb`.
    pub profile: String,
    pub memory_mib: u64,
    pub memory_used_mib: u64,
}

/// A process on a GPU.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Process {
    pub pid: u32,
    pub memory_mib: u64,
    /// Percent.
    pub utilisation: u32,
}

/// An XID error.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(deny_unknown_fields, default)]
pub struct Event {
    /// Milliseconds after the initialisation.
    pub at_ms: u64,
    /// Index.
    pub device: usize,
    pub xid: u64,
    /// Tells apart two that are alike.
    pub number: u32,
}

/// A device from a moment on.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Change {
    /// Milliseconds after the initialisation.
    pub at_ms: u64,
    /// Index.
    pub device: usize,
    pub lost: Option<bool>,
    pub ecc: Option<(u64, u64)>,
    pub remap_pending: Option<bool>,
    pub throttle: Option<u64>,
    pub temperature: Option<u32>,
}

impl Change {
    /// Makes it.
    pub fn make(&self, device: &mut Device) {
        device.lost = self.lost.unwrap_or(device.lost);
        device.ecc = self.ecc.or(device.ecc);
        device.remap_pending = self.remap_pending.unwrap_or(device.remap_pending);
        device.throttle = self.throttle.unwrap_or(device.throttle);
        device.temperature = self.temperature.unwrap_or(device.temperature);
    }
}
