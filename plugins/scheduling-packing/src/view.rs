//! What this policy reads of a cycle before it starts anything: nodes, and what is typical.

use crate::classes::{Classes, requests};
use crate::config::Config;
use crate::fleet::Fleet;
use crate::node::{Device, Node};
use crate::price::Prices;
use crate::request::{Kinds, Request};
use crate::score::Scores;
use crate::typical::typical;
use ephor_sdk::Row;
use ephor_sdk::scheduling::{Cycle, Refusal, Scope};
use std::collections::BTreeMap;

/// Jobs and attempts that are looked at to learn what is typical, of each so many.
const SAMPLE: u32 = 10_000;
/// Typical requests that prices are made with.
const FOR_PRICES: usize = 128;
/// Nodes that are followed at most: their columns have to fit in the memory of a policy.
const NODES: u32 = 20_000;

/// The nodes as this policy follows them.
pub struct View {
    /// The nodes with their scores.
    pub fleet: Fleet,
    /// For each node the rows of its devices: the first, and the one behind the last.
    devices: Vec<(Row, Row)>,
}

impl View {
    /// Reads the nodes, and learns from what waits and runs; `None`: there are too many nodes.
    pub fn read<C: Cycle>(cycle: &C, classes: &mut Classes, config: &Config) -> Result<Option<Self>, Refusal> {
        if cycle.rows("nodes")? > NODES {
            return Ok(None);
        }
        let mix = mix(cycle, classes)?;
        let (nodes, devices) = nodes(cycle)?;
        let prices = Prices::of(&nodes, &typical(mix.iter().copied(), FOR_PRICES));
        // Which kinds will do is a matter of prices; fragments are about size.
        let sizes = mix.into_iter().map(|(request, count)| (Request { kinds: Kinds::ANY, ..request }, count));
        let scores = Scores::new(prices, &typical(sizes, config.typical), config.scarcity, config.balance);
        Ok(Some(Self { fleet: Fleet::new(nodes, scores), devices }))
    }

    /// Follows what became of a node.
    pub fn refresh<C: Cycle>(&mut self, cycle: &C, node: Row) -> Result<(), Refusal> {
        let one = Some(std::slice::from_ref(&node));
        let (cpu, mem) = (cycle.column("nodes", "free.cpu", one)?, cycle.column("nodes", "free.mem", one)?);
        let (first, end) = self.devices.get(node as usize).copied().unwrap_or_default();
        let free = match first < end {
            true => cycle.column("devices", "free", Some(&(first..end).collect::<Vec<Row>>()))?,
            false => Vec::new(),
        };
        self.fleet.set(node, |node| {
            (node.cpu, node.mem) = (cpu.first().copied().unwrap_or(0), mem.first().copied().unwrap_or(0));
            node.devices.iter_mut().zip(free).for_each(|(device, free)| device.free = free);
        });
        Ok(())
    }
}

/// What waits and what runs, counted.
fn mix<C: Cycle>(cycle: &C, classes: &mut Classes) -> Result<Vec<(Request, i64)>, Refusal> {
    let mut mix: BTreeMap<Request, i64> = BTreeMap::new();
    let waiting = cycle.next(Scope::All, None, SAMPLE);
    for number in classes.of(cycle, &waiting)? {
        if let Some(class) = classes.get(number) {
            *mix.entry(class.request).or_default() += class.nodes;
        }
    }
    let running = cycle.rows("attempts")?;
    let latest: Vec<Row> = (running.saturating_sub(SAMPLE)..running).collect();
    for (request, nodes) in requests(cycle, "attempts", &latest)? {
        *mix.entry(request).or_default() += nodes;
    }
    Ok(mix.into_iter().collect())
}

/// The nodes, and the rows of their devices.
fn nodes<C: Cycle>(cycle: &C) -> Result<(Vec<Node>, Vec<(Row, Row)>), Refusal> {
    let column = |name| cycle.column("nodes", name, None);
    let (up, all_cpu, all_mem) = (column("up")?, column("cpu")?, column("mem")?);
    let (cpu, mem) = (column("free.cpu")?, column("free.mem")?);
    let mut nodes: Vec<Node> = (0..up.len())
        .map(|i| Node {
            up: up[i] != 0,
            cpu: cpu[i],
            mem: mem[i],
            all_cpu: all_cpu[i],
            all_mem: all_mem[i],
            devices: Vec::new(),
        })
        .collect();
    let mut rows = vec![(0, 0); nodes.len()];
    let device = |name| cycle.column("devices", name, None);
    let (of, kind, free) = (device("node")?, device("kind")?, device("free")?);
    for (row, node) in of.iter().enumerate() {
        let Ok(node) = usize::try_from(*node) else { continue };
        let (Some(at), Some(range)) = (nodes.get_mut(node), rows.get_mut(node)) else { continue };
        at.devices.push(Device { kind: kind[row], free: free[row] });
        // Devices of one node stand together.
        let row = row as Row;
        *range = if at.devices.len() == 1 { (row, row + 1) } else { (range.0, row + 1) };
    }
    Ok((nodes, rows))
}
