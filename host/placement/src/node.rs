//! One node: what it is, what it holds, and which of its devices are taken.

use crate::profile::{Level, Profile};
use crate::shape::{Shape, ShapeId, WHOLE_GPU};
use crate::share::Sharer;
use crate::start::ReservationId;
use ephor_model::id::JobId;
use ephor_model::limits::DEVICES_PER_NODE;
use ephor_model::resource::Amounts;
use smallvec::SmallVec;

/// A node as the caller describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeView {
    /// Name, unique.
    pub name: String,
    /// What it has in all.
    pub capacity: Amounts,
    /// Its features, sorted.
    pub features: Vec<String>,
    /// The kind of each of its GPUs, by index.
    pub devices: Vec<String>,
    /// Those of them that are out of service: nobody is given them, and who holds one takes nothing from others.
    pub out: Vec<u32>,
    /// False where it is down or drained: nothing starts there.
    pub up: bool,
}

/// Who holds a part of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    /// A running job.
    Job(JobId),
    /// A reservation.
    Reservation(ReservationId),
}

/// What is known of a node that is part of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub name: String,
    pub up: bool,
    /// As described; what levels say of it may be less precise in GPUs.
    pub capacity: Amounts,
}

/// Number of an interned [`NodeClass`]. The first is that of nodes that nothing is known of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeClassId(pub u32);

/// Nodes that are alike: what one of them can serve when it is empty, all can.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeClass {
    pub shape: ShapeId,
    pub capacity: Level,
}

/// One node. Nodes that left, and such that are known from allocations only, keep their holds.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// `None`: not part of the cluster.
    pub known: Option<Known>,
    pub class: NodeClassId,
    pub shape: ShapeId,
    pub capacity: Level,
    pub profile: Profile,
    /// Who holds a part of it, ascending.
    pub holders: Vec<Holder>,
    /// Parts of GPUs that are held, by ascending holder.
    pub sharers: Vec<Sharer>,
    /// How many running jobs hold each device: more than one where it is shared, or facts say so.
    pub taken: Vec<u32>,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            known: None,
            class: NodeClassId::default(),
            shape: ShapeId::default(),
            capacity: Level::new(),
            profile: Profile::new(Level::new()),
            holders: Vec::new(),
            sharers: Vec::new(),
            taken: Vec::new(),
        }
    }
}

impl Node {
    /// Whether it is part of the cluster and takes jobs.
    pub fn is_up(&self) -> bool {
        self.known.as_ref().is_some_and(|k| k.up)
    }

    /// Writes a holder in.
    pub fn add_holder(&mut self, holder: Holder) {
        if let Err(at) = self.holders.binary_search(&holder) {
            self.holders.insert(at, holder);
        }
    }

    /// Strikes a holder out.
    pub fn remove_holder(&mut self, holder: Holder) {
        if let Ok(at) = self.holders.binary_search(&holder) {
            self.holders.remove(at);
        }
    }

    /// Marks devices as taken by a running job, or as given back.
    pub fn take_devices(&mut self, devices: &[u32], give_back: bool) {
        // An index that no node can have says nothing; it must not make the table huge.
        for device in devices.iter().filter(|d| **d < DEVICES_PER_NODE).map(|d| *d as usize) {
            if give_back {
                self.taken[device] -= 1;
            } else {
                if device >= self.taken.len() {
                    self.taken.resize(device + 1, 0);
                }
                self.taken[device] += 1;
            }
        }
        while self.taken.last() == Some(&0) {
            self.taken.pop();
        }
    }

    /// The `count` devices to take, of the kinds in `columns`, where `lowest` of each column is free: those that no
    /// running job holds first, then by index. Fewer where there are not so many.
    pub fn choose_devices(&self, shape: &Shape, columns: &[usize], lowest: &Level, count: u32) -> SmallVec<[u32; 4]> {
        let mut left = lowest.clone();
        let mut chosen = SmallVec::new();
        let is_taken = |device: usize| self.taken.get(device).is_some_and(|n| *n > 0);
        for taken in [false, true] {
            for device in (0..shape.devices.len()).filter(|d| is_taken(*d) == taken) {
                if chosen.len() == count as usize {
                    break;
                }
                let Some(column) = shape.device_column(device) else { continue };
                if columns.contains(&column) && left[column] >= WHOLE_GPU {
                    left[column] -= WHOLE_GPU;
                    chosen.push(device as u32);
                }
            }
        }
        chosen.sort_unstable();
        chosen
    }
}
