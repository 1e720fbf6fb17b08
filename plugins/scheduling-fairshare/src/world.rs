//! What a cycle looks like from here: the tree with what is held and asked for, waiting jobs, running ones.

use std::collections::{BTreeMap, BTreeSet};

use ephor_sdk::Row;
use ephor_sdk::scheduling::{Cycle, Refusal, Scope};

use crate::config::Config;
use crate::order::Turn;
use crate::share::USAGE_ONE;
use crate::tree::{Amounts, MOST, Place, Queue, Tree};

/// Rows that the host hands out at once, at most.
const WINDOW: u32 = 10_000;

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

/// A running job. Of one that gives way to nobody its turn, its start and its nodes are not read.
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
    /// Waiting jobs that were read so far: those that have room, and those that are worth a try.
    pub jobs: Vec<Job>,
    /// By row.
    pub running: Vec<Running>,
    /// Ids of queues, by row.
    pub queue_ids: Vec<u32>,
    /// Free on nodes that take jobs, by resource.
    pub free: Amounts,
    /// Whether `jobs` are all that wait.
    all_read: bool,
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
        ask(cycle, config, &mut tree)?;
        let running = running(cycle, config, &tree)?;
        let moved = moving(cycle)?;
        for attempt in running.iter().filter(|r| r.end != End::Soon || moved.contains(&r.turn.id)) {
            tree.hold(attempt.leaf, &attempt.amounts, attempt.gives_way, 1);
        }
        let mut jobs = jobs(cycle, config, &tree, &rows(cycle, Scope::Placed))?;
        for job in &mut jobs {
            job.claimed = true;
            tree.hold(job.leaf, &job.amounts, job.gives_way, 1);
        }
        tree.divide(&config.rules());
        let mut world = Self { tree, jobs, running, queue_ids, free, all_read: false };
        if world.running.iter().any(|r| r.end == End::Soon) {
            // A job that has no room may still claim what is being released.
            world.read_all(cycle, config)?;
        } else {
            let awake = self::jobs(cycle, config, &world.tree, &rows(cycle, Scope::Awake))?;
            world.jobs.extend(awake);
        }
        Ok(world)
    }

    /// Reads the jobs that were not worth a try.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub fn read_all<C: Cycle>(&mut self, cycle: &C, config: &Config) -> Result<(), Refusal> {
        if std::mem::replace(&mut self.all_read, true) {
            return Ok(());
        }
        let known: BTreeSet<Row> = self.jobs.iter().map(|job| job.row).collect();
        let mut others = rows(cycle, Scope::All);
        others.retain(|row| !known.contains(row));
        self.jobs.extend(jobs(cycle, config, &self.tree, &others)?);
        Ok(())
    }

    /// Waiting jobs for which there may be room, in the order of their queues.
    pub fn by_leaf(&self, wanted: impl Fn(usize, &Job) -> bool) -> BTreeMap<Place, Vec<(usize, Amounts)>> {
        let mut by_leaf: BTreeMap<Place, Vec<(usize, Amounts)>> = BTreeMap::new();
        for (at, job) in self.jobs.iter().enumerate() {
            if !job.claimed && wanted(at, job) {
                by_leaf.entry(job.leaf).or_default().push((at, job.amounts));
            }
        }
        by_leaf.values_mut().for_each(|jobs| jobs.sort_by_key(|(at, _)| self.jobs[*at].turn));
        by_leaf
    }
}

/// All jobs of that scope.
fn rows<C: Cycle>(cycle: &C, scope: Scope) -> Vec<Row> {
    let mut rows = cycle.next(scope, None, WINDOW);
    let mut more = rows.len() as u32 == WINDOW;
    while more {
        let next = cycle.next(scope, rows.last().copied(), WINDOW);
        more = next.len() as u32 == WINDOW;
        rows.extend(next);
    }
    rows
}

/// Tells each leaf what its jobs hold and ask for: what its queue does, but for the queues below that.
fn ask<C: Cycle>(cycle: &C, config: &Config, tree: &mut Tree) -> Result<(), Refusal> {
    let mut own = amounts(cycle, "queues", "demand.", config, None, tree.leaf_of.len())?;
    let all = own.clone();
    for (row, below) in all.iter().enumerate() {
        // The root is no row.
        if let Some(above) = tree.nodes[row + 1].above.checked_sub(1) {
            own[above].iter_mut().zip(below).for_each(|(own, below)| *own -= below);
        }
    }
    for (row, asked) in own.iter().enumerate() {
        let leaf = tree.leaf(row);
        tree.ask(leaf, asked);
    }
    Ok(())
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
fn amounts<C: Cycle>(
    cycle: &C,
    table: &str,
    of: &str,
    config: &Config,
    rows: Option<&[Row]>,
    count: usize,
) -> Result<Vec<Amounts>, Refusal> {
    let mut amounts = vec![[0; MOST]; count];
    for (at, resource) in config.resources.iter().enumerate() {
        let column = cycle.column(table, &format!("{of}{}", resource.name), rows)?;
        amounts.iter_mut().zip(column).for_each(|(all, amount)| all[at] = amount);
    }
    Ok(amounts)
}

fn running<C: Cycle>(cycle: &C, config: &Config, tree: &Tree) -> Result<Vec<Running>, Refusal> {
    let column = |name: &str| cycle.column("attempts", name, None);
    let (ids, queues) = (column("job")?, column("queue")?);
    let (gives_way, since, release) = (column("preemptible")?, column("releasing-since")?, column("release")?);
    let amounts = amounts(cycle, "attempts", "", config, None, ids.len())?;
    // Of those that give way to nobody it only counts what they hold.
    let victims: Vec<Row> = (0..).zip(&gives_way).filter(|(_, gives)| **gives == 1).map(|(row, _)| row).collect();
    let of_victims = |name: &str| cycle.column("attempts", name, Some(&victims));
    let classes = classes(cycle, "attempts", &victims)?;
    let (submitted, started) = (of_victims("submitted")?, of_victims("started")?);
    let (ends, nodes) = cycle.ragged("attempts", "on-nodes", &victims)?;
    let mut running = Vec::with_capacity(ids.len());
    let (mut next, mut first) = (0, 0);
    for (at, id) in ids.iter().enumerate() {
        let mut turn = Turn { class: 0, priority: 0, submitted: 0, id: *id };
        let (mut since_when, mut on) = (0, Vec::new());
        if gives_way[at] == 1 {
            let end = ends[next] as usize;
            on = nodes[first..end].iter().filter_map(|n| Row::try_from(*n).ok()).collect();
            on.sort_unstable();
            turn = Turn { class: classes[next], submitted: submitted[next], ..turn };
            since_when = started[next];
            (next, first) = (next + 1, end);
        }
        let Some(queue) = usize::try_from(queues[at]).ok().filter(|q| *q < tree.leaf_of.len()) else { continue };
        running.push(Running {
            row: at as Row,
            queue,
            leaf: tree.leaf_of[queue],
            turn,
            amounts: amounts[at],
            gives_way: gives_way[at] == 1,
            started: since_when,
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

fn jobs<C: Cycle>(cycle: &C, config: &Config, tree: &Tree, rows: &[Row]) -> Result<Vec<Job>, Refusal> {
    let column = |name: &str| cycle.column("jobs", name, Some(rows));
    let ids = column("id")?;
    let (queues, classes) = (column("queue")?, classes(cycle, "jobs", rows)?);
    let (priorities, submitted) = (column("priority")?, column("submitted")?);
    let (gives_way, eligible, kinds) = (column("preemptible")?, column("eligible")?, column("class")?);
    let amounts = amounts(cycle, "jobs", "", config, Some(rows), rows.len())?;
    let mut jobs = Vec::with_capacity(rows.len());
    for (at, id) in ids.iter().enumerate() {
        let Some(queue) = usize::try_from(queues[at]).ok().filter(|q| *q < tree.leaf_of.len()) else { continue };
        jobs.push(Job {
            row: rows[at],
            queue,
            leaf: tree.leaf_of[queue],
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
fn classes<C: Cycle>(cycle: &C, table: &str, rows: &[Row]) -> Result<Vec<i64>, Refusal> {
    let mut classes = cycle.column(table, "qos-priority", Some(rows))?;
    let nice = cycle.column(table, "nice", Some(rows))?;
    classes.iter_mut().zip(nice).for_each(|(class, nice)| *class = class.saturating_sub(nice));
    Ok(classes)
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
