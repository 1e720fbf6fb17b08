//! All nodes, and the best of them for a request.

use crate::node::Node;
use crate::request::Request;
use crate::score::{Scores, Standing};
use std::collections::BTreeMap;

/// The score of a node without room.
const NO_ROOM: i64 = i64::MAX;
/// Scores that are kept: 16 MiB.
const KEPT: usize = 2_000_000;

/// The nodes, with the scores that classes of requests have on them.
#[derive(Debug)]
pub struct Fleet {
    nodes: Vec<Node>,
    scores: Scores,
    standing: Vec<Standing>,
    /// Nodes in the order in which they changed.
    changed: Vec<u32>,
    tables: BTreeMap<i64, Table>,
    /// Nodes looked at and scores worked out, in about the fuel that they take.
    effort: u64,
}

/// What one class of requests scores on each node.
#[derive(Debug)]
struct Table {
    scores: Vec<i64>,
    /// How many changes are in it.
    seen: usize,
    /// When it was last used.
    used: usize,
}

impl Fleet {
    /// These nodes.
    pub fn new(nodes: Vec<Node>, scores: Scores) -> Self {
        let standing = nodes.iter().map(|node| scores.standing(node)).collect();
        Self { nodes, scores, standing, changed: Vec::new(), tables: BTreeMap::new(), effort: 0 }
    }

    /// The node that loses least with that request, of those that `allowed` names; `class` is the request's number.
    pub fn best(&mut self, class: i64, request: &Request, allowed: impl Fn(u32) -> bool) -> Option<u32> {
        self.update(class, request);
        let table = self.tables.get(&class)?;
        self.effort += 8_000 + 32 * table.scores.len() as u64;
        let (mut best, mut least) = (None, NO_ROOM);
        for (index, score) in table.scores.iter().enumerate() {
            if *score < least && allowed(index as u32) {
                (best, least) = (Some(index as u32), *score);
            }
        }
        best
    }

    /// A node is like this now.
    pub fn set(&mut self, index: u32, change: impl FnOnce(&mut Node)) {
        let Some(node) = self.nodes.get_mut(index as usize) else { return };
        change(node);
        self.standing[index as usize] = self.scores.standing(node);
        self.changed.push(index);
    }

    /// About how much fuel was spent.
    pub fn effort(&self) -> u64 {
        self.effort
    }

    /// Brings a class's scores up to date.
    fn update(&mut self, class: i64, request: &Request) {
        let now = self.changed.len();
        let stale = |table: &Table| table.seen + self.nodes.len() < now;
        if self.tables.get(&class).is_none_or(stale) {
            self.make_room();
            let scores = (0..self.nodes.len()).map(|i| self.score(request, i)).collect();
            self.tables.insert(class, Table { scores, seen: now, used: now });
            return;
        }
        let Some(mut table) = self.tables.remove(&class) else { return };
        let mut anew = self.changed[table.seen..].to_vec();
        anew.sort_unstable();
        anew.dedup();
        for index in anew {
            table.scores[index as usize] = self.score(request, index as usize);
        }
        (table.seen, table.used) = (now, now);
        self.tables.insert(class, table);
    }

    fn score(&mut self, request: &Request, index: usize) -> i64 {
        let node = &self.nodes[index];
        if !node.up || !request.fits(node) {
            self.effort += 200;
            return NO_ROOM;
        }
        self.effort += self.scores.effort();
        self.scores.score(request, node, index, self.standing[index])
    }

    /// Forgets the scores that were not needed for longest where there are too many.
    fn make_room(&mut self) {
        if (self.tables.len() + 1) * self.nodes.len() > KEPT
            && let Some(oldest) = self.tables.iter().min_by_key(|(_, t)| t.used).map(|(class, _)| *class)
        {
            self.tables.remove(&oldest);
        }
    }
}
