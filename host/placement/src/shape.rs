//! What nodes have in common: which resources they count, their GPU kinds and their features.

use crate::index::Key;
use crate::node::NodeView;
use crate::profile::Level;
use ephor_model::allocation::AllocationPart;
use ephor_model::resource::{Amounts, ResourceId};

/// Number of an interned [`Shape`]. The first is the shape of nodes that nothing is known of: it counts nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShapeId(pub u32);

/// Milli-GPUs of a whole one.
pub(crate) const WHOLE_GPU: i64 = 1000;

/// The layout of a node's levels and its features. How much a node has is not part of it, so that nodes whose memory
/// differs by a few MiB share a shape.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    /// Columns of a level that stand for a resource other than GPUs.
    pub resources: Vec<ResourceId>,
    /// Columns behind those: one for each kind of GPU, in milli-GPU.
    pub kinds: Vec<String>,
    /// The kind (index into `kinds`) of each device; `None`: it is out of service.
    pub devices: Vec<Option<u16>>,
    /// Features, sorted.
    pub features: Vec<String>,
}

impl Shape {
    /// The shape and the capacity of a node.
    ///
    /// The capacity says how many GPUs it offers, `devices` of which kind they are; one without an entry has the kind
    /// "", which only requests for any kind take.
    pub fn of(view: &NodeView) -> (Self, Level) {
        let mut shape = Self { features: view.features.clone(), ..Self::default() };
        shape.features.sort();
        let mut capacity = Level::new();
        for (id, amount) in view.capacity.iter().filter(|(id, _)| *id != ResourceId::GPU) {
            shape.resources.push(id);
            capacity.push(amount);
        }
        for i in 0..(view.capacity.get(ResourceId::GPU).max(0) / WHOLE_GPU) as usize {
            if view.out.contains(&(i as u32)) {
                shape.devices.push(None);
                continue;
            }
            let kind = view.devices.get(i).map_or("", String::as_str);
            let at = shape.kinds.iter().position(|k| k == kind).unwrap_or_else(|| {
                shape.kinds.push(kind.to_owned());
                capacity.push(0);
                shape.kinds.len() - 1
            });
            shape.devices.push(Some(at as u16));
            capacity[shape.resources.len() + at] += WHOLE_GPU;
        }
        (shape, capacity)
    }

    /// The column of the kind with that index.
    pub fn kind_column(&self, kind: usize) -> usize {
        self.resources.len() + kind
    }

    /// The column of a device that is in service.
    pub fn device_column(&self, device: usize) -> Option<usize> {
        self.devices.get(device).copied().flatten().map(|kind| self.kind_column(usize::from(kind)))
    }

    /// A level in the terms of the index, without GPUs in shared use.
    pub fn key_of(&self, level: &Level) -> Key {
        let gpus: i64 = level[self.resources.len()..].iter().map(|n| (*n).max(0)).sum();
        let most = gpus.min(WHOLE_GPU);
        [self.amount_of(level, ResourceId::CPU), self.amount_of(level, ResourceId::MEM), gpus, most]
    }

    /// What an allocation's part takes of such a node. Of GPUs the devices in service count, and a part of one counts
    /// nothing (see `share.rs`); a resource that the node does not know is left out.
    pub fn level_of(&self, part: &AllocationPart) -> Level {
        let mut level: Level = self.resources.iter().map(|id| part.amounts.get(*id)).collect();
        level.resize(self.resources.len() + self.kinds.len(), 0);
        for device in part.devices.iter().filter(|_| part.share().is_none()) {
            if let Some(column) = self.device_column(*device as usize) {
                level[column] += WHOLE_GPU;
            }
        }
        level
    }

    /// A level in the terms of the model: GPUs of all kinds together.
    pub fn amounts_of(&self, level: &Level) -> Amounts {
        let mut amounts: Amounts = self.resources.iter().copied().zip(level.iter().copied()).collect();
        amounts.set(ResourceId::GPU, self.amount_of(level, ResourceId::GPU));
        amounts
    }

    /// One resource of a level.
    pub fn amount_of(&self, level: &Level, id: ResourceId) -> i64 {
        if id == ResourceId::GPU {
            return level[self.resources.len()..].iter().sum();
        }
        self.resources.iter().position(|r| *r == id).map_or(0, |column| level[column])
    }
}
