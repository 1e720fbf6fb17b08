//! How well a request goes with a node, in millionths of a GPU that are lost: less is better.

use crate::node::Node;
use crate::price::{GPU, Prices};
use crate::request::Request;
use crate::typical::Typical;
use std::collections::BTreeMap;

/// Parts that the weights of typical requests add up to.
const PARTS: i64 = 1 << 16;

/// What a score is made of.
#[derive(Clone, Debug)]
pub struct Scores {
    /// Typical requests for GPUs, by how much of each they take: the smallest parts first.
    levels: Vec<Level>,
    /// The weights of all of them.
    weight: i64,
    prices: Prices,
    /// How many times its cost a request's scarce resources count.
    scarcity: i64,
    /// What it is worth in millionths of a GPU that a node's cores are in use as far as its GPUs are.
    balance: i64,
}

/// Typical requests that take the same of GPUs.
#[derive(Clone, Debug)]
struct Level {
    gpus: i64,
    part: i64,
    requests: Vec<Weighed>,
}

/// What else a typical request takes, and its weight.
#[derive(Clone, Copy, Debug)]
struct Weighed {
    cpu: i64,
    mem: i64,
    weight: i64,
}

/// The part of a score that is a node's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing(i64);

impl Scores {
    /// From typical requests and prices; the settings count in whole numbers and in thousandths of a GPU.
    pub fn new(prices: Prices, typical: &[Typical], scarcity: i64, balance: i64) -> Self {
        let for_gpus = || typical.iter().filter(|t| t.request.gpus > 0);
        let all: i64 = for_gpus().map(|t| t.count).sum();
        let mut levels: BTreeMap<(i64, i64), Vec<Weighed>> = BTreeMap::new();
        for Typical { request, count } in for_gpus() {
            let weighed = Weighed { cpu: request.cpu, mem: request.mem, weight: count * PARTS / all.max(1) };
            levels.entry((request.part, request.gpus)).or_default().push(weighed);
        }
        let levels: Vec<Level> =
            levels.into_iter().map(|((part, gpus), requests)| Level { gpus, part, requests }).collect();
        let weight = levels.iter().flat_map(|level| &level.requests).map(|r| r.weight).sum();
        Self { levels, weight, prices, scarcity, balance: balance * (GPU / 1000) }
    }

    /// How a node stands: free GPUs that typical requests could not use, and cores out of proportion to GPUs.
    pub fn standing(&self, node: &Node) -> Standing {
        with_free(node, |free| self.judge(node, node.cpu, node.mem, free))
    }

    /// The score of a request that fits on a node.
    pub fn score(&self, request: &Request, node: &Node, index: usize, before: Standing) -> i64 {
        let Standing(after) = with_free(node, |free| {
            request.take(&node.devices, free);
            self.judge(node, node.cpu - request.cpu, node.mem - request.mem, free)
        });
        // Where it makes no difference, those without GPUs go to nodes without.
        let spare = i64::from(request.gpus == 0 && node.devices.is_empty());
        after - before.0 + self.scarcity * self.prices.cost(request, index) - spare * GPU / 1000
    }

    /// [`Self::standing`] of a node with so much free; `free`: of each GPU.
    fn judge(&self, node: &Node, cpu: i64, mem: i64, free: &mut [i64]) -> Standing {
        if free.is_empty() {
            return Standing(0);
        }
        let all_free: i64 = free.iter().sum();
        let mut wasted = all_free * self.weight;
        if all_free > 0 {
            free.sort_unstable_by(|a, b| b.cmp(a));
            // Levels ask for ever larger parts, so that ever fewer devices are large enough.
            let (mut count, mut usable) = (free.len(), all_free);
            for level in &self.levels {
                while count > 0 && free[count - 1] < level.part {
                    count -= 1;
                    usable -= free[count];
                }
                if (count as i64) < level.gpus {
                    continue;
                }
                // Any kind will do: which ones a request takes is a matter of prices.
                let room = level.requests.iter().filter(|r| r.cpu <= cpu && r.mem <= mem);
                wasted -= usable * room.map(|r| r.weight).sum::<i64>();
            }
        }
        let share = |free: i64, all: i64| free * GPU / all.max(1);
        let apart = (share(cpu, node.all_cpu) - share(all_free, node.all_gpu())).abs();
        Standing(wasted * (GPU / 1000) / PARTS + apart / 1000 * (self.balance / 1000))
    }

    /// About how much fuel a score takes.
    pub fn effort(&self) -> u64 {
        let requests: usize = self.levels.iter().map(|level| level.requests.len()).sum();
        3_200 + 80 * self.levels.len() as u64 + 48 * requests as u64
    }
}

/// What is free of each GPU of a node, in a place to work in. Few nodes have more than 16, and those cost more.
fn with_free<T>(node: &Node, work: impl FnOnce(&mut [i64]) -> T) -> T {
    let count = node.devices.len();
    let (mut few, mut many) = ([0; 16], Vec::new());
    let free = match few.get_mut(..count) {
        Some(free) => free,
        None => {
            many.resize(count, 0);
            &mut many[..]
        }
    };
    free.iter_mut().zip(&node.devices).for_each(|(free, device)| *free = device.free);
    work(free)
}
