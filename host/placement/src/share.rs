//! Parts of GPUs: who holds which part of a device, and what devices in shared use take of a node's levels.
//!
//! Whoever shares one GPU is a group. In the column of its kind a group takes one whole GPU, from when its first sharer
//! begins to when its last one ends, so that everything else sees whole GPUs only. The group of running jobs bears the
//! number of their device. Reservations may join it while it runs, or share among themselves in groups without a device,
//! numbered from [`NO_DEVICE`]; such a group takes others in once it has begun, and none that begins now, since its
//! device is decided later.

use crate::node::{Holder, Node};
use crate::profile::{BEGINNING, Level};
use crate::shape::{Shape, WHOLE_GPU};
use ephor_model::limits::DEVICES_PER_NODE;
use ephor_model::time::Timestamp;
use smallvec::SmallVec;

/// The first number of groups that no device belongs to.
pub(crate) const NO_DEVICE: u32 = DEVICES_PER_NODE;

/// A part of one GPU, held by somebody for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sharer {
    pub holder: Holder,
    /// Those of a node with the same number share one GPU.
    pub group: u32,
    /// The device, or one of the same kind.
    pub device: u32,
    pub milli: u32,
    pub from: Timestamp,
    pub until: Timestamp,
}

/// A wish for a part of a GPU in all of `[start, until)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    pub milli: u32,
    /// Columns of the kinds that will do.
    pub columns: &'a [usize],
    pub start: Timestamp,
    pub until: Timestamp,
    /// The latest time told.
    pub now: Timestamp,
}

impl Node {
    /// Takes down a part of a GPU that somebody holds. A device that no node can have is left out.
    pub fn add_sharer(&mut self, shape: &Shape, sharer: Sharer) {
        if sharer.device < DEVICES_PER_NODE {
            self.regroup(shape, sharer.group, |sharers| {
                let at = sharers.partition_point(|s| s.holder < sharer.holder);
                sharers.insert(at, sharer);
            });
        }
    }

    /// Strikes out the part that a holder has of a GPU here, and gives its group.
    pub fn remove_sharer(&mut self, shape: &Shape, holder: Holder) -> Option<u32> {
        let at = self.sharers.iter().position(|s| s.holder == holder)?;
        let group = self.sharers[at].group;
        self.regroup(shape, group, |sharers| _ = sharers.remove(at));
        let left = |s: &&mut Sharer| s.group == group;
        if group < NO_DEVICE && !self.runs(group) {
            // Its device may go to others before those begin that are left.
            let fresh = self.fresh_group();
            self.sharers.iter_mut().filter(left).for_each(|s| s.group = fresh);
        }
        Some(group)
    }

    /// Moves the end of a holder's part.
    pub fn move_sharer(&mut self, shape: &Shape, holder: Holder, until: Timestamp) {
        if let Some(at) = self.sharers.iter().position(|s| s.holder == holder) {
            self.regroup(shape, self.sharers[at].group, |sharers| sharers[at].until = until);
        }
    }

    /// Takes every group off the profile, which was worked out anew without them.
    pub fn hold_groups(&mut self, shape: &Shape) {
        for group in self.groups() {
            if let Some((column, from, until)) = self.group_hold(shape, group) {
                self.profile.hold(from, until, &shape.one_gpu(column));
            }
        }
    }

    /// The fullest GPU in shared use that has enough left for a wish: its group and a device of its kind.
    pub fn shared_gpu(&self, shape: &Shape, wish: &Wish<'_>) -> Option<(u32, u32)> {
        let mut best = None;
        for group in self.groups() {
            let Some((column, from, until)) = self.group_hold(shape, group) else { continue };
            let open = self.runs(group) || from > wish.now;
            if !open || !wish.columns.contains(&column) || wish.start < from || wish.start > until {
                continue;
            }
            let left = WHOLE_GPU - self.most_held(group, wish.start, wish.until);
            let better = best.is_none_or(|(least, _, _)| left < least);
            // Where it outlasts the others, the GPU must be free.
            let free = || until >= wish.until || self.profile.lowest(until, wish.until)[column] >= WHOLE_GPU;
            if left >= i64::from(wish.milli) && better && free() {
                best = Some((left, group, self.device_of(group)));
            }
        }
        best.map(|(_, group, device)| (group, device))
    }

    /// Thousandths left at a time of GPUs in shared use, each with a device of its kind.
    pub fn left_of_shared(&self, time: Timestamp) -> impl Iterator<Item = (u32, i64)> + '_ {
        self.groups().into_iter().filter_map(move |group| {
            let mut members = self.members(group);
            let (from, until) = (members.clone().map(|s| s.from).min()?, members.clone().map(|s| s.until).max()?);
            let device = members.next()?.device;
            (from <= time && time < until).then(|| (device, WHOLE_GPU - self.held_at(group, time)))
        })
    }

    /// Thousandths of a device that no running job holds at a time.
    pub fn free_device(&self, device: u32, time: Timestamp) -> i64 {
        match self.taken.get(device as usize) {
            None | Some(0) => WHOLE_GPU,
            Some(_) if self.runs(device) => {
                let running = self.members(device).filter(|s| matches!(s.holder, Holder::Job(_)) && time < s.until);
                WHOLE_GPU - running.map(|s| i64::from(s.milli)).sum::<i64>()
            }
            Some(_) => 0,
        }
    }

    /// A number for a group of reservations of their own.
    pub fn fresh_group(&self) -> u32 {
        let used = self.groups();
        let used = used.iter().filter(|g| **g >= NO_DEVICE);
        // Groups are ascending, so that the first gap is the first number that is not in its place.
        NO_DEVICE + used.enumerate().take_while(|(i, g)| **g == NO_DEVICE + *i as u32).count() as u32
    }

    /// Whether a running job is in the group.
    pub fn runs(&self, group: u32) -> bool {
        self.members(group).any(|s| matches!(s.holder, Holder::Job(_)))
    }

    /// The numbers of the groups, ascending.
    fn groups(&self) -> SmallVec<[u32; 8]> {
        let mut groups: SmallVec<[u32; 8]> = self.sharers.iter().map(|s| s.group).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    fn members(&self, group: u32) -> impl Iterator<Item = &Sharer> + Clone {
        self.sharers.iter().filter(move |s| s.group == group)
    }

    fn device_of(&self, group: u32) -> u32 {
        self.members(group).next().map_or(group, |s| s.device)
    }

    /// What a group takes: the column, and from when to when.
    fn group_hold(&self, shape: &Shape, group: u32) -> Option<(usize, Timestamp, Timestamp)> {
        let members = self.members(group);
        let column = shape.device_column(members.clone().next()?.device as usize)?;
        let from = members.clone().map(|s| s.from).min()?;
        Some((column, from, members.map(|s| s.until).max()?))
    }

    fn held_at(&self, group: u32, time: Timestamp) -> i64 {
        self.members(group).filter(|s| s.from <= time && time < s.until).map(|s| i64::from(s.milli)).sum()
    }

    /// The most that a group holds at any time of `[from, until)`.
    fn most_held(&self, group: u32, from: Timestamp, until: Timestamp) -> i64 {
        let later = self.members(group).map(|s| s.from).filter(|t| from < *t && *t < until);
        later.chain([from]).map(|t| self.held_at(group, t)).max().unwrap_or(0)
    }

    /// Changes a group and what it takes of the profile.
    fn regroup(&mut self, shape: &Shape, group: u32, change: impl FnOnce(&mut Vec<Sharer>)) {
        let old = self.group_hold(shape, group);
        change(&mut self.sharers);
        let new = self.group_hold(shape, group);
        if old != new {
            if let Some((column, from, until)) = old {
                self.profile.release(from, until, &shape.one_gpu(column));
            }
            if let Some((column, from, until)) = new {
                self.profile.hold(from, until, &shape.one_gpu(column));
            }
        }
    }
}

/// The part of a GPU that a running job has.
pub(crate) fn running(holder: Holder, device: u32, milli: u32, until: Timestamp) -> Sharer {
    Sharer { holder, group: device, device, milli, from: BEGINNING, until }
}

impl Shape {
    /// One GPU in the columns of a level.
    pub fn one_gpu(&self, column: usize) -> Level {
        let mut level = Level::from_elem(0, self.resources.len() + self.kinds.len());
        level[column] = WHOLE_GPU;
        level
    }
}
