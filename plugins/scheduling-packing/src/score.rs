//! How well a request goes with a node, in millionths of a GPU that are lost: less is better.

use crate::node::Node;
use crate::price::{GPU, Prices};
use crate::request::Request;
use crate::typical::Typical;

/// Parts that the weights of typical requests add up to.
const PARTS: i64 = 1 << 16;

/// What a score is made of.
#[derive(Clone, Debug)]
pub struct Scores {
    /// Typical requests for GPUs with their weights.
    typical: Vec<(Request, i64)>,
    prices: Prices,
    /// How many times its cost a request's scarce resources count.
    scarcity: i64,
    /// What it is worth in millionths of a GPU that a node's cores are in use as far as its GPUs are.
    balance: i64,
}

/// The part of a score that is a node's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing(i64);

impl Scores {
    /// From typical requests and prices; the settings count in whole numbers and in thousandths of a GPU.
    pub fn new(prices: Prices, typical: &[Typical], scarcity: i64, balance: i64) -> Self {
        let for_gpus = || typical.iter().filter(|t| t.request.gpus > 0);
        let all: i64 = for_gpus().map(|t| t.count).sum();
        let weighed = for_gpus().map(|t| (t.request, t.count * PARTS / all.max(1))).collect();
        Self { typical: weighed, prices, scarcity, balance: balance * (GPU / 1000) }
    }

    /// How a node stands: free GPUs that typical requests could not use, and cores out of proportion to GPUs.
    pub fn standing(&self, node: &Node) -> Standing {
        let free = node.free_gpu();
        let all = node.all_gpu();
        if all == 0 {
            return Standing(0);
        }
        let wasted: i64 = match free {
            0 => 0,
            _ => self.typical.iter().map(|(request, weight)| request.wasted(node, free) * weight).sum(),
        };
        let share = |free: i64, all: i64| free * GPU / all.max(1);
        let apart = (share(node.cpu, node.all_cpu) - share(free, all)).abs();
        Standing(wasted * (GPU / 1000) / PARTS + apart / 1000 * (self.balance / 1000))
    }

    /// The score of a request that fits on a node.
    pub fn score(&self, request: &Request, node: &Node, index: usize, before: Standing) -> i64 {
        let mut after = node.clone();
        request.take(&mut after);
        let Standing(after) = self.standing(&after);
        // Where it makes no difference, those without GPUs go to nodes without.
        let spare = i64::from(request.gpus == 0 && node.devices.is_empty());
        after - before.0 + self.scarcity * self.prices.cost(request, index) - spare * GPU / 1000
    }

    /// About how many instructions a score takes.
    pub fn effort(&self) -> u64 {
        200 + 60 * self.typical.len() as u64
    }
}
