//! Parts of GPUs as the twin keeps them: who shares a device with whom, and what is left of it.

use super::twin::Twin;
use ephor_model::allocation::AllocationPart;
use ephor_model::id::{JobId, NodeId};
use ephor_model::limits::DEVICES_PER_NODE;
use ephor_model::resource::ResourceId;
use ephor_placement::NodeView;
use std::collections::{BTreeMap, BTreeSet};

/// Who holds a part of a GPU; running jobs come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    Job(JobId),
    Reservation(u64),
}

/// Which group each part of a GPU belongs to.
pub type Groups = BTreeMap<(NodeId, Who), u32>;

/// A part of a GPU, held in `[from, until)`.
struct Member {
    who: Who,
    device: u32,
    milli: i64,
    from: i64,
    until: i64,
}

/// Those who share one GPU.
pub struct Group {
    pub number: u32,
    members: Vec<Member>,
}

impl Group {
    pub fn holds(&self, time: i64) -> bool {
        self.members.iter().any(|m| m.from <= time) && self.members.iter().any(|m| time < m.until)
    }

    /// The kind of its device, where the node still counts it.
    pub fn kind(&self, view: &NodeView) -> Option<String> {
        let device = self.members[0].device;
        let offered = i64::from(device) < view.capacity.get(ResourceId::GPU) / 1000;
        offered.then(|| view.devices.get(device as usize).cloned().unwrap_or_default())
    }

    fn runs(&self) -> bool {
        self.members.iter().any(|m| matches!(m.who, Who::Job(_)))
    }

    fn held(&self, time: i64) -> i64 {
        self.members.iter().filter(|m| m.from <= time && time < m.until).map(|m| m.milli).sum()
    }
}

impl Twin {
    /// The groups on a node, by number.
    pub fn groups_on(&self, id: NodeId) -> Vec<Group> {
        let mut groups: BTreeMap<u32, Vec<Member>> = BTreeMap::new();
        for ((_, who), number) in self.groups.iter().filter(|((node, _), _)| *node == id) {
            let (allocation, from, until) = match who {
                Who::Job(job) => (&self.running[job].0, i64::MIN, self.running[job].1.max(self.now + 1)),
                Who::Reservation(n) => {
                    let (allocation, from, until) = &self.reservations[n];
                    (allocation, *from, *until)
                }
            };
            let part = allocation.parts.iter().find(|p| p.node == id).expect("it has a group there");
            let milli = part.amounts.get(ResourceId::GPU);
            let member = Member { who: *who, device: part.devices[0], milli, from, until };
            groups.entry(*number).or_default().push(member);
        }
        groups.into_iter().map(|(number, members)| Group { number, members }).collect()
    }

    /// The fullest group that such a part could join, by looking at every moment at which something changes.
    pub fn group_for(
        &self,
        id: NodeId,
        milli: i64,
        right: impl Fn(&str) -> bool,
        start: i64,
        until: i64,
    ) -> Option<u32> {
        let view = &self.nodes[&id];
        let mut best: Option<(i64, u32)> = None;
        for group in self.groups_on(id) {
            let Some(kind) = group.kind(view).filter(|kind| right(kind)) else { continue };
            let begins = group.members.iter().map(|m| m.from).min().expect("it has members");
            let within = begins <= start && group.members.iter().any(|m| start <= m.until);
            if !within || begins <= self.now && !group.runs() {
                continue;
            }
            let moments = self.moments(id, start, until);
            let room = |time: &i64| match group.holds(*time) {
                true => group.held(*time) + milli <= 1000,
                false => self.free_gpus(id, &kind, *time) >= 1,
            };
            let most = moments.iter().map(|t| group.held(*t)).max().unwrap_or(0);
            if moments.iter().all(room) && best.is_none_or(|(fullest, _)| most > fullest) {
                best = Some((most, group.number));
            }
        }
        best.map(|(_, number)| number)
    }

    /// Writes a reservation's parts of GPUs down.
    pub fn join(&mut self, number: u64) {
        let (allocation, from, until) = self.reservations[&number].clone();
        for part in allocation.parts.iter().filter(|p| p.share().is_some()) {
            let view = &self.nodes[&part.node];
            let kind = view.devices.get(part.devices[0] as usize).cloned().unwrap_or_default();
            let milli = part.amounts.get(ResourceId::GPU);
            let group = self.group_for(part.node, milli, |k| k == kind, from, until);
            let group = group.unwrap_or_else(|| self.unused(part.node));
            self.groups.insert((part.node, Who::Reservation(number)), group);
        }
    }

    /// A job took such a part of a device: whether it may, and in whose company.
    pub fn share(&mut self, job: JobId, part: &AllocationPart, right: impl Fn(&str) -> bool, until: i64) -> bool {
        let device = part.devices[0];
        let milli = part.amounts.get(ResourceId::GPU);
        let joined = self.group_for(part.node, milli, right, self.now, until);
        let others = self.running.iter().filter(|(other, _)| **other != job).flat_map(|(_, (a, _))| &a.parts);
        let alone = || others.filter(|p| p.node == part.node).all(|p| !p.devices.contains(&device));
        let allowed = joined.map_or_else(alone, |group| group == device);
        self.groups.insert((part.node, Who::Job(job)), device);
        allowed
    }

    /// A holder is gone: whoever is left without a running job has no device any more.
    pub fn leave(&mut self, who: Who) {
        let nodes: Vec<NodeId> = self.groups.keys().filter(|(_, w)| *w == who).map(|(node, _)| *node).collect();
        for node in nodes {
            let Some(group) = self.groups.remove(&(node, who)) else { continue };
            let rest: Vec<Who> =
                self.groups.iter().filter(|((n, _), g)| *n == node && **g == group).map(|((_, who), _)| *who).collect();
            if group < DEVICES_PER_NODE && !rest.iter().any(|w| matches!(w, Who::Job(_))) {
                let fresh = self.unused(node);
                rest.into_iter().for_each(|who| _ = self.groups.insert((node, who), fresh));
            }
        }
    }

    fn unused(&self, id: NodeId) -> u32 {
        let used: BTreeSet<u32> = self.groups.iter().filter(|((n, _), _)| *n == id).map(|(_, g)| *g).collect();
        (DEVICES_PER_NODE..).find(|n| !used.contains(n)).expect("numbers do not end")
    }
}
