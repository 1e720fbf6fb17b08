//! What an attempt holds: which nodes, how much of each, which devices.

use crate::id::NodeId;
use crate::resource::Amounts;
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
    /// Indices of the GPUs held there, ascending. Whole GPUs for now.
    pub devices: SmallVec<[u32; 4]>,
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
