//! What is scarce: a price for the cores, memory and GPUs of each type of node.
//!
//! Were the cluster filled with the typical requests, each would go where it costs least. Prices rise where more would
//! come than there is room for and fall where room is left, until they tell which types of node to leave to those that
//! can go nowhere else. That is the dual of a transportation problem, solved by small steps; requests that cost nearly
//! the same go to several types, so that the steps settle.

use crate::node::Node;
use crate::request::Request;
use crate::typical::{Typical, coarse};
use std::collections::BTreeMap;

/// Price units of one whole GPU.
pub const GPU: i64 = 1_000_000;
/// Most rounds of prices.
const ROUNDS: usize = 200;
/// Rounds that make prices worth having.
const FEWEST_ROUNDS: usize = 20;
/// Looks at a request on a type of node, over all rounds: about 30 million instructions.
const LOOKS: usize = 500_000;
/// The first step: a price moves by so much where a resource is asked for twice over.
const STEP: i64 = GPU * 3 / 20;
/// Cores that are worth about one GPU where nothing is scarce, in thousandths: for steps and values of plain requests.
const CORES: i64 = 20;
/// Request costs that differ by less than this much of a GPU are nearly the same.
const NEARLY: i64 = GPU / 20;
/// Prices are for so many units: thousandths or MiB.
const UNITS: i64 = 1024;
/// Weight of the cheapest.
const ONE: i64 = 1 << 16;

/// The three things that are priced.
type Amounts = [i64; 3];

/// Nodes of about the same make, as if they were empty.
#[derive(Clone, Debug)]
struct Type {
    /// One of them.
    node: Node,
    /// All of them together.
    all: Amounts,
    prices: Amounts,
}

/// The prices of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    types: Vec<Type>,
    of_node: Vec<usize>,
}

impl Prices {
    /// The prices of these nodes for these requests, as if there were just so many that they ask for as many GPUs as
    /// there are.
    pub fn of(nodes: &[Node], typical: &[Typical]) -> Self {
        let mut prices = Self::group(nodes);
        let capacity: i64 = prices.types.iter().map(|t| t.all[2]).sum();
        let demand: i64 = typical.iter().map(|t| t.request.gpu() * t.count).sum();
        if capacity == 0 || demand == 0 {
            return prices;
        }
        let choices: Vec<Choice> = typical.iter().map(|t| prices.choice(t, capacity, demand)).collect();
        let looks: usize = choices.iter().map(|choice| choice.types.len()).sum();
        let rounds = ROUNDS.min(LOOKS / looks.max(1));
        for round in 0..if rounds < FEWEST_ROUNDS { 0 } else { rounds } {
            let loads = prices.loads(&choices, capacity);
            let step = STEP * 20 / (20 + round as i64);
            prices.types.iter_mut().zip(&loads).for_each(|(of, load)| of.adjust(load, step));
        }
        prices
    }

    /// What a request costs on a node, in [`GPU`] units.
    pub fn cost(&self, request: &Request, node: usize) -> i64 {
        cost(&self.types[self.of_node[node]].prices, &amounts(request))
    }

    fn group(nodes: &[Node]) -> Self {
        let mut known: BTreeMap<(i64, i64, Vec<i64>), usize> = BTreeMap::new();
        let mut types: Vec<Type> = Vec::new();
        let mut of_node = Vec::with_capacity(nodes.len());
        for node in nodes {
            let kinds = node.devices.iter().map(|d| d.kind).collect();
            let at = *known.entry((coarse(node.all_cpu), coarse(node.all_mem), kinds)).or_insert_with(|| {
                let mut empty = node.clone();
                (empty.cpu, empty.mem) = (node.all_cpu, node.all_mem);
                empty.devices.iter_mut().for_each(|d| d.free = crate::node::WHOLE);
                types.push(Type { node: empty, all: [0; 3], prices: [0; 3] });
                types.len() - 1
            });
            if node.up {
                let has = [node.all_cpu, node.all_mem, node.all_gpu()];
                types[at].all.iter_mut().zip(has).for_each(|(sum, n)| *sum += n);
            }
            of_node.push(at);
        }
        Self { types, of_node }
    }

    /// Where a request could go, and how often it is there.
    fn choice(&self, typical: &Typical, capacity: i64, demand: i64) -> Choice {
        let request = &typical.request;
        let takes = amounts(request);
        let worth = takes[2].max(takes[0] / CORES);
        let open = |t: &Type| t.all[0] > 0 && request.fits(&t.node);
        let types = (0..self.types.len()).filter(|i| open(&self.types[*i])).collect();
        // Scaled up by a thousand so that few jobs on a large cluster do not round to nothing.
        let count = i128::from(typical.count) * 1000 * i128::from(capacity) / i128::from(demand);
        Choice {
            takes,
            worth,
            size: worth.max(200),
            count: i64::try_from(count).unwrap_or(i64::MAX).min(1 << 40),
            types,
        }
    }

    /// What would be asked of each type at these prices.
    fn loads(&self, choices: &[Choice], capacity: i64) -> Vec<Amounts> {
        let mut loads = vec![[0; 3]; self.types.len()];
        let mut weights = Vec::new();
        for choice in choices {
            let each = |i: &usize| cost(&self.types[*i].prices, &choice.takes) * 1000 / choice.size;
            // Not to run at all costs what it is worth.
            let unserved = choice.worth * GPU / choice.size;
            let costs = || choice.types.iter().map(each);
            let least = costs().chain([unserved]).min().unwrap_or(unserved);
            weights.clear();
            weights.extend(choice.types.iter().zip(costs()).map(|(i, cost)| {
                let room = self.types[*i].all[if choice.takes[2] > 0 { 2 } else { 0 }];
                (*i, near(cost - least) * (room / 1000))
            }));
            let all = weights.iter().map(|(_, w)| w).sum::<i64>() + near(unserved - least) * (capacity / 64_000);
            for (i, weight) in weights.iter().filter(|(_, w)| *w > 0) {
                let part = (weight << 16) / all.max(1);
                let count = (choice.count * part) >> 16;
                loads[*i].iter_mut().zip(choice.takes).for_each(|(load, n)| *load += n * count / 1000);
            }
        }
        loads
    }
}

/// A typical request, ready for the rounds.
struct Choice {
    takes: Amounts,
    /// What it is worth in thousandths of a GPU.
    worth: i64,
    /// The same, at least a fifth of one: costs are compared for so much.
    size: i64,
    /// How often it comes, in thousandths.
    count: i64,
    types: Vec<usize>,
}

impl Type {
    /// Moves the prices towards what would fill this type.
    fn adjust(&mut self, load: &Amounts, step: i64) {
        let worth = self.all[2].max(self.all[0] / CORES);
        for (what, price) in self.prices.iter_mut().enumerate() {
            let all = self.all[what];
            if all == 0 {
                continue;
            }
            // In millionths: how much more is asked for than there is.
            let over = ((load[what] - all).clamp(-all, all) as i128 * 1_000_000 / i128::from(all)) as i64;
            // All of it is worth as many GPUs as the type has, whatever it is.
            let worth = if what == 2 { all } else { worth };
            let change = i128::from(step) * i128::from(over) / 1_000_000 * i128::from(worth) * i128::from(UNITS)
                / (1000 * i128::from(all));
            *price = (*price + change as i64).max(0);
        }
    }
}

fn amounts(request: &Request) -> Amounts {
    [request.cpu, request.mem, request.gpu()]
}

fn cost(prices: &Amounts, takes: &Amounts) -> i64 {
    prices.iter().zip(takes).map(|(price, n)| price * n / UNITS).sum()
}

/// The weight of something that costs so much more than the cheapest: halved with each [`NEARLY`] times ln 2.
fn near(more: i64) -> i64 {
    // In 65536ths of a halving.
    let halvings = more * 94_548 / NEARLY;
    let (whole, rest) = (halvings >> 16, halvings & 0xffff);
    if whole >= 16 { 0 } else { (ONE - rest / 2) >> whole }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Device;
    use crate::request::Kinds;

    fn node(kind: i64, gpus: usize, cores: i64) -> Node {
        let devices = vec![Device { kind, free: 1000 }; gpus];
        Node { up: true, cpu: cores * 1000, mem: 1000, all_cpu: cores * 1000, all_mem: 1000, devices }
    }

    fn typical(cores: i64, gpu: i64, kinds: &[i64], count: i64) -> Typical {
        Typical { request: Request::new(cores * 1000, 1, gpu, Kinds::of(kinds)), count }
    }

    #[test]
    fn a_kind_that_some_need_costs_more_than_one_that_nobody_needs() {
        let nodes = [vec![node(0, 4, 40); 4], vec![node(1, 4, 40); 4]].concat();
        // 16 GPUs of each kind; 14 are asked for of kind 0 alone, 18 of either.
        let prices = Prices::of(&nodes, &[typical(5, 1000, &[0], 14), typical(5, 1000, &[], 18)]);
        let any = Request::new(5000, 1, 1000, Kinds::ANY);
        let (scarce, plenty) = (prices.cost(&any, 0), prices.cost(&any, 4));
        assert!(scarce > plenty + GPU / 50, "{scarce} and {plenty}");
    }

    #[test]
    fn cores_cost_where_they_run_out_before_gpus() {
        let nodes = [vec![node(0, 4, 16); 4], vec![node(0, 4, 64); 4]].concat();
        let prices = Prices::of(&nodes, &[typical(2, 1000, &[], 16), typical(12, 1000, &[], 16)]);
        let heavy = Request::new(12_000, 1, 1000, Kinds::ANY);
        assert!(prices.cost(&heavy, 0) > prices.cost(&heavy, 4) + GPU / 50);
    }

    #[test]
    fn without_gpus_nothing_has_a_price() {
        let prices = Prices::of(&[node(0, 0, 8)], &[typical(2, 0, &[], 5)]);
        assert_eq!(prices.cost(&Request::new(2000, 1, 0, Kinds::ANY), 0), 0);
    }

    #[test]
    fn weights_fall_with_the_cost() {
        let weights: Vec<i64> = (0..40).map(|i| near(i * NEARLY / 4)).collect();
        assert!(weights.is_sorted_by(|a, b| a >= b) && weights[0] == ONE && near(GPU) == 0, "{weights:?}");
        assert!((weights[4] - ONE * 368 / 1000).abs() < ONE / 30, "{}", weights[4]);
    }
}
