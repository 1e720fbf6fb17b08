//! Who gives way first: of the queue that is furthest above what it is entitled to the last job in order.

use std::collections::{BTreeMap, BTreeSet};

use crate::order::Standing;
use crate::reclaim::{may_take, siblings};
use crate::tree::{Amounts, Place, ROOT};
use crate::world::World;

/// Running jobs that may be asked to go, by leaf; the first to go comes last.
#[derive(Clone, Debug, Default)]
pub struct Pools {
    by_leaf: BTreeMap<Place, Vec<usize>>,
    /// How many there are below each queue.
    below: Vec<usize>,
}

impl Pools {
    /// Sorts those.
    pub fn new(world: &World, candidates: impl Iterator<Item = usize>) -> Self {
        let mut pools = Self { by_leaf: BTreeMap::new(), below: vec![0; world.tree.nodes.len()] };
        for at in candidates {
            pools.by_leaf.entry(world.running[at].leaf).or_default().push(at);
        }
        for (leaf, jobs) in &mut pools.by_leaf {
            jobs.sort_by_key(|at| world.running[*at].turn);
            world.tree.path(*leaf).for_each(|place| pools.below[place] += jobs.len());
            pools.below[ROOT] += jobs.len();
        }
        pools
    }

    /// Those that went are no candidates any more.
    pub fn remove(&mut self, world: &World, gone: &[usize]) {
        let mut by_leaf: BTreeMap<Place, BTreeSet<usize>> = BTreeMap::new();
        for at in gone {
            by_leaf.entry(world.running[*at].leaf).or_default().insert(*at);
        }
        for (leaf, mut gone) in by_leaf {
            let Some(jobs) = self.by_leaf.get_mut(&leaf) else { continue };
            let before = jobs.len();
            // Who goes is near the end, and mostly few.
            for at in (0..before).rev() {
                if gone.is_empty() {
                    break;
                }
                if gone.remove(&jobs[at]) {
                    jobs.remove(at);
                }
            }
            let fewer = before - jobs.len();
            world.tree.path(leaf).for_each(|place| self.below[place] -= fewer);
            self.below[ROOT] -= fewer;
        }
    }

    /// Whether nobody is left.
    pub fn is_empty(&self) -> bool {
        self.below.first().is_none_or(|n| *n == 0)
    }
}

/// Whom a search may take.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// Anybody, since all are placed again.
    Anybody,
    /// Jobs of other queues, where the shares allow it.
    Reclaim {
        /// The leaf that takes.
        leaf: Place,
        /// What it asks for.
        asks: Amounts,
    },
    /// Jobs of the same queue of a lower class.
    Preempt {
        /// The queue.
        leaf: Place,
        /// Of the job that asks.
        class: i64,
    },
}

/// Hands out victims one by one for one job; each counts as gone for the next choice.
#[derive(Debug)]
pub struct Picker<'a> {
    world: &'a World,
    pools: &'a Pools,
    rule: Rule,
    all_shared: bool,
    /// How many of each leaf were handed out.
    taken_of: BTreeMap<Place, usize>,
    /// What each queue would have lost.
    lost: BTreeMap<Place, Amounts>,
    below: Vec<usize>,
}

impl<'a> Picker<'a> {
    /// For a job with that rule.
    pub fn new(world: &'a World, pools: &'a Pools, rule: Rule, all_shared: bool) -> Self {
        let below = pools.below.clone();
        let mut picker =
            Self { world, pools, rule, all_shared, taken_of: BTreeMap::new(), lost: BTreeMap::new(), below };
        match rule {
            Rule::Anybody => {}
            Rule::Reclaim { leaf, .. } => picker.close(leaf),
            Rule::Preempt { leaf, .. } => {
                let others: Vec<Place> = pools.by_leaf.keys().copied().filter(|other| *other != leaf).collect();
                others.into_iter().for_each(|other| picker.close(other));
            }
        }
        picker
    }

    /// The next to go.
    pub fn next(&mut self) -> Option<usize> {
        loop {
            let leaf = self.last_leaf()?;
            let victim = self.next_of(leaf)?;
            if !self.allows(leaf, victim) {
                self.close(leaf);
                continue;
            }
            *self.taken_of.entry(leaf).or_default() += 1;
            self.below[ROOT] -= 1;
            let amounts = self.world.running[victim].amounts;
            for place in self.world.tree.path(leaf) {
                self.below[place] -= 1;
                let lost = self.lost.entry(place).or_default();
                lost.iter_mut().zip(amounts).for_each(|(sum, more)| *sum += more);
            }
            return Some(victim);
        }
    }

    /// The leaf whose turn it is to lose: at each level the queue that stands last.
    fn last_leaf(&self) -> Option<Place> {
        let tree = &self.world.tree;
        if self.below[ROOT] == 0 {
            return None;
        }
        let mut at = ROOT;
        while !tree.nodes[at].below.is_empty() {
            let open = tree.nodes[at].below.iter().copied().filter(|place| self.below[*place] > 0);
            let standing = |place: &Place| {
                let lost = self.lost_with_next(*place);
                (Standing::without(&tree.nodes[*place], &lost, tree, self.all_shared), *place)
            };
            at = open.max_by_key(standing)?;
        }
        Some(at)
    }

    /// What a queue would have lost with its next victim; of a queue with others below
    /// nothing more counts.
    fn lost_with_next(&self, place: Place) -> Amounts {
        let mut lost = self.lost.get(&place).copied().unwrap_or_default();
        if let Some(next) = self.next_of(place) {
            let amounts = &self.world.running[next].amounts;
            lost.iter_mut().zip(amounts).for_each(|(sum, more)| *sum += more);
        }
        lost
    }

    /// The next victim of a leaf.
    fn next_of(&self, leaf: Place) -> Option<usize> {
        let jobs = self.pools.by_leaf.get(&leaf)?;
        let taken = self.taken_of.get(&leaf).copied().unwrap_or(0);
        jobs.get(jobs.len().checked_sub(taken + 1)?).copied()
    }

    fn allows(&self, leaf: Place, victim: usize) -> bool {
        let tree = &self.world.tree;
        match self.rule {
            Rule::Anybody => true,
            Rule::Preempt { class, .. } => self.world.running[victim].turn.class < class,
            Rule::Reclaim { leaf: claimant, asks } => siblings(tree, claimant, leaf).is_some_and(|(own, theirs)| {
                // More are looked at than may go in the end: which of them it takes shows where the job fits.
                let (own, theirs) = (&tree.nodes[own], &tree.nodes[theirs]);
                may_take(tree, (own, &own.allocated), (theirs, &theirs.allocated), &asks)
            }),
        }
    }

    /// Nothing more comes from that leaf.
    fn close(&mut self, leaf: Place) {
        let jobs = self.pools.by_leaf.get(&leaf).map_or(0, Vec::len);
        let taken = self.taken_of.insert(leaf, jobs).unwrap_or(0);
        let fewer = jobs - taken;
        self.world.tree.path(leaf).for_each(|place| self.below[place] -= fewer);
        self.below[ROOT] -= fewer;
    }
}
