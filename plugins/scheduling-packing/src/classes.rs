//! Classes of jobs: those that need the same are looked at once.

use crate::request::{Kinds, Request};
use ephor_sdk::Row;
use ephor_sdk::scheduling::{Cycle, Refusal};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a class in this cycle.
#[derive(Clone, Debug)]
pub struct Class {
    /// What it takes of each of its nodes.
    pub request: Request,
    /// How many nodes it asks for.
    pub nodes: i64,
    /// Nodes that it may use, once that was asked.
    pub could_use: Option<BTreeSet<u32>>,
    /// Nodes that refused it although there is room: something later is promised there.
    pub refused: BTreeSet<u32>,
    /// No node has room for it as far as this policy knows; in a cycle none comes free.
    pub full: bool,
}

/// Classes by the host's number.
#[derive(Debug, Default)]
pub struct Classes(BTreeMap<i64, Class>);

impl Classes {
    /// The class numbers of these jobs; classes that are new are looked up.
    pub fn of<C: Cycle>(&mut self, cycle: &C, jobs: &[Row]) -> Result<Vec<i64>, Refusal> {
        let numbers = cycle.column("jobs", "class", Some(jobs))?;
        let mut new = BTreeMap::new();
        for (job, number) in jobs.iter().zip(&numbers) {
            if !self.0.contains_key(number) {
                new.entry(*number).or_insert(*job);
            }
        }
        let rows: Vec<Row> = new.values().copied().collect();
        let requests = requests(cycle, "jobs", &rows)?;
        for (number, (request, nodes)) in new.into_keys().zip(requests) {
            let class = Class { request, nodes, could_use: None, refused: BTreeSet::new(), full: false };
            self.0.insert(number, class);
        }
        Ok(numbers)
    }

    /// A class that was looked up.
    pub fn get(&mut self, number: i64) -> Option<&mut Class> {
        self.0.get_mut(&number)
    }
}

/// What jobs or attempts take of each of their nodes, and how many nodes they have.
pub fn requests<C: Cycle>(cycle: &C, table: &str, rows: &[Row]) -> Result<Vec<(Request, i64)>, Refusal> {
    let column = |name| cycle.column(table, name, Some(rows));
    let (cpu, mem, gpu, nodes) = (column("cpu")?, column("mem")?, column("gpu")?, column("nodes")?);
    let (ends, kinds) = cycle.ragged(table, "gpu-kinds", rows)?;
    let mut requests = Vec::with_capacity(rows.len());
    let mut first = 0;
    // Columns have as many entries as rows were named.
    for (i, end) in ends.into_iter().enumerate() {
        let (nodes, end) = (nodes[i].max(1), end as usize);
        let kinds = Kinds::of(kinds.get(first..end).unwrap_or_default());
        requests.push((Request::new(cpu[i] / nodes, mem[i] / nodes, gpu[i] / nodes, kinds), nodes));
        first = end;
    }
    Ok(requests)
}
