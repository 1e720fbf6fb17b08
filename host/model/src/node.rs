//! What a node is made of, as its agent found it.

use crate::resource::Amounts;
use serde::{Deserialize, Serialize};

/// One GPU or MIG instance of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Type as requests name it, such as `h100`.
    pub kind: String,
    /// Identity that survives a reboot (for NVIDIA the UUID).
    pub uuid: String,
    /// Memory in MiB.
    pub mem_mib: i64,
    /// NUMA node, -1 where unknown.
    pub numa: i32,
    /// The product, as its vendor calls it.
    pub name: String,
    /// PCI address, such as `0000:1b:00.0`.
    pub pci: String,
    /// Uuid of the GPU that it is a part of.
    pub part_of: Option<String>,
    /// Its ways to the node's other devices.
    pub links: Vec<DeviceLink>,
}

/// What lies between two devices of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceLink {
    /// Index of the other one.
    pub to: u32,
    /// NVLinks between them, direct or to common switches, that are up.
    pub nvlinks: u32,
    /// What a transfer over PCI passes.
    pub path: DevicePath,
}

/// What a transfer over PCI between two devices passes, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DevicePath {
    /// Nothing but their common board.
    Board,
    /// One PCI switch.
    Switch,
    /// Several PCI switches.
    Switches,
    /// The host bridge.
    HostBridge,
    /// Host bridges of one NUMA node.
    Numa,
    /// The link between NUMA nodes.
    System,
}

impl DevicePath {
    const NAMES: [(Self, &str); 6] = [
        (Self::Board, "board"),
        (Self::Switch, "switch"),
        (Self::Switches, "switches"),
        (Self::HostBridge, "host-bridge"),
        (Self::Numa, "numa"),
        (Self::System, "system"),
    ];

    /// Its name, on the wire and for people.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(path, _)| *path == self).map_or("system", |(_, name)| name)
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(path, _)| *path)
    }
}

/// What a node offers: found by its agent at registration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Name: as in the agent's certificate.
    pub name: String,
    /// Where it is reached.
    pub address: String,
    /// Cores (milli), memory (MiB), GPUs (milli) and what else it counts.
    pub capacity: Amounts,
    /// Features that requests may ask for, sorted.
    pub features: Vec<String>,
    /// Its GPUs, in the order of their index.
    pub devices: Vec<Device>,
    /// Id of its boot, new at every boot.
    pub boot_id: String,
    /// Version of the agent.
    pub agent_version: String,
}
