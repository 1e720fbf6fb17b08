//! The cycle over such a cluster.

use super::{Cluster, Held};
use ephor_sdk::scheduling::{Afterwards, Cause, Cycle, Keep, Outcome, Part, Placing, Refusal, Scope, Slot, StopRule};
use ephor_sdk::{Duration, ResourceId, Row, Timestamp};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// See the module. Rows of `jobs` are waiting jobs, rows of `attempts` running ones.
pub struct Fake<'a> {
    cluster: &'a Cluster,
    waiting: Vec<usize>,
    running: Vec<usize>,
    state: RefCell<State>,
    saved: RefCell<Vec<(u32, State)>>,
    next: Cell<u32>,
    budget: Cell<u64>,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// Free now, by node and device.
    free: Vec<Vec<i64>>,
    /// Free as soon as those who go are gone.
    soon: Vec<Vec<i64>>,
    placed: BTreeMap<usize, Held>,
    gone: Vec<usize>,
    said: BTreeMap<usize, String>,
    held: Vec<usize>,
}

/// What came of a cycle.
pub struct Came {
    pub placed: BTreeMap<usize, Held>,
    pub gone: Vec<usize>,
    pub said: Vec<(usize, String)>,
}

#[derive(Default)]
pub struct How {
    claim: Cell<bool>,
    only: RefCell<Option<Vec<Row>>>,
}

pub struct NoSlot;

fn no<T>(what: &str) -> Result<T, Refusal> {
    Err(Refusal::Other(format!("the double has no {what}")))
}

impl<'a> Fake<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        let mut free: Vec<Vec<i64>> = cluster.nodes.iter().map(|gpus| vec![1_000; *gpus]).collect();
        for (node, device, milli) in cluster.jobs.iter().filter_map(|job| job.held.as_ref()).flatten() {
            free[*node][*device] -= milli;
        }
        let soon = free.clone();
        let (running, waiting) = (0..cluster.jobs.len()).partition(|job| cluster.jobs[*job].held.is_some());
        let state = RefCell::new(State { free, soon, ..State::default() });
        let budget = Cell::new(cluster.budget);
        Self { cluster, waiting, running, state, saved: RefCell::default(), next: Cell::new(0), budget }
    }

    pub fn outcome(self) -> Came {
        assert!(self.saved.borrow().is_empty(), "a savepoint was left open");
        let state = self.state.into_inner();
        Came { placed: state.placed, gone: state.gone, said: state.said.into_iter().collect() }
    }

    fn work(&self, units: usize) -> Result<(), Refusal> {
        match self.budget.get().checked_sub(units as u64) {
            Some(left) => {
                self.budget.set(left);
                Ok(())
            }
            None => Err(Refusal::Budget),
        }
    }

    /// Where a job would go: nodes in use first, on them the fullest devices.
    fn find(&self, free: &[Vec<i64>], job: usize, only: Option<&[Row]>) -> Option<Held> {
        let (mut free, job) = (free.to_vec(), &self.cluster.jobs[job]);
        let mut held = Held::new();
        let left: Vec<i64> = free.iter().map(|devices| devices.iter().sum()).collect();
        for _ in 0..job.pods {
            let mut nodes: Vec<usize> = (0..free.len()).collect();
            nodes.retain(|node| only.is_none_or(|only| only.contains(&(*node as Row))));
            nodes.sort_by_key(|node| (left[*node] == self.cluster.nodes[*node] as i64 * 1_000, left[*node], *node));
            let found = nodes.into_iter().find_map(|node| Some((node, devices(&free[node], job.each)?)))?;
            for (device, milli) in found.1 {
                free[found.0][device] -= milli;
                held.push((found.0, device, milli));
            }
        }
        Some(held)
    }

    fn place(&self, job: usize, how: &How) -> Result<Outcome, Refusal> {
        self.work(self.cluster.nodes.len())?;
        let mut state = self.state.borrow_mut();
        let (only, pods) = (how.only.borrow(), &self.cluster.jobs[job]);
        let empty: Vec<Vec<i64>> = self.cluster.nodes.iter().map(|gpus| vec![1_000; *gpus]).collect();
        if self.find(&empty, job, None).is_none() {
            return Err(Refusal::Never("it never fits".to_owned()));
        }
        if let Some(full) = self.full(&state, pods.queue, pods.pods as i64 * pods.each) {
            return Err(Refusal::Pool(full as Row));
        }
        let now = self.find(&state.free, job, only.as_deref());
        let claimed = now.is_none();
        let held = now.or_else(|| if how.claim.get() { self.find(&state.soon, job, only.as_deref()) } else { None });
        let Some(held) = held else { return Err(Refusal::NotNow("no room".to_owned())) };
        for (node, device, milli) in &held {
            state.soon[*node][*device] -= milli;
            state.free[*node][*device] -= milli;
        }
        state.placed.insert(job, held);
        Ok(if claimed { Outcome::Claimed } else { Outcome::Started })
    }

    /// The first queue on the way up whose limit so much more would pass.
    fn full(&self, state: &State, queue: usize, more: i64) -> Option<usize> {
        let holds = |job: &usize| {
            let runs = self.cluster.jobs[*job].held.is_some() && !state.gone.contains(job);
            runs || state.placed.contains_key(job)
        };
        let path = std::iter::successors(Some(queue), |at| self.cluster.queues[*at].parent);
        path.into_iter().find(|at| {
            let mut sub = self.cluster.clone();
            (0..sub.jobs.len()).for_each(|job| sub.jobs[job].held = holds(&job).then(Held::new));
            self.cluster.queues[*at].limit.is_some_and(|limit| sub.holds(*at) + more > limit)
        })
    }

    fn job(&self, row: Row) -> Result<usize, Refusal> {
        self.waiting.get(row as usize).copied().ok_or_else(|| Refusal::Other(format!("there is no job {row}")))
    }

    fn cell(&self, table: &str, name: &str, row: usize) -> Option<i64> {
        let state = self.state.borrow();
        let of_job = |job: usize| {
            let entry = &self.cluster.jobs[job];
            Some(match name {
                "id" | "job" | "submitted" => job as i64,
                "class" => entry.each * 1_000 + entry.pods as i64,
                "queue" => entry.queue as i64,
                "priority" | "qos-priority" | "eligible" => 0,
                "nice" => {
                    if entry.train {
                        -50
                    } else {
                        -100
                    }
                }
                "preemptible" => i64::from(entry.train),
                "started" => entry.started,
                "releasing-since" => -1,
                "release" => 0,
                "gpu" => entry.pods as i64 * entry.each,
                _ => return None,
            })
        };
        match table {
            "jobs" => of_job(*self.waiting.get(row)?),
            "attempts" => of_job(*self.running.get(row)?),
            "queues" => {
                let queue = self.cluster.queues.get(row)?;
                Some(match name {
                    "id" => row as i64,
                    "parent" => queue.parent.map_or(-1, |p| p as i64),
                    "priority" => queue.priority,
                    "weight" => queue.weight,
                    "quota.gpu" => queue.quota,
                    "limit.gpu" => queue.limit.unwrap_or(-1),
                    "demand.gpu" => self.cluster.asks(row),
                    _ => return None,
                })
            }
            "nodes" => Some(match name {
                "up" => 1,
                "gpu" => *self.cluster.nodes.get(row)? as i64 * 1_000,
                "free.gpu" => state.free.get(row)?.iter().map(|milli| (*milli).max(0)).sum(),
                _ => return None,
            }),
            _ => None,
        }
    }
}

/// Devices of a node for one pod.
fn devices(free: &[i64], each: i64) -> Option<Vec<(usize, i64)>> {
    if each % 1_000 == 0 {
        let whole: Vec<usize> = (0..free.len()).filter(|d| free[*d] == 1_000).collect();
        let count = (each / 1_000) as usize;
        return (whole.len() >= count).then(|| whole.into_iter().take(count).map(|d| (d, 1_000)).collect());
    }
    (0..free.len()).filter(|d| free[*d] >= each).min_by_key(|d| (free[*d], *d)).map(|d| vec![(d, each)])
}

impl Placing for How {
    fn pack(&self, _: ResourceId) {}
    fn spread(&self, _: ResourceId) {}
    fn require_level(&self, _: &str) -> Result<(), Refusal> {
        no("levels")
    }
    fn prefer_level(&self, _: &str) -> Result<(), Refusal> {
        no("levels")
    }
    fn rank_nodes(&self, _: &[Row]) -> Result<(), Refusal> {
        no("rank")
    }
    fn only_nodes(&self, nodes: &[Row]) -> Result<(), Refusal> {
        *self.only.borrow_mut() = Some(nodes.to_vec());
        Ok(())
    }
    fn only_devices(&self, _: &[(Row, u32)]) -> Result<(), Refusal> {
        no("only-devices")
    }
    fn may_claim(&self, yes: bool) {
        self.claim.set(yes);
    }
}

impl Slot for NoSlot {
    fn start(&self) -> Timestamp {
        0
    }
    fn nodes(&self) -> Vec<Row> {
        Vec::new()
    }
}

impl Cycle for Fake<'_> {
    type Placing = How;
    type Slot = NoSlot;

    fn placing(&self) -> How {
        How::default()
    }
    fn now(&self) -> Timestamp {
        self.cluster.now
    }
    fn budget(&self) -> u64 {
        self.budget.get()
    }
    fn causes(&self) -> Vec<Cause> {
        Vec::new()
    }
    fn outcomes(&self) -> Vec<bool> {
        Vec::new()
    }
    fn rows(&self, table: &str) -> Result<u32, Refusal> {
        Ok(match table {
            "jobs" => self.waiting.len(),
            "attempts" => self.running.len(),
            "queues" => self.cluster.queues.len(),
            "nodes" => self.cluster.nodes.len(),
            "reservations" => 0,
            _ => return no(table),
        } as u32)
    }
    fn column(&self, table: &str, name: &str, rows: Option<&[Row]>) -> Result<Vec<i64>, Refusal> {
        let rows = rows.map_or_else(|| (0..self.rows(table).unwrap_or(0)).collect(), <[Row]>::to_vec);
        self.work(1 + rows.len())?;
        let cell = |row: &Row| self.cell(table, name, *row as usize);
        let missing = || Refusal::Other(format!("there is no column {name} of {table}"));
        rows.iter().map(|row| cell(row).ok_or_else(missing)).collect()
    }
    fn ragged(&self, table: &str, name: &str, rows: &[Row]) -> Result<(Vec<u32>, Vec<i64>), Refusal> {
        let (mut ends, mut values) = (Vec::new(), Vec::new());
        for row in rows {
            let held = match (table, name) {
                ("attempts", "on-nodes") => self.cluster.jobs[self.running[*row as usize]].held.clone(),
                ("jobs", "placed") => self.state.borrow().placed.get(&self.job(*row)?).cloned(),
                _ => return no(name),
            };
            let mut nodes: Vec<i64> = held.iter().flatten().map(|(node, ..)| *node as i64).collect();
            nodes.sort_unstable();
            nodes.dedup();
            values.extend(nodes);
            ends.push(values.len() as u32);
        }
        Ok((ends, values))
    }
    fn next(&self, scope: Scope, after: Option<Row>, n: u32) -> Vec<Row> {
        let state = self.state.borrow();
        let first = after.map_or(0, |row| row + 1);
        let waits = |row: &Row| {
            let job = self.waiting[*row as usize];
            !state.placed.contains_key(&job) && !state.held.contains(&job)
        };
        match scope {
            // Nothing is kept from one of its cycles to the next.
            Scope::Placed => Vec::new(),
            _ => (first..self.waiting.len() as Row).filter(waits).take(n as usize).collect(),
        }
    }
    fn try_start(&self, row: Row, _: Option<Part>, how: &How) -> Result<Outcome, Refusal> {
        let job = self.job(row)?;
        let state = self.state.borrow();
        if state.placed.contains_key(&job) || state.held.contains(&job) {
            return Err(Refusal::Other(format!("job {job} has room, or was held")));
        }
        drop(state);
        self.place(job, how)
    }
    fn start_in_order(&self, _: &[Row], _: &How, _: StopRule) -> Vec<Outcome> {
        Vec::new()
    }
    fn earliest_start(&self, _: Row, _: Option<Part>, _: &How, _: Timestamp) -> Result<NoSlot, Refusal> {
        no("slots")
    }
    fn reserve(&self, _: &NoSlot, _: Keep) -> Result<u32, Refusal> {
        no("slots")
    }
    fn start_or_reserve(&self, _: &[Row], _: &How, _: Keep, _: bool) -> Vec<Outcome> {
        Vec::new()
    }
    fn lift(&self, _: u32) -> Result<(), Refusal> {
        no("slots")
    }
    fn evict(&self, row: Row, _: Duration, then: Afterwards, why: &str) -> Result<(), Refusal> {
        self.work(1)?;
        let job = self.running[row as usize];
        let mut state = self.state.borrow_mut();
        assert!(!state.gone.contains(&job), "job {job} was made to go twice");
        assert!(self.cluster.jobs[job].train, "job {job} gives way to nobody");
        assert!(then == Afterwards::Requeue && !why.is_empty());
        for (node, device, milli) in self.cluster.jobs[job].held.iter().flatten() {
            state.soon[*node][*device] += milli;
        }
        state.gone.push(job);
        Ok(())
    }
    fn re_place(&self, row: Row, how: &How) -> Result<Outcome, Refusal> {
        let job = self.running[row as usize];
        assert!(self.state.borrow().gone.contains(&job));
        // Its own room is not free before it is gone.
        self.place(job, how).map(|_| Outcome::Claimed)
    }
    fn report(&self, table: &str, name: &str, rows: &[Row], values: &[i64]) -> Result<(), Refusal> {
        assert_eq!((table, name, rows.len()), ("queues", "fair.gpu", values.len()));
        Ok(())
    }
    fn hold(&self, row: Row, why: &str) -> Result<(), Refusal> {
        let job = self.job(row)?;
        let mut state = self.state.borrow_mut();
        state.held.push(job);
        state.said.insert(job, why.to_owned());
        Ok(())
    }
    fn note(&self, row: Row, why: &str) -> Result<(), Refusal> {
        let job = self.job(row)?;
        self.state.borrow_mut().said.insert(job, why.to_owned());
        Ok(())
    }
    fn wake_at(&self, _: Timestamp) -> Result<(), Refusal> {
        // Each of its cycles comes a while after the one before.
        Ok(())
    }
    fn rest_until_room(&self, _: Option<Row>) -> Result<(), Refusal> {
        no("calls to leave out")
    }
    fn savepoint(&self) -> u32 {
        let id = self.next.replace(self.next.get() + 1);
        self.saved.borrow_mut().push((id, self.state.borrow().clone()));
        id
    }
    fn rollback(&self, savepoint: u32) -> Result<(), Refusal> {
        let mut saved = self.saved.borrow_mut();
        let Some(at) = saved.iter().position(|(id, _)| *id == savepoint) else { return no("such savepoint") };
        *self.state.borrow_mut() = saved[at].1.clone();
        saved.truncate(at);
        Ok(())
    }
    fn accept(&self, savepoint: u32) -> Result<(), Refusal> {
        let mut saved = self.saved.borrow_mut();
        let Some(at) = saved.iter().position(|(id, _)| *id == savepoint) else { return no("such savepoint") };
        saved.truncate(at);
        Ok(())
    }
}
