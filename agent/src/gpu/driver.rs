//! What the agent wants to know of GPUs, whoever made them. A vendor's library is spoken to behind [`Driver`] only.

use ephor_model::DevicePath;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A way to the GPUs of this node. It is used by one thread at a time and may be slow.
pub trait Driver: Send {
    /// The library and the driver with their versions, for people.
    fn describe(&self) -> String;

    /// The GPUs that jobs can be given, and what was odd about the search: a GPU that does not answer, or one that is
    /// split into no instance.
    ///
    /// # Errors
    /// The library does not say how many there are.
    fn find(&mut self) -> Result<(Vec<Found>, Vec<String>), String>;

    /// How each GPU that was found is doing, by its uuid.
    fn look(&mut self) -> BTreeMap<String, Reading>;

    /// Waits until something happens to a GPU, but no longer than that.
    fn wait(&mut self, at_most: Duration) -> Option<Incident>;

    /// What this library or driver cannot tell, in words.
    fn lacks(&self) -> Vec<String>;
}

/// One GPU, or a part of one that the vendor offers as a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// Identity that survives a reboot.
    pub uuid: String,
    /// The product, as its vendor calls it.
    pub name: String,
    /// Type as requests name it, such as `h100`.
    pub kind: String,
    /// Memory in MiB.
    pub mem_mib: i64,
    /// NUMA node, -1 where unknown.
    pub numa: i32,
    /// PCI address, such as `0000:1b:00.0`.
    pub pci: String,
    /// How programs count it; of a part, its GPU's.
    pub index: u32,
    /// Uuid of the GPU that it is a part of.
    pub part_of: Option<String>,
    /// Its ways to the others. Parts have none: they are where their GPU is.
    pub links: Vec<Link>,
}

/// What lies between two GPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Uuid of the other one.
    pub to: String,
    /// Direct links, or those to common switches, that are up.
    pub fast: u32,
    /// What a transfer over PCI passes.
    pub path: DevicePath,
}

/// How one GPU is doing. `None`: it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// It is off the bus.
    pub lost: bool,
    /// Memory errors since the driver was loaded: uncorrectable and corrected ones.
    pub ecc: Option<(u64, u64)>,
    /// What became of bad rows of its memory.
    pub rows: Option<Rows>,
    /// What slows it down.
    pub slowed: Vec<&'static str>,
    /// Percent of the last moments in which it computed.
    pub utilisation: Option<u32>,
    /// Memory in use, in MiB.
    pub mem_used_mib: Option<i64>,
    /// Degrees Celsius.
    pub temperature: Option<u32>,
    /// Milliwatts.
    pub power_mw: Option<u32>,
    /// Millijoules since the driver was loaded.
    pub energy_mj: Option<u64>,
    /// Processes that compute on it.
    pub processes: Vec<Process>,
}

/// Rows of memory that were replaced by spare ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// For errors that could be corrected.
    pub correctable: u32,
    /// For errors that could not.
    pub uncorrectable: u32,
    /// Some wait for a reset of the GPU.
    pub pending: bool,
    /// Some could not be replaced.
    pub failed: bool,
}

/// A process on a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Memory of the GPU that it uses, in MiB.
    pub mem_mib: Option<i64>,
    /// Percent of the last moments in which it computed.
    pub utilisation: Option<u32>,
}

/// Something happened to a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// Which.
    pub uuid: String,
    /// What, in words.
    pub what: String,
    /// Whether it can no longer be relied on.
    pub fatal: bool,
}
