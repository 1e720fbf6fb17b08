//! What a node is made of, as its agent found it.

use crate::resource::Amounts;
use serde::{Deserialize, Serialize};

/// One GPU or MIG instance of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Type as requests name it, such as `h100`.
    pub kind: String,
    /// Identity that survives a reboot (for NVIDIA the UUID).
    pub uuid: String,
    /// Memory in MiB.
    pub mem_mib: i64,
    /// NUMA node, -1 where unknown.
    pub numa: i32,
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
