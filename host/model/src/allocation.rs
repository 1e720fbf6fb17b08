//! What an attempt holds: which nodes, how much of each, which devices.

use crate::id::NodeId;
use crate::resource::{Amounts, ResourceId};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// The part of an allocation on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationPart {
    /// The node.
    pub node: NodeId,
    /// Tasks placed there, at least 1.
    pub tasks: u32,
    /// What is held there, tasks and per-node amounts together.
    pub amounts: Amounts,
    /// Indices of the GPUs held there, ascending. One GPU with an amount of less than a whole one is a share of it;
    /// see [`AllocationPart::share`].
    pub devices: SmallVec<[u32; 4]>,
}

impl AllocationPart {
    /// Of a GPU that is held in part the thousandths; `None`: GPUs are held whole.
    pub fn share(&self) -> Option<u32> {
        let milli = self.amounts.get(ResourceId::GPU);
        // Below a thousand, so within u32.
        (self.devices.len() == 1 && (1..1000).contains(&milli)).then_some(milli as u32)
    }

    /// Thousandths held of each of its GPUs.
    pub fn milli_per_device(&self) -> i64 {
        self.share().map_or(1000, i64::from)
    }
}

/// Everything that one attempt holds, by ascending node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// One part for each node.
    pub parts: SmallVec<[AllocationPart; 1]>,
}

impl Allocation {
    /// The amounts of all parts together.
    pub fn total(&self) -> Amounts {
        let mut all = Amounts::new();
        self.parts.iter().for_each(|p| all.add(&p.amounts));
        all
    }
}
