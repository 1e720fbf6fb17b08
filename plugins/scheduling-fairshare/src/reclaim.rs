//! Reclaim: queues below their fair share take back what others hold above theirs.

use std::collections::BTreeMap;

use ephor_sdk::scheduling::{Cycle, Refusal};

use crate::pass::{Looked, Pass};
use crate::search::{Goal, find};
use crate::tree::{Amounts, Node, Place, Tree};
use crate::victims::{Picker, Rule};

/// Who reclaims.
#[derive(Clone, Copy, Debug)]
pub struct Claimant<'a> {
    /// Its leaf.
    pub leaf: Place,
    /// What it asks for.
    pub amounts: &'a Amounts,
}

/// Whether a job may reclaim at all: with it its queue holds no more than its fair share of anything.
pub fn may_reclaim(tree: &Tree, who: Claimant<'_>) -> bool {
    let node = &tree.nodes[who.leaf];
    (0..tree.resources).all(|at| node.allocated[at] + who.amounts[at] <= node.fair[at])
}

/// The queues on the two paths that are siblings: where those of claimant and victim part. `None`: one is above the
/// other.
pub fn siblings(tree: &Tree, claimant: Place, victim: Place) -> Option<(Place, Place)> {
    let down = |leaf| {
        let mut path: Vec<Place> = tree.path(leaf).collect();
        path.reverse();
        path
    };
    down(claimant).into_iter().zip(down(victim)).find(|(a, b)| a != b)
}

/// Whether a queue that holds so much may take for what it asks from that sibling while it holds `left`. A claimant that
/// stays within its quota takes from those that are beyond theirs, or beyond what they are entitled to; one that does not
/// takes only from the latter, and from nobody of a higher priority, since those come first where no quota counts.
pub fn may_take(
    tree: &Tree,
    (claimant, held): (&Node, &Amounts),
    (victim, left): (&Node, &Amounts),
    asks: &Amounts,
) -> bool {
    let mut resources = 0..tree.resources;
    let within = resources.clone().all(|at| held[at] + asks[at] <= claimant.queue.quota[at]);
    if resources.clone().any(|at| left[at] > victim.entitled(at)) {
        return within || victim.queue.priority <= claimant.queue.priority;
    }
    within && resources.any(|at| left[at] > victim.queue.quota[at])
}

/// What each queue would hold after a claimant got its room and others lost theirs.
pub struct After<'a> {
    tree: &'a Tree,
    who: Claimant<'a>,
    /// What leaves lose for good, one job after the other.
    taken: &'a [(Place, &'a Amounts)],
    losses: BTreeMap<Place, Amounts>,
}

impl<'a> After<'a> {
    /// With these losses.
    pub fn new(tree: &'a Tree, who: Claimant<'a>, taken: &'a [(Place, &'a Amounts)]) -> Self {
        let mut losses: BTreeMap<Place, Amounts> = BTreeMap::new();
        for (leaf, amounts) in taken {
            for place in tree.path(*leaf) {
                let loss = losses.entry(place).or_default();
                loss.iter_mut().zip(*amounts).for_each(|(sum, more)| *sum += more);
            }
        }
        Self { tree, who, taken, losses }
    }

    /// Of a queue that the claimant is not below.
    fn left(&self, place: Place) -> Amounts {
        let mut left = self.tree.nodes[place].allocated;
        if let Some(loss) = self.losses.get(&place) {
            left.iter_mut().zip(loss).for_each(|(left, loss)| *left -= loss);
        }
        left
    }

    /// Of the claimant's leaf or a queue above it.
    fn with(&self, place: Place) -> Amounts {
        let mut with = self.left(place);
        with.iter_mut().zip(self.who.amounts).for_each(|(held, more)| *held += more);
        with
    }

    /// Whether each of these may be taken, one after the other: a queue is looked at as those before left it, so that the
    /// last one may bring it below what it is entitled to where it cannot be divided.
    pub fn is_taken_fairly(&self) -> bool {
        let (tree, who) = (self.tree, self.who);
        let mut left: BTreeMap<Place, Amounts> = BTreeMap::new();
        self.taken.iter().all(|(leaf, lost)| {
            let Some((own, theirs)) = siblings(tree, who.leaf, *leaf) else { return false };
            let left = left.entry(theirs).or_insert(tree.nodes[theirs].allocated);
            let (own, theirs) = (&tree.nodes[own], &tree.nodes[theirs]);
            let may = may_take(tree, (own, &own.allocated), (theirs, left), who.amounts);
            left.iter_mut().zip(*lost).for_each(|(left, lost)| *left -= lost);
            may
        })
    }

    /// Whether the queues that reclaim stay, at every level, less above their fair share than each sibling that gives,
    /// times the multiplier in thousandths.
    pub fn stays_below(&self, multiplier: i64) -> bool {
        let tree = self.tree;
        tree.path(self.who.leaf).all(|own| {
            let with = self.with(own);
            let above = tree.nodes[own].above;
            let touched = tree.nodes[above].below.iter().filter(|b| **b != own && self.losses.contains_key(b));
            touched.copied().all(|sibling| {
                let (rest, lost) = (self.left(sibling), &self.losses[&sibling]);
                (0..tree.resources).filter(|at| self.who.amounts[*at] > 0 || lost[*at] > 0).all(|at| {
                    let (own_fair, their_fair) = (tree.nodes[own].fair[at], tree.nodes[sibling].fair[at]);
                    if with[at] <= own_fair || their_fair <= 0 {
                        return true;
                    }
                    // with / own_fair * multiplier < rest / their_fair, without dividing.
                    let ours = i128::from(with[at]) * i128::from(multiplier) * i128::from(their_fair);
                    let theirs = i128::from(rest[at]) * 1_000 * i128::from(own_fair);
                    own_fair > 0 && ours < theirs
                })
            })
        })
    }

    /// Whether one of those who lose could take it back from the claimant at once: then the two would take turns for
    /// ever.
    pub fn comes_back(&self) -> bool {
        let tree = self.tree;
        self.taken.iter().any(|(leaf, lost)| {
            let Some((own, theirs)) = siblings(tree, *leaf, self.who.leaf) else { return false };
            let (node, left) = (&tree.nodes[*leaf], self.left(*leaf));
            let within_share = (0..tree.resources).all(|at| left[at] + lost[at] <= node.fair[at]);
            let (own, theirs) = ((&tree.nodes[own], &self.left(own)), (&tree.nodes[theirs], &self.with(theirs)));
            within_share && may_take(tree, own, theirs, lost)
        })
    }
}

/// Goes through the waiting jobs in order.
///
/// # Errors
/// The work of the call is used up.
pub fn reclaim<C: Cycle>(pass: &mut Pass<'_, C>) -> Result<(), Refusal> {
    let multiplier = pass.config.saturation_thousandths;
    let candidates = pass.candidates(pass.config.reclaim_min_runtime_s);
    pass.for_each(candidates, |pass, job, pools, floor| {
        let who = Claimant { leaf: job.leaf, amounts: &job.amounts };
        if !may_reclaim(&pass.world.tree, who) {
            return Looked::Barred(pass.words.above_share(&pass.world.tree, job));
        }
        let rule = Rule::Reclaim { leaf: job.leaf, asks: job.amounts };
        let mut picker = Picker::new(&pass.world, pools, rule, pass.all_shared);
        let fair = |gone: &[usize]| {
            let losses: Vec<(Place, &Amounts)> =
                gone.iter().map(|at| &pass.world.running[*at]).map(|r| (r.leaf, &r.amounts)).collect();
            let after = After::new(&pass.world.tree, who, &losses);
            after.is_taken_fairly() && after.stays_below(multiplier) && !after.comes_back()
        };
        Looked::For(find(pass, job, &mut picker, Goal::TakeBack(&fair), floor))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::Rules;
    use crate::tree::{MOST, Queue};

    fn amounts(gpu: i64) -> Amounts {
        let mut all = [0; MOST];
        all[0] = gpu;
        all
    }

    /// A tree of queues (parent, quota, held, asked for beside that) over so many GPUs.
    fn tree(total: i64, queues: &[(Option<usize>, i64, i64, i64)]) -> Tree {
        let queue = |(age, (parent, quota, ..)): (usize, &(Option<usize>, i64, i64, i64))| Queue {
            parent: *parent,
            quota: amounts(*quota),
            weight: 1,
            age: age as i64,
            ..Queue::default()
        };
        let rows: Vec<Queue> = queues.iter().enumerate().map(queue).collect();
        let mut tree = Tree::new(&rows, 1, amounts(total));
        for (row, (_, _, held, asked)) in queues.iter().enumerate().filter(|(_, q)| q.2 + q.3 > 0) {
            let leaf = tree.leaf(row);
            tree.ask(leaf, &amounts(held + asked));
            tree.hold(leaf, &amounts(*held), true, 1);
        }
        tree.divide(&[Rules { unit: 1, k: 0 }]);
        tree
    }

    fn may(tree: &Tree, claimant: Place, victim: Place, asks: i64) -> bool {
        let (own, theirs) = siblings(tree, claimant, victim).unwrap();
        let (own, theirs) = (&tree.nodes[own], &tree.nodes[theirs]);
        may_take(tree, (own, &own.allocated), (theirs, &theirs.allocated), &amounts(asks))
    }

    #[test]
    fn only_up_to_the_fair_share() {
        let tree = tree(8, &[(None, 1, 8, 0), (None, 1, 0, 8)]);
        let asks = |n| amounts(n);
        assert!(may_reclaim(&tree, Claimant { leaf: 2, amounts: &asks(4) }));
        assert!(!may_reclaim(&tree, Claimant { leaf: 2, amounts: &asks(5) }));
    }

    #[test]
    fn within_quota_one_may_take_from_who_is_beyond_its_own() {
        // The first holds its fair share of 2, which is above its quota.
        let tree = tree(5, &[(None, 1, 2, 0), (None, 1, 0, 3), (None, 2, 1, 0)]);
        assert!(may(&tree, 2, 1, 1));
        assert!(!may(&tree, 2, 1, 2), "above its own quota it may not");
        assert!(!may(&tree, 2, 3, 1), "and from nobody that is within its own");
    }

    #[test]
    fn queues_compare_where_their_paths_part() {
        let tree =
            tree(8, &[(None, 4, 0, 0), (None, 4, 0, 0), (Some(0), 2, 1, 0), (Some(0), 2, 5, 0), (Some(1), 4, 0, 4)]);
        assert_eq!(siblings(&tree, 5, 3), Some((2, 1)));
        assert_eq!(siblings(&tree, 3, 4), Some((3, 4)));
        assert!(may(&tree, 5, 3, 2), "a queue within its quota gives where the one above it is beyond");
    }

    #[test]
    fn above_its_share_it_must_stay_below_those_who_give() {
        let tree = tree(4, &[(None, 0, 3, 0), (None, 0, 1, 3)]);
        let who = |asks| {
            let claimant = Claimant { leaf: 2, amounts: &amounts(asks) };
            After::new(&tree, claimant, &[(1, &amounts(asks))]).stays_below(1_000)
        };
        assert!(who(1), "both have their share of 2");
        assert!(!who(2), "3 of 2 against 1 of 2");
    }
}
