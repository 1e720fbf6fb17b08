//! Finds the nodes that have enough free now, in the order of their ids, without looking at each.
//!
//! A tree over the nodes: each of its parts holds the most of each resource that one node below it has free, apart for
//! nodes in use and idle ones. What cannot fit in a part is passed over with one look. The tree may promise too much
//! (the most cores and the most memory may be on different nodes), never too little, so that each find is looked at
//! again with everything that the index does not know: other resources, reservations to come, kinds of GPUs.

use crate::bits::Bits;
use crate::work::{NoFit, Work};
use ephor_model::id::NodeId;

/// Free amounts of a node: cores, memory, whole GPUs of all kinds, the most that is left of one GPU; in the units of the
/// model.
pub(crate) type Key = [i64; 4];

/// Of a node that takes nothing; and of a need that asks for nothing of a resource.
pub(crate) const NOTHING: Key = [i64::MIN; 4];

/// Parts of a part, above the lowest level.
const FAN: usize = 16;

/// Nodes in a part of the lowest level: a word of [`Bits`].
const LEAVES: usize = 64;

/// Which nodes are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Something is held there now.
    Busy,
    /// Nothing is.
    Idle,
}

/// The most that one node of a part has free, by [`Use`].
type Top = [Key; 2];

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Index {
    free: Vec<Key>,
    idle: Bits,
    /// From the lowest level up; the last has one part.
    levels: Vec<Vec<Top>>,
}

impl Index {
    /// Writes down what a node has free; [`NOTHING`] where it takes no jobs.
    pub fn set(&mut self, id: NodeId, free: Key, idle: bool) {
        let at = id.0 as usize;
        if at >= self.free.len() {
            self.grow(at + 1);
        }
        if self.free[at] == free && self.idle.has(id) == idle {
            return;
        }
        self.free[at] = free;
        self.idle.set(id, idle);
        let mut part = at / LEAVES;
        let mut top = self.lowest(part);
        for level in 0..self.levels.len() {
            if self.levels[level][part] == top {
                return;
            }
            self.levels[level][part] = top;
            part /= FAN;
            let below = &self.levels[level];
            let first = part * FAN;
            top = below[first..below.len().min(first + FAN)].iter().fold([NOTHING; 2], most);
        }
    }

    /// Whether a node may have that much free.
    pub fn covers(&self, id: NodeId, need: &Key) -> bool {
        self.free.get(id.0 as usize).is_some_and(|free| covers(free, need))
    }

    /// The first node from `from` on that is in that use, is one of `among`, and may have `need` free.
    ///
    /// # Errors
    /// The work units are used up: one for each part and each node looked at.
    pub fn next(
        &self,
        from: usize,
        which: Use,
        need: &Key,
        among: &Bits,
        work: &mut Work,
    ) -> Result<Option<NodeId>, NoFit> {
        let mut part = from / LEAVES;
        // Of the first part only the nodes from `from` on.
        let mut mask = u64::MAX << (from % LEAVES);
        while let Some(found) = self.part(part, which, need, work)? {
            if found != part {
                mask = u64::MAX;
            }
            part = found;
            let idle = self.idle.word(part);
            let mut left = among.word(part) & mask & if which == Use::Idle { idle } else { !idle };
            work.take(1 + left.count_ones() as usize / 8)?;
            while left != 0 {
                let at = part * LEAVES + left.trailing_zeros() as usize;
                left &= left - 1;
                if self.free.get(at).is_some_and(|free| covers(free, need)) {
                    return Ok(Some(NodeId(at as u32)));
                }
            }
            part += 1;
            mask = u64::MAX;
        }
        Ok(None)
    }

    /// The first part of the lowest level, from `part` on, that may hold such a node.
    fn part(&self, part: usize, which: Use, need: &Key, work: &mut Work) -> Result<Option<usize>, NoFit> {
        let (mut level, mut at) = (0, part);
        while let Some(top) = self.levels.get(level).and_then(|parts| parts.get(at)) {
            work.take(1)?;
            if covers(&top[which as usize], need) {
                if level == 0 {
                    return Ok(Some(at));
                }
                level -= 1;
                at *= FAN;
                continue;
            }
            at += 1;
            while at % FAN == 0 && level + 1 < self.levels.len() {
                level += 1;
                at /= FAN;
            }
        }
        Ok(None)
    }

    fn grow(&mut self, nodes: usize) {
        self.free.resize(nodes, NOTHING);
        let mut parts = nodes.div_ceil(LEAVES);
        let mut level = 0;
        loop {
            if level == self.levels.len() {
                // What the level below it holds so far is below its first part.
                let below = level.checked_sub(1).map(|below| &self.levels[below]);
                let first = below.map(|below| below.iter().fold([NOTHING; 2], most));
                self.levels.push(first.into_iter().collect());
            }
            self.levels[level].resize(parts, [NOTHING; 2]);
            if parts == 1 {
                return;
            }
            parts = parts.div_ceil(FAN);
            level += 1;
        }
    }

    fn lowest(&self, part: usize) -> Top {
        let mut top = [NOTHING; 2];
        let first = part * LEAVES;
        let idle = self.idle.word(part);
        for (i, free) in self.free[first..self.free.len().min(first + LEAVES)].iter().enumerate() {
            let which = if idle >> i & 1 == 1 { Use::Idle } else { Use::Busy };
            raise(&mut top[which as usize], free);
        }
        top
    }
}

fn covers(free: &Key, need: &Key) -> bool {
    free[0] >= need[0] && free[1] >= need[1] && free[2] >= need[2] && free[3] >= need[3]
}

fn raise(top: &mut Key, free: &Key) {
    for (top, free) in top.iter_mut().zip(free) {
        *top = (*top).max(*free);
    }
}

fn most(mut all: Top, one: &Top) -> Top {
    raise(&mut all[0], &one[0]);
    raise(&mut all[1], &one[1]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_what_looking_at_each_finds(
            sets in prop::collection::vec((0_u32..5000, 0_i64..4, 0_i64..4, 0_i64..4, 0_i64..4, any::<bool>()), 1..300),
            need in (0_i64..4, 0_i64..4, 0_i64..4, 0_i64..4),
            from in 0_usize..5000,
        ) {
            let (mut index, mut among) = (Index::default(), Bits::default());
            let mut plain = vec![(NOTHING, false); 5000];
            for (id, a, b, c, d, idle) in sets {
                index.set(NodeId(id), [a, b, c, d], idle);
                plain[id as usize] = ([a, b, c, d], idle);
                among.set(NodeId(id), id % 3 > 0);
            }
            let need = [need.0, need.1, need.2, need.3];
            for which in [Use::Busy, Use::Idle] {
                let found = index.next(from, which, &need, &among, &mut Work::UNLIMITED.clone()).unwrap();
                let fits = |i: &usize| {
                    let (free, idle) = &plain[*i];
                    covers(free, &need) && *idle == (which == Use::Idle) && i % 3 > 0
                };
                prop_assert_eq!(found, (from..5000).find(fits).map(|i| NodeId(i as u32)));
            }
        }
    }
}
