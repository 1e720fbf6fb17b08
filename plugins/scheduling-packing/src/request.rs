//! What one node gives to a job, in numbers.

use crate::node::{Device, Node, WHOLE};

/// A set of kinds of GPU, one bit each. All kinds from the 64th on share the last bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kinds(u64);

impl Kinds {
    /// Every kind.
    pub const ANY: Self = Self(u64::MAX);

    /// The kinds in a list from the host: an empty one names all, and a negative number no kind that there is.
    pub fn of(list: &[i64]) -> Self {
        if list.is_empty() {
            return Self::ANY;
        }
        Self(list.iter().filter(|kind| **kind >= 0).fold(0, |bits, kind| bits | Self::bit(*kind)))
    }

    /// Whether a kind is among them.
    pub fn has(self, kind: i64) -> bool {
        self.0 & Self::bit(kind) != 0
    }

    fn bit(kind: i64) -> u64 {
        1 << kind.clamp(0, 63)
    }
}

/// What a job takes of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// Thousandths of a core.
    pub cpu: i64,
    /// MiB.
    pub mem: i64,
    /// GPUs; with `part` below a whole one it is one.
    pub gpus: i64,
    /// Thousandths of each GPU.
    pub part: i64,
    /// Kinds of GPU that will do.
    pub kinds: Kinds,
}

impl Request {
    /// From amounts of a node: `gpu` thousandths are so many whole GPUs, or a part of one.
    pub fn new(cpu: i64, mem: i64, gpu: i64, kinds: Kinds) -> Self {
        let (gpus, part) = match gpu {
            ..1 => (0, 0),
            1..WHOLE => (1, gpu),
            _ => (gpu / WHOLE, WHOLE),
        };
        Self { cpu, mem, gpus, part, kinds: if gpus == 0 { Kinds::ANY } else { kinds } }
    }

    /// Thousandths of GPUs in all.
    pub fn gpu(&self) -> i64 {
        self.gpus * self.part
    }

    /// Whether a node has room for it now.
    pub fn fits(&self, node: &Node) -> bool {
        if node.cpu < self.cpu || node.mem < self.mem {
            return false;
        }
        match self.gpus {
            0 => true,
            1 => node.devices.iter().any(|d| self.could_take(d)),
            n => node.devices.iter().filter(|d| self.could_take(d)).count() as i64 >= n,
        }
    }

    /// Takes its GPUs of a node's devices, of which `free` is free, as the host would: the fullest that fits, else by
    /// index.
    pub fn take(&self, devices: &[Device], free: &mut [i64]) {
        for _ in 0..self.gpus {
            let fits = |i: &usize| free[*i] >= self.part && self.kinds.has(devices[*i].kind);
            if let Some(i) = (0..free.len()).filter(fits).min_by_key(|i| free[*i]) {
                free[i] -= self.part;
            }
        }
    }

    fn could_take(&self, device: &Device) -> bool {
        device.free >= self.part && self.kinds.has(device.kind)
    }
}
