//! What a cycle looks like from here: the tree with what is held and asked for, waiting jobs, running ones.

use std::collections::{BTreeMap, BTreeSet};

use ephor_sdk::Row;
use ephor_sdk::scheduling::{Cycle, Refusal};

use crate::config::Config;
use crate::order::Turn;
use crate::share::USAGE_ONE;
use crate::tree::{Amounts, MOST, Place, Queue, Tree};

/// What the column `durable` of reservations says of a claim.
const CLAIM: i64 = 2;

/// A waiting job.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Its row.
    pub row: Row,
    /// Row of its queue.
    pub queue: usize,
    /// Its leaf of the tree.
    pub leaf: Place,
    /// Its place among the jobs of its queue.
    pub turn: Turn,
    /// What it asks for.
    pub amounts: Amounts,
    /// Whether it may be made to give way later.
    pub gives_way: bool,
    /// Since when it could have started.
    pub eligible: i64,
    /// Jobs of one class ask for the same.
    pub class: i64,
    /// Room is kept for it: it has a start, as soon as others have gone.
    pub claimed: bool,
}

/// Whether a running job ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// Nobody asked it to.
    Open,
    /// It was asked to, and what it holds is as good as free.
    Soon,
    /// It was asked to and does not.
    Stuck,
}

/// A running job.
#[derive(Clone, Debug)]
pub struct Running {
    /// Its row of `attempts`.
    pub row: Row,
    /// Row of its queue.
    pub queue: usize,
    /// Its leaf of the tree.
    pub leaf: Place,
    /// Its place among the jobs of its queue; the last one goes first.
    pub turn: Turn,
    /// What it holds.
    pub amounts: Amounts,
    /// Whether it gives way to others.
    pub gives_way: bool,
    /// Since when it runs.
    pub started: i64,
    /// Whether it ends.
    pub end: End,
    /// Its nodes, ascending.
    pub nodes: Vec<Row>,
}

/// See the module.
#[derive(Debug)]
pub struct World {
    /// With fair shares.
    pub tree: Tree,
    /// By row.
    pub jobs: Vec<Job>,
    /// By row.
    pub running: Vec<Running>,
    /// Ids of queues, by row.
    pub queue_ids: Vec<u32>,
    /// Free on nodes that take jobs, by resource.
    pub free: Amounts,
}

impl World {
    /// Reads the tables. What a job holds that is ending counts as given back already, and what a waiting job has a
    /// claim on as held.
    ///
    /// # Errors
    /// The work of the call is used up; the host has no column of that name.
    pub fn read<C: Cycle>(cycle: &C, config: &Config) -> Result<Self, Refusal> {
        let (total, free) = capacity(cycle, config)?;
        let (queues, queue_ids) = queues(cycle, config, &total)?;
        let mut tree = Tree::new(&queues, config.resources.len(), total);
        let mut running = running(cycle, config, &mut tree)?;
        let mut jobs = jobs(cycle, config, &mut tree)?;
        has_room(cycle, &mut jobs)?;
        let moved = moving(cycle)?;
        for attempt in &mut running {
            let held = attempt.end != End::Soon || moved.contains(&attempt.turn.id);
            tree.ask(attempt.leaf, &attempt.amounts);
            if held {
                tree.hold(attempt.leaf, &attempt.amounts, attempt.gives_way, 1);
            }
        }
        for job in &jobs {
            tree.ask(job.leaf, &job.amounts);
            if job.claimed {
                tree.hold(job.leaf, &job.amounts, job.gives_way, 1);
            }
        }
        tree.divide(&config.rules());
        Ok(Self { tree, jobs, running, queue_ids, free })
    }

    /// Waiting jobs that have no room yet, in the order of their queues.
    pub fn by_leaf(&self, gone: &BTreeSet<usize>) -> BTreeMap<Place, Vec<(usize, Amounts)>> {
        let mut by_leaf: BTreeMap<Place, Vec<(usize, Amounts)>> = BTreeMap::new();
        for (at, job) in self.jobs.iter().enumerate() {
            if !job.claimed && !gone.contains(&at) {
                by_leaf.entry(job.leaf).or_default().push((at, job.amounts));
            }
        }
        by_leaf.values_mut().for_each(|jobs| jobs.sort_by_key(|(at, _)| self.jobs[*at].turn));
        by_leaf
    }
}

fn queues<C: Cycle>(cycle: &C, config: &Config, total: &Amounts) -> Result<(Vec<Queue>, Vec<u32>), Refusal> {
    let column = |name: &str| cycle.column("queues", name, None);
    let (ids, parents) = (column("id")?, column("parent")?);
    let (priorities, weights) = (column("priority")?, column("weight")?);
    let mut queues: Vec<Queue> = Vec::with_capacity(ids.len());
    for (row, id) in ids.iter().enumerate() {
        let parent = usize::try_from(parents[row]).ok();
        let (priority, weight) = (priorities[row], weights[row]);
        // Ids are given one after the other: the smaller, the older.
        queues.push(Queue { parent, priority, weight, age: *id, ..Queue::default() });
    }
    for (at, resource) in config.resources.iter().enumerate() {
        let quotas = column(&format!("quota.{}", resource.name))?;
        let limits = column(&format!("limit.{}", resource.name))?;
        for (row, queue) in queues.iter_mut().enumerate() {
            queue.quota[at] = quotas[row].max(0);
            queue.limit[at] = Some(limits[row]).filter(|limit| *limit >= 0);
        }
        if config.k_thousandths > 0 {
            let used = column(&format!("usage.{}", resource.name))?;
            queues.iter_mut().zip(used).for_each(|(queue, used)| queue.usage[at] = part_of(used, total[at]));
        }
    }
    Ok((queues, ids.iter().map(|id| u32::try_from(*id).unwrap_or(u32::MAX)).collect()))
}

/// How much of what the cluster has, in parts of [`USAGE_ONE`].
fn part_of(used: i64, total: i64) -> i64 {
    let part = i128::from(used.max(0)) * i128::from(USAGE_ONE) / i128::from(total.max(1));
    i64::try_from(part).unwrap_or(i64::MAX)
}

/// What all nodes that take jobs have, and have free.
fn capacity<C: Cycle>(cycle: &C, config: &Config) -> Result<(Amounts, Amounts), Refusal> {
    let up = cycle.column("nodes", "up", None)?;
    let sum = |column: Vec<i64>| column.iter().zip(&up).map(|(n, up)| n * up).sum::<i64>();
    let (mut total, mut free) = (Amounts::default(), Amounts::default());
    for (at, resource) in config.resources.iter().enumerate() {
        total[at] = sum(cycle.column("nodes", &resource.name, None)?);
        free[at] = sum(cycle.column("nodes", &format!("free.{}", resource.name), None)?);
    }
    Ok((total, free))
}

/// One amount for each resource and row.
fn amounts<C: Cycle>(cycle: &C, table: &str, config: &Config, rows: usize) -> Result<Vec<Amounts>, Refusal> {
    let mut amounts = vec![[0; MOST]; rows];
    for (at, resource) in config.resources.iter().enumerate() {
        let column = cycle.column(table, &resource.name, None)?;
        amounts.iter_mut().zip(column).for_each(|(all, amount)| all[at] = amount);
    }
    Ok(amounts)
}

fn running<C: Cycle>(cycle: &C, config: &Config, tree: &mut Tree) -> Result<Vec<Running>, Refusal> {
    let column = |name: &str| cycle.column("attempts", name, None);
    let ids = column("job")?;
    let (queues, classes) = (column("queue")?, classes(cycle, "attempts")?);
    let (submitted, started) = (column("submitted")?, column("started")?);
    let (gives_way, since, release) = (column("preemptible")?, column("releasing-since")?, column("release")?);
    let amounts = amounts(cycle, "attempts", config, ids.len())?;
    let rows: Vec<Row> = (0..ids.len() as Row).collect();
    let (ends, nodes) = cycle.ragged("attempts", "on-nodes", &rows)?;
    let mut running = Vec::with_capacity(ids.len());
    let mut first = 0;
    for (at, id) in ids.iter().enumerate() {
        let end = ends[at] as usize;
        let mut on: Vec<Row> = nodes[first..end].iter().filter_map(|n| Row::try_from(*n).ok()).collect();
        on.sort_unstable();
        first = end;
        let Some(queue) = usize::try_from(queues[at]).ok().filter(|q| *q < tree.leaf_of.len()) else { continue };
        running.push(Running {
            row: at as Row,
            queue,
            leaf: tree.leaf(queue),
            turn: Turn { class: classes[at], priority: 0, submitted: submitted[at], id: *id },
            amounts: amounts[at],
            gives_way: gives_way[at] == 1,
            started: started[at],
            end: match (since[at], release[at]) {
                (..0, _) => End::Open,
                (_, i64::MAX) => End::Stuck,
                _ => End::Soon,
            },
            nodes: on,
        });
    }
    Ok(running)
}

fn jobs<C: Cycle>(cycle: &C, config: &Config, tree: &mut Tree) -> Result<Vec<Job>, Refusal> {
    let column = |name: &str| cycle.column("jobs", name, None);
    let ids = column("id")?;
    let (queues, classes) = (column("queue")?, classes(cycle, "jobs")?);
    let (priorities, submitted) = (column("priority")?, column("submitted")?);
    let (gives_way, eligible, kinds) = (column("preemptible")?, column("eligible")?, column("class")?);
    let amounts = amounts(cycle, "jobs", config, ids.len())?;
    let mut jobs = Vec::with_capacity(ids.len());
    for (at, id) in ids.iter().enumerate() {
        let Some(queue) = usize::try_from(queues[at]).ok().filter(|q| *q < tree.leaf_of.len()) else { continue };
        jobs.push(Job {
            row: at as Row,
            queue,
            leaf: tree.leaf(queue),
            turn: Turn { class: classes[at], priority: priorities[at], submitted: submitted[at], id: *id },
            amounts: amounts[at],
            gives_way: gives_way[at] == 1,
            eligible: eligible[at],
            class: kinds[at],
            claimed: false,
        });
    }
    Ok(jobs)
}

/// The class of each job: that of its QOS, made more or less urgent by its own word.
fn classes<C: Cycle>(cycle: &C, table: &str) -> Result<Vec<i64>, Refusal> {
    let mut classes = cycle.column(table, "qos-priority", None)?;
    let nice = cycle.column(table, "nice", None)?;
    classes.iter_mut().zip(nice).for_each(|(class, nice)| *class = class.saturating_sub(nice));
    Ok(classes)
}

/// Marks the jobs that have a claim, or that the host started on theirs a moment ago.
fn has_room<C: Cycle>(cycle: &C, jobs: &mut [Job]) -> Result<(), Refusal> {
    let rows: Vec<Row> = jobs.iter().map(|job| job.row).collect();
    let (ends, _) = cycle.ragged("jobs", "placed", &rows)?;
    let mut first = 0;
    for (job, end) in jobs.iter_mut().zip(ends) {
        job.claimed = end > first;
        first = end;
    }
    Ok(())
}

/// Ids of jobs that have a claim, among them those that still end where they ran before.
fn moving<C: Cycle>(cycle: &C) -> Result<BTreeSet<i64>, Refusal> {
    if cycle.rows("reservations")? == 0 {
        return Ok(BTreeSet::new());
    }
    let durable = cycle.column("reservations", "durable", None)?;
    let rows = cycle.column("reservations", "job", None)?.into_iter().zip(durable);
    let rows: Vec<Row> =
        rows.filter(|(_, kind)| *kind == CLAIM).filter_map(|(row, _)| Row::try_from(row).ok()).collect();
    Ok(cycle.column("jobs", "id", Some(&rows))?.into_iter().collect())
}
