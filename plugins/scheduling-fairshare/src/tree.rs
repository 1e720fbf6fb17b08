//! The tree of queues: what each is promised, holds and asks for, and its fair share.

#[cfg(doc)]
use crate::share::USAGE_ONE;
use crate::share::{Rules, Sibling, divide};

/// Resources that can be shared at once.
pub const MOST: usize = 8;

/// One number for each shared resource, in the order of the settings; the rest is 0.
pub type Amounts = [i64; MOST];

/// The number of a queue in the tree; the root is [`ROOT`].
pub type Place = usize;

/// What stands above all queues.
pub const ROOT: Place = 0;

/// A queue as its columns say.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Queue {
    /// Row of the queue above.
    pub parent: Option<usize>,
    /// Higher goes first.
    pub priority: i64,
    /// Part of the surplus.
    pub weight: i64,
    /// Used in the mean over the past, in parts of a [`USAGE_ONE`] of what the cluster has.
    pub usage: Amounts,
    /// The smaller, the older.
    pub age: i64,
    /// Guaranteed.
    pub quota: Amounts,
    /// Never passed; `None`: no limit.
    pub limit: [Option<i64>; MOST],
}

/// A queue in the tree. Jobs sit on leaves only: a queue with jobs of its own and queues below has one more leaf for them.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its row, but for the root and the leaves that were added.
    pub row: Option<usize>,
    /// The queue whose numbers it has.
    pub queue: Queue,
    /// What stands above it.
    pub above: Place,
    /// What stands below it.
    pub below: Vec<Place>,
    /// What its jobs hold.
    pub allocated: Amounts,
    /// What those of them hold that do not give way.
    pub fixed: Amounts,
    /// What its jobs hold and wait for.
    pub demand: Amounts,
    /// What it may hold for good.
    pub fair: Amounts,
}

impl Node {
    /// What it may hold without others being entitled to take it: its quota or its fair share, within its limit.
    pub fn entitled(&self, at: usize) -> i64 {
        self.queue.quota[at].max(self.fair[at]).min(self.queue.limit[at].unwrap_or(i64::MAX))
    }
}

/// How much more jobs may hold, with every queue above them looked at; what a job does not ask for never stands against it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Headroom {
    /// Before a limit is passed.
    pub limit: Amounts,
    /// Before a quota is, by jobs that give way to nobody.
    pub quota: Amounts,
}

impl Headroom {
    /// Whether no limit stands against so much.
    pub fn within_limits(&self, asked: &Amounts) -> bool {
        within(&self.limit, asked)
    }

    /// Whether no quota stands against so much for good.
    pub fn within_quotas(&self, asked: &Amounts) -> bool {
        within(&self.quota, asked)
    }
}

fn within(room: &Amounts, asked: &Amounts) -> bool {
    asked.iter().zip(room).all(|(asked, room)| *asked <= 0 || asked <= room)
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Tree {
    /// By place.
    pub nodes: Vec<Node>,
    /// The leaf for jobs of each row.
    pub leaf_of: Vec<Place>,
    /// Of the whole cluster.
    pub total: Amounts,
    /// How many resources are shared.
    pub resources: usize,
}

impl Tree {
    /// The tree over these rows, in which nothing is held or asked for yet.
    pub fn new(queues: &[Queue], resources: usize, total: Amounts) -> Self {
        let node = |(row, queue): (usize, &Queue)| {
            // A row that cannot be above, or is its own, would make a ring: such a queue stands at the top.
            let above = queue.parent.filter(|p| *p < queues.len() && *p != row).map_or(ROOT, |p| p + 1);
            Node { row: Some(row), queue: *queue, above, ..Node::default() }
        };
        let mut nodes = vec![Node::default()];
        nodes.extend(queues.iter().enumerate().map(node));
        (1..nodes.len()).for_each(|place| cut_ring(&mut nodes, place));
        for place in 1..nodes.len() {
            let above = nodes[place].above;
            nodes[above].below.push(place);
        }
        let leaf_of = (1..=queues.len()).collect();
        Self { nodes, leaf_of, total, resources }
    }

    /// The leaf for jobs of a row; a queue with others below it gets one of its own for them.
    pub fn leaf(&mut self, row: usize) -> Place {
        let place = self.leaf_of[row];
        if self.nodes[place].below.is_empty() {
            return place;
        }
        let queue = &self.nodes[place].queue;
        let (mut quota, mut usage) = (queue.quota, queue.usage);
        for below in &self.nodes[place].below {
            let Queue { quota: promised, usage: used, .. } = &self.nodes[*below].queue;
            let without = |(left, taken): (&mut i64, &i64)| *left = (*left - taken).max(0);
            quota.iter_mut().zip(promised).for_each(without);
            usage.iter_mut().zip(used).for_each(without);
        }
        let own = Queue { parent: None, quota, usage, limit: [None; MOST], weight: 1, ..*queue };
        let leaf = self.nodes.len();
        self.nodes.push(Node { queue: own, above: place, ..Node::default() });
        self.nodes[place].below.push(leaf);
        self.leaf_of[row] = leaf;
        leaf
    }

    /// A leaf and everything above it, without the root.
    pub fn path(&self, leaf: Place) -> impl Iterator<Item = Place> + '_ {
        std::iter::successors(Some(leaf), |at| Some(self.nodes[*at].above)).take_while(|at| *at != ROOT)
    }

    /// How much more the jobs of a leaf may hold.
    pub fn headroom(&self, leaf: Place) -> Headroom {
        let mut room = Headroom { limit: [i64::MAX; MOST], quota: [i64::MAX; MOST] };
        for place in self.path(leaf) {
            let node = &self.nodes[place];
            for at in 0..self.resources {
                let limit = node.queue.limit[at].map_or(i64::MAX, |limit| limit - node.allocated[at]);
                room.limit[at] = room.limit[at].min(limit);
                // The leaf that stands for a queue's own jobs has no quota of its own to keep.
                if node.row.is_some() {
                    room.quota[at] = room.quota[at].min(node.queue.quota[at] - node.fixed[at]);
                }
            }
        }
        room
    }

    /// The same with a change to each.
    pub fn up(&mut self, leaf: Place, mut change: impl FnMut(&mut Node)) {
        let mut at = leaf;
        loop {
            change(&mut self.nodes[at]);
            if at == ROOT {
                return;
            }
            at = self.nodes[at].above;
        }
    }

    /// Jobs of that leaf hold more (or less).
    pub fn hold(&mut self, leaf: Place, amounts: &Amounts, gives_way: bool, sign: i64) {
        self.up(leaf, |node| {
            for (at, amount) in amounts.iter().enumerate() {
                node.allocated[at] += sign * amount;
                node.fixed[at] += if gives_way { 0 } else { sign * amount };
            }
        });
    }

    /// Jobs of that leaf hold or ask for more.
    pub fn ask(&mut self, leaf: Place, amounts: &Amounts) {
        self.up(leaf, |node| node.demand.iter_mut().zip(amounts).for_each(|(sum, more)| *sum += more));
    }

    /// Works out all fair shares, from the top down; what nobody took of the whole cluster, by resource.
    pub fn divide(&mut self, rules: &[Rules]) -> Amounts {
        let mut unclaimed = [0; MOST];
        for (at, rules) in rules.iter().enumerate().take(self.resources) {
            self.cap_demand(at);
            self.nodes[ROOT].fair[at] = self.total[at];
            let mut order = vec![ROOT];
            while let Some(place) = order.pop() {
                let below = self.nodes[place].below.clone();
                let siblings: Vec<Sibling> = below.iter().map(|b| self.sibling(*b, at)).collect();
                let (shares, left) = divide(self.nodes[place].fair[at], &siblings, *rules);
                if place == ROOT {
                    unclaimed[at] = left;
                }
                below.iter().zip(shares).for_each(|(b, share)| self.nodes[*b].fair[at] = share);
                order.extend(below);
            }
        }
        unclaimed
    }

    /// What cannot be had, because a limit below stands against it, is not asked for above.
    fn cap_demand(&mut self, at: usize) {
        let mut order = vec![ROOT];
        let mut next = 0;
        while let Some(place) = order.get(next).copied() {
            order.extend_from_slice(&self.nodes[place].below);
            next += 1;
        }
        for place in order.into_iter().rev() {
            let node = &self.nodes[place];
            let below: i64 = node.below.iter().map(|b| self.nodes[*b].demand[at]).sum();
            let own = if node.below.is_empty() { node.demand[at] } else { below };
            let limit = node.queue.limit[at].unwrap_or(i64::MAX);
            self.nodes[place].demand[at] = if place == ROOT { own } else { own.min(limit) };
        }
    }

    fn sibling(&self, place: Place, at: usize) -> Sibling {
        let Node { queue, demand, .. } = &self.nodes[place];
        Sibling {
            quota: queue.quota[at],
            limit: queue.limit[at],
            demand: demand[at],
            weight: queue.weight,
            priority: queue.priority,
            usage: queue.usage[at],
            age: queue.age,
        }
    }
}

/// A chain of queues that comes back to where it began is cut there.
fn cut_ring(nodes: &mut [Node], place: Place) {
    let mut at = nodes[place].above;
    for _ in 0..nodes.len() {
        if at == ROOT {
            return;
        }
        at = nodes[at].above;
    }
    nodes[place].above = ROOT;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn amounts(gpu: i64) -> Amounts {
        let mut all = [0; MOST];
        all[0] = gpu;
        all
    }

    fn queue(parent: Option<usize>, quota: i64, age: i64) -> Queue {
        Queue { parent, quota: amounts(quota), weight: 1, age, ..Queue::default() }
    }

    const UNITS: &[Rules] = &[Rules { unit: 1, k: 1_000 }];

    fn fair(tree: &Tree) -> Vec<i64> {
        tree.nodes.iter().map(|n| n.fair[0]).collect()
    }

    #[test]
    fn shares_go_down_the_tree_and_limits_below_bound_what_is_asked_above() {
        let mut queues = [queue(None, 2, 0), queue(None, 2, 1), queue(Some(0), 1, 2), queue(Some(0), 1, 3)];
        queues[3].limit[0] = Some(1);
        let mut tree = Tree::new(&queues, 1, amounts(10));
        for (row, asked) in [(1, 3), (2, 9), (3, 9)] {
            let leaf = tree.leaf(row);
            tree.ask(leaf, &amounts(asked));
        }
        assert_eq!(tree.divide(UNITS), amounts(0));
        assert_eq!(fair(&tree), [10, 7, 3, 6, 1]);
    }

    #[test]
    fn jobs_of_a_queue_with_others_below_have_a_leaf_of_their_own() {
        let mut tree = Tree::new(&[queue(None, 4, 0), queue(Some(0), 1, 1)], 1, amounts(8));
        let leaf = tree.leaf(0);
        assert_eq!((leaf, tree.leaf(0), tree.leaf(1)), (3, 3, 2));
        assert_eq!(tree.nodes[leaf].queue.quota, amounts(3));
        tree.ask(leaf, &amounts(8));
        tree.ask(2, &amounts(8));
        tree.hold(leaf, &amounts(2), false, 1);
        assert_eq!((tree.nodes[1].allocated, tree.nodes[1].fixed), (amounts(2), amounts(2)));
        tree.divide(UNITS);
        assert_eq!(fair(&tree), [8, 8, 3, 5]);
        assert_eq!(tree.path(leaf).collect::<Vec<_>>(), [3, 1]);
    }

    #[test]
    fn a_ring_of_queues_ends_at_the_top() {
        let tree = Tree::new(&[queue(Some(1), 0, 0), queue(Some(0), 0, 1), queue(Some(2), 0, 2)], 1, amounts(1));
        assert_eq!(tree.path(2).count(), 2);
        assert_eq!(tree.nodes[ROOT].below, [1, 3]);
    }

    prop_compose! {
        /// Queues of which each may stand below one before it.
        fn queues()(all in proptest::collection::vec(
            (any::<usize>(), 0_i64..6, proptest::option::weighted(0.3, 0_i64..9), 0_i64..4, 0_i64..3, 0_i64..9), 1..12,
        )) -> Vec<(Queue, i64)> {
            let queue = |(at, (above, quota, limit, weight, priority, asked)): (usize, (usize, i64, Option<i64>, i64, i64, i64))| {
                let parent = Some(above % (at + 1)).filter(|parent| *parent != at);
                let limit = [limit, None, None, None, None, None, None, None];
                (Queue { limit, weight, priority, ..queue(parent, quota, at as i64) }, asked)
            };
            all.into_iter().enumerate().map(queue).collect()
        }
    }

    proptest! {
        #[test]
        fn siblings_share_what_is_due_to_the_queue_above(all in queues(), total in 0_i64..40) {
            let rows: Vec<Queue> = all.iter().map(|(queue, _)| *queue).collect();
            let mut tree = Tree::new(&rows, 1, amounts(total));
            for (row, (_, asked)) in all.iter().enumerate() {
                let leaf = tree.leaf(row);
                tree.ask(leaf, &amounts(*asked));
            }
            let left = tree.divide(UNITS)[0];
            for (place, node) in tree.nodes.iter().enumerate() {
                let below: Vec<&Node> = node.below.iter().map(|b| &tree.nodes[*b]).collect();
                let shares: i64 = below.iter().map(|n| n.fair[0]).sum();
                let guaranteed: i64 = below.iter().map(|n| n.queue.quota[0].min(n.demand[0])).sum();
                prop_assert!(shares <= node.fair[0].max(guaranteed), "{place}: {shares} of {}", node.fair[0]);
                prop_assert!(place == ROOT || node.fair[0] <= node.demand[0]);
                prop_assert!(place == ROOT || node.fair[0] >= node.queue.quota[0].min(node.demand[0]));
                prop_assert!(node.queue.limit[0].is_none_or(|limit| node.fair[0] <= limit));
            }
            let top: i64 = tree.nodes[ROOT].below.iter().map(|b| tree.nodes[*b].fair[0]).sum();
            prop_assert_eq!(left, (total - top).max(0));
        }
    }
}
