//! Who is next: queues by need, jobs by class and age, victims the other way round.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Amounts, Node, Place, ROOT, Tree};

/// What a queue that holds something without being entitled to any counts for, against one that has all it is entitled to.
const ENTITLED_TO_NONE: i64 = 1_000;

/// A part of something, compared exactly.
#[derive(Clone, Copy, Debug)]
struct Part {
    of: i64,
    whole: i64,
}

impl Ord for Part {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (i128::from(self.of) * i128::from(other.whole), i128::from(other.of) * i128::from(self.whole));
        a.cmp(&b)
    }
}

impl PartialOrd for Part {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Part {}

/// Where a queue stands among its siblings: the smallest goes first. It hangs on the queue and its next job alone, so
/// that a placement moves one queue at each level.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standing {
    /// It holds more than its fair share of everything that there is.
    over_share: bool,
    /// With the job it holds more than its quota of something.
    over_quota: bool,
    priority: Reverse<i64>,
    /// With the job it holds something of which it is entitled to nothing.
    unentitled: bool,
    /// The largest part of what it is entitled to that it holds, with the job and as it is.
    part: Part,
    as_it_is: Part,
    entitled: Amounts,
    age: i64,
}

impl Standing {
    /// Of that queue, with its next job. `all_shared`: cores, memory and GPUs are all shared; where one of them is free
    /// for all nobody can hold too much of everything.
    pub fn with_job(node: &Node, job: &Amounts, tree: &Tree, all_shared: bool) -> Self {
        let mut with = node.allocated;
        with.iter_mut().zip(job).for_each(|(held, more)| *held += more);
        Self::of(node, &with, &with, tree, all_shared)
    }

    /// Of that queue as it is, but for its part of what it is entitled to: that counts without those who go.
    pub fn without(node: &Node, lost: &Amounts, tree: &Tree, all_shared: bool) -> Self {
        let mut left = node.allocated;
        left.iter_mut().zip(lost).for_each(|(held, less)| *held -= less);
        Self::of(node, &node.allocated, &left, tree, all_shared)
    }

    fn of(node: &Node, with: &Amounts, part_of: &Amounts, tree: &Tree, all_shared: bool) -> Self {
        let resources = 0..tree.resources;
        let part = |held: &Amounts| {
            let of_one = |at: usize| match (held[at].max(0), node.entitled(at)) {
                (0, _) => Part { of: 0, whole: 1 },
                (held, entitled) if entitled > 0 => Part { of: held, whole: entitled },
                // Against the whole cluster, so that it compares across resources.
                (held, _) => Part { of: held.saturating_mul(ENTITLED_TO_NONE), whole: tree.total[at].max(1) },
            };
            (0..tree.resources).map(of_one).max().unwrap_or(Part { of: 0, whole: 1 })
        };
        let mut entitled = Amounts::default();
        resources.clone().for_each(|at| entitled[at] = node.entitled(at));
        Self {
            over_share: all_shared && resources.clone().all(|at| node.allocated[at] > node.fair[at]),
            over_quota: resources.clone().any(|at| with[at] > node.queue.quota[at]),
            priority: Reverse(node.queue.priority),
            unentitled: resources.clone().any(|at| with[at] > 0 && node.entitled(at) <= 0),
            part: part(part_of),
            as_it_is: part(&node.allocated),
            entitled,
            age: node.queue.age,
        }
    }
}

/// A waiting or running job, as far as its place in a queue goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Turn {
    /// Its class: higher goes first, and may preempt lower.
    pub class: i64,
    /// What the priority policy says of it.
    pub priority: i64,
    /// When it was submitted.
    pub submitted: i64,
    /// Its number.
    pub id: i64,
}

impl Ord for Turn {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |p: &Self| (Reverse(p.class), Reverse(p.priority), p.submitted, p.id);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Turn {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Waiting jobs in order, queue by queue; the order moves as jobs are placed.
#[derive(Debug)]
pub struct Waiting {
    /// Jobs of each leaf and what they ask for, the next one last.
    jobs: BTreeMap<Place, Vec<(usize, Amounts)>>,
    /// Standings of the queues below each that have jobs.
    below: Vec<BTreeSet<(Standing, Place)>>,
    /// Where each queue stands, as written in `below` of the one above.
    standing: Vec<Option<Standing>>,
    all_shared: bool,
}

impl Waiting {
    /// Jobs of each leaf in order, with what they ask for.
    pub fn new(tree: &Tree, mut jobs: BTreeMap<Place, Vec<(usize, Amounts)>>, all_shared: bool) -> Self {
        jobs.values_mut().for_each(|jobs| jobs.reverse());
        let leaves: Vec<Place> = jobs.keys().copied().collect();
        let below = vec![BTreeSet::new(); tree.nodes.len()];
        let mut waiting = Self { jobs, below, standing: vec![None; tree.nodes.len()], all_shared };
        leaves.into_iter().for_each(|leaf| waiting.moved(tree, leaf));
        waiting
    }

    /// The first job of the first queue, which is taken out of the order; [`Self::moved`] must follow.
    pub fn take(&mut self) -> Option<(Place, usize)> {
        let leaf = self.first_leaf(ROOT);
        let (job, _) = self.jobs.get_mut(&leaf)?.pop()?;
        Some((leaf, job))
    }

    /// The next job of a leaf.
    pub fn next_of(&self, leaf: Place) -> Option<usize> {
        self.jobs.get(&leaf)?.last().map(|(job, _)| *job)
    }

    /// Takes the next job of a leaf out of the order; [`Self::moved`] must follow.
    pub fn pass_over(&mut self, leaf: Place) {
        if let Some(jobs) = self.jobs.get_mut(&leaf) {
            jobs.pop();
        }
    }

    /// What a leaf holds, or its next job, is another now.
    pub fn moved(&mut self, tree: &Tree, leaf: Place) {
        let mut at = leaf;
        while at != ROOT {
            let node = &tree.nodes[at];
            let next = self.jobs.get(&self.first_leaf(at)).and_then(|jobs| jobs.last());
            let standing = next.map(|(_, asked)| Standing::with_job(node, asked, tree, self.all_shared));
            if let Some(old) = self.standing[at].take() {
                self.below[node.above].remove(&(old, at));
            }
            if let Some(new) = &standing {
                self.below[node.above].insert((new.clone(), at));
            }
            self.standing[at] = standing;
            at = node.above;
        }
    }

    /// The leaf below a queue whose turn it is.
    fn first_leaf(&self, mut at: Place) -> Place {
        while let Some((_, first)) = self.below[at].first() {
            at = *first;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{MOST, Queue};

    fn amounts(gpu: i64) -> Amounts {
        let mut all = [0; MOST];
        all[0] = gpu;
        all
    }

    fn queue(quota: i64, age: i64) -> Queue {
        Queue { quota: amounts(quota), weight: 1, age, priority: 100, ..Queue::default() }
    }

    /// The order in which jobs of one GPU each are taken where all of them can be placed.
    fn order(queues: &[Queue], jobs: &[(usize, usize)], total: i64) -> Vec<usize> {
        let mut tree = Tree::new(queues, 1, amounts(total));
        let mut by_leaf: BTreeMap<Place, Vec<(usize, Amounts)>> = BTreeMap::new();
        let mut asked = 0;
        for (row, count) in jobs {
            let leaf = tree.leaf(*row);
            for _ in 0..*count {
                tree.ask(leaf, &amounts(1));
                by_leaf.entry(leaf).or_default().push((asked, amounts(1)));
                asked += 1;
            }
        }
        tree.divide(&[crate::share::Rules { unit: 1, k: 0 }]);
        let mut waiting = Waiting::new(&tree, by_leaf, false);
        let mut taken = Vec::new();
        while let Some((leaf, job)) = waiting.take() {
            tree.hold(leaf, &amounts(1), true, 1);
            waiting.moved(&tree, leaf);
            taken.push(job);
        }
        taken
    }

    #[test]
    fn equal_queues_take_turns_from_the_older_one_on() {
        assert_eq!(order(&[queue(1, 0), queue(1, 1)], &[(0, 3), (1, 3)], 4), [0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn quota_goes_before_priority_and_priority_before_share() {
        let hot = Queue { priority: 101, ..queue(1, 1) };
        assert_eq!(order(&[queue(2, 0), hot], &[(0, 3), (1, 3)], 8), [3, 0, 1, 4, 5, 2]);
    }

    #[test]
    fn who_is_entitled_to_nothing_comes_last() {
        let none = Queue { weight: 0, ..queue(0, 0) };
        assert_eq!(order(&[none, queue(1, 1)], &[(0, 2), (1, 2)], 4), [2, 3, 0, 1]);
    }

    #[test]
    fn the_queue_above_counts_before_the_one_below() {
        let mut queues = [queue(1, 0), queue(1, 1), queue(1, 2), queue(1, 3), queue(1, 4)];
        (queues[2].parent, queues[3].parent, queues[4].parent) = (Some(0), Some(0), Some(1));
        assert_eq!(order(&queues, &[(2, 2), (3, 2), (4, 4)], 8), [0, 4, 2, 5, 1, 6, 3, 7]);
    }

    #[test]
    fn jobs_go_by_class_then_priority_then_age() {
        let place = |class, priority, submitted, id| Turn { class, priority, submitted, id };
        let mut jobs = [place(50, 9, 0, 1), place(100, 0, 5, 3), place(100, 0, 5, 2), place(50, 10, 9, 4)];
        jobs.sort();
        assert_eq!(jobs.map(|p| p.id), [2, 3, 4, 1]);
    }
}
