//! A node as this policy keeps it in step with the host.

/// Thousandths of a whole GPU.
pub const WHOLE: i64 = 1000;

/// One GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Device {
    /// Number of its kind.
    pub kind: i64,
    /// Thousandths that are free.
    pub free: i64,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Whether it takes jobs.
    pub up: bool,
    /// Free thousandths of a core.
    pub cpu: i64,
    /// Free MiB.
    pub mem: i64,
    /// All thousandths of a core.
    pub all_cpu: i64,
    /// All MiB.
    pub all_mem: i64,
    /// Its GPUs.
    pub devices: Vec<Device>,
}

impl Node {
    /// All thousandths of its GPUs.
    pub fn all_gpu(&self) -> i64 {
        self.devices.len() as i64 * WHOLE
    }
}
