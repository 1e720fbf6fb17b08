//! Preemption: jobs of a higher queue or QOS make running ones of lower ones give way, as few of them as it takes.
//!
//! The lowest give way first, and of those the youngest. Everything is tried on the cycle's copy: a set of victims stands
//! only if the job then claims its start, and only as far as each of them is needed for it.

use std::collections::BTreeSet;

use ephor_sdk::scheduling::{Afterwards, Cycle, Outcome, Placing, Refusal, Scope};
use ephor_sdk::{Duration, Row};

use crate::config::{Config, Preempt, PreemptMode};

/// Jobs, from the first on, that a cycle lets make others give way.
const DEPTH: u32 = 64;
/// Most attempts that give way to one job.
const VICTIMS: usize = 1_000;
/// Most attempts of a set of victims that are looked at for whether it takes them.
const SPARED: usize = 64;

/// Lets the first jobs that must wait take the place of lower ones. None: the work of the call is used up.
pub fn pass<C: Cycle>(cycle: &C, config: &Config) -> Option<()> {
    if config.preempt == Preempt::Never {
        return Some(());
    }
    match Pass::new(cycle, config).and_then(|mut pass| pass.run()) {
        Err(Refusal::Budget) => None,
        // Anything else that goes wrong here leaves the ordinary pass as it is.
        _ => Some(()),
    }
}

/// A running attempt that may have to give way.
#[derive(Clone, Copy, Debug)]
struct Victim {
    row: Row,
    order: i64,
    gone: bool,
}

struct Pass<'a, C: Cycle> {
    cycle: &'a C,
    config: &'a Config,
    /// Places a job now or not at all.
    now: C::Placing,
    /// Lowest first, of those the youngest first.
    victims: Vec<Victim>,
    /// Classes and orders for which no victims were enough.
    hopeless: BTreeSet<(i64, i64)>,
}

impl<'a, C: Cycle> Pass<'a, C> {
    fn new(cycle: &'a C, config: &'a Config) -> Result<Self, Refusal> {
        let mut pass = Self { cycle, config, now: cycle.placing(), victims: Vec::new(), hopeless: BTreeSet::new() };
        pass.victims = pass.find_victims()?;
        Ok(pass)
    }

    fn find_victims(&self) -> Result<Vec<Victim>, Refusal> {
        let column = |name| self.cycle.column("attempts", name, None);
        let order = match self.config.preempt {
            Preempt::Qos => column("qos-priority")?,
            _ => column("priority")?,
        };
        let (started, releasing, again) = (column("started")?, column("releasing-since")?, column("preemptible")?);
        let ends = column("expected-end")?;
        let exempt = Duration::from(self.config.preempt_after_s) * 1_000;
        let released = self.cycle.now().saturating_add(self.grace());
        let may_go = |at: &usize| {
            releasing[*at] < 0
                && started[*at].saturating_add(exempt) <= self.cycle.now()
                // Whoever ends by then does not have to be told to.
                && ends[*at] > released
                && (self.config.preempt_mode != PreemptMode::Requeue || again[*at] == 1)
        };
        let mut rows: Vec<usize> = (0..order.len()).filter(may_go).collect();
        rows.sort_by_key(|at| (order[*at], std::cmp::Reverse(started[*at]), *at));
        Ok(rows.into_iter().map(|at| Victim { row: at as Row, order: order[at], gone: false }).collect())
    }

    fn run(&mut self) -> Result<(), Refusal> {
        let Some(lowest) = self.victims.first().map(|victim| victim.order) else { return Ok(()) };
        let jobs = self.cycle.next(Scope::All, None, DEPTH);
        let orders = self.orders(&jobs)?;
        let classes = self.cycle.column("jobs", "class", Some(&jobs))?;
        // Nobody may start ahead of one that waits, but whoever may make others give way can do so.
        let mut waits = false;
        for ((job, order), class) in jobs.into_iter().zip(orders).zip(classes) {
            if order <= lowest || self.hopeless.contains(&(class, order)) {
                waits = true;
                continue;
            }
            // Whatever goes wrong, nobody gives way in vain.
            let savepoint = self.cycle.savepoint();
            let served = self.serve(job, order, waits);
            if served != Ok(true) {
                self.cycle.rollback(savepoint)?;
            }
            match served? {
                true => self.cycle.accept(savepoint)?,
                false => {
                    self.hopeless.insert((class, order));
                    waits = true;
                }
            }
        }
        Ok(())
    }

    fn orders(&self, jobs: &[Row]) -> Result<Vec<i64>, Refusal> {
        if self.config.preempt == Preempt::Qos {
            return self.cycle.column("jobs", "qos-priority", Some(jobs));
        }
        let priorities = self.cycle.column("queues", "priority", None)?;
        let queues = self.cycle.column("jobs", "queue", Some(jobs))?;
        let priority = |queue: i64| usize::try_from(queue).ok().and_then(|at| priorities.get(at)).copied();
        Ok(queues.into_iter().map(|queue| priority(queue).unwrap_or(i64::MIN)).collect())
    }

    /// Whether a job has what it needs, now or as soon as others gave way.
    fn serve(&mut self, job: Row, order: i64, others_wait: bool) -> Result<bool, Refusal> {
        match self.cycle.try_start(job, None, &self.now) {
            // Where it is not its turn, the ordinary pass decides whether it may go ahead.
            Ok(_) => return Ok(!others_wait),
            Err(Refusal::NotNow(_) | Refusal::Pool(_)) => {}
            Err(Refusal::Budget) => return Err(Refusal::Budget),
            Err(_) => return Ok(false),
        }
        // Others may be on their way out already.
        if self.would_claim(job, &[], None)? {
            return self.claims(job, &[], None);
        }
        let candidates = self.candidates(job, order)?;
        let Some(enough) = self.enough(job, &candidates)? else { return Ok(false) };
        let (victims, nodes) = self.needed(job, candidates[..enough].to_vec())?;
        if !self.claims(job, &victims, nodes.as_deref())? {
            return Ok(false);
        }
        for victim in self.victims.iter_mut().filter(|victim| victims.contains(&victim.row)) {
            victim.gone = true;
        }
        Ok(true)
    }

    /// Attempts that could give way to a job: lower ones, on nodes that it could use.
    fn candidates(&self, job: Row, order: i64) -> Result<Vec<Row>, Refusal> {
        let lower = self.victims.iter().filter(|victim| !victim.gone && victim.order < order);
        let lower: Vec<Row> = lower.map(|victim| victim.row).collect();
        let useful: BTreeSet<i64> = match self.cycle.ragged("jobs", "could-use", &[job]) {
            Ok((_, nodes)) => nodes.into_iter().collect(),
            Err(Refusal::Budget) => return Err(Refusal::Budget),
            Err(_) => return Ok(lower.into_iter().take(VICTIMS).collect()),
        };
        self.on_nodes(&lower, &useful)
    }

    /// Those of these attempts that run on one of these nodes.
    fn on_nodes(&self, attempts: &[Row], nodes: &BTreeSet<i64>) -> Result<Vec<Row>, Refusal> {
        let mut found = Vec::new();
        for rows in attempts.chunks(VICTIMS) {
            let (ends, on) = self.cycle.ragged("attempts", "on-nodes", rows)?;
            let mut from = 0;
            for (row, end) in rows.iter().zip(ends) {
                let end = end as usize;
                if on.get(from..end).is_some_and(|theirs| theirs.iter().any(|node| nodes.contains(node))) {
                    found.push(*row);
                }
                from = end;
            }
            if found.len() >= VICTIMS {
                found.truncate(VICTIMS);
                break;
            }
        }
        Ok(found)
    }

    /// How many of these, from the first on, have to give way so that the job has room; `None`: not even all are enough.
    fn enough(&self, job: Row, candidates: &[Row]) -> Result<Option<usize>, Refusal> {
        let (mut few, mut many) = (0, 1);
        while !self.would_claim(job, &candidates[..many.min(candidates.len())], None)? {
            if many >= candidates.len() {
                return Ok(None);
            }
            (few, many) = (many, many * 2);
        }
        many = many.min(candidates.len());
        while many - few > 1 {
            let half = few + (many - few) / 2;
            match self.would_claim(job, &candidates[..half], None)? {
                true => many = half,
                false => few = half,
            }
        }
        Ok(Some(many))
    }

    /// Of victims that are enough those that it takes, and the nodes that the job then claims.
    fn needed(&self, job: Row, victims: Vec<Row>) -> Result<(Vec<Row>, Option<Vec<Row>>), Refusal> {
        let savepoint = self.cycle.savepoint();
        let claimed = self.claims(job, &victims, None)?;
        let nodes = if claimed { self.claimed_nodes(job)? } else { Vec::new() };
        self.cycle.rollback(savepoint)?;
        let there = nodes.iter().map(|node| i64::from(*node)).collect();
        let mut kept = self.on_nodes(&victims, &there).unwrap_or_default();
        let mut nodes = Some(nodes);
        if kept.is_empty() || !self.would_claim(job, &kept, nodes.as_deref())? {
            // Limits that others give back know no nodes.
            (kept, nodes) = (victims, None);
        }
        // The highest and oldest are spared first.
        for at in (0..kept.len().min(SPARED)).rev() {
            if kept.len() == 1 {
                break;
            }
            let spared = kept.remove(at);
            if !self.would_claim(job, &kept, nodes.as_deref())? {
                kept.insert(at, spared);
            }
        }
        Ok((kept, nodes))
    }

    fn would_claim(&self, job: Row, victims: &[Row], nodes: Option<&[Row]>) -> Result<bool, Refusal> {
        let savepoint = self.cycle.savepoint();
        let claimed = self.claims(job, victims, nodes);
        self.cycle.rollback(savepoint)?;
        claimed
    }

    /// Whether the job claims its start once these gave way.
    fn claims(&self, job: Row, victims: &[Row], nodes: Option<&[Row]>) -> Result<bool, Refusal> {
        let how = self.cycle.placing();
        how.may_claim(true);
        if let Some(nodes) = nodes {
            how.only_nodes(nodes)?;
        }
        let then = match self.config.preempt_mode {
            PreemptMode::Requeue | PreemptMode::RequeueOrCancel => Afterwards::Requeue,
            PreemptMode::Cancel => Afterwards::Cancel,
        };
        let why = self.reason(job)?;
        for victim in victims {
            self.cycle.evict(*victim, self.grace(), then, &why)?;
        }
        match self.cycle.try_start(job, None, &how) {
            // It may even start at once: who gives way may hold what another one has claimed.
            Ok(outcome) => Ok(matches!(outcome, Outcome::Claimed | Outcome::Started)),
            Err(Refusal::Budget) => Err(Refusal::Budget),
            Err(_) => Ok(false),
        }
    }

    fn grace(&self) -> Duration {
        Duration::from(self.config.preempt_grace_s) * 1_000
    }

    fn reason(&self, job: Row) -> Result<String, Refusal> {
        let id = self.cycle.column("jobs", "id", Some(&[job]))?;
        let by = if self.config.preempt == Preempt::Qos { "QOS" } else { "queue" };
        Ok(format!("it made way for job {}, whose {by} has a higher priority", id.first().copied().unwrap_or(0)))
    }

    /// The nodes that a job just claimed, or was started on.
    fn claimed_nodes(&self, job: Row) -> Result<Vec<Row>, Refusal> {
        let jobs = self.cycle.column("reservations", "job", None)?;
        let (_, nodes) = match jobs.iter().rposition(|of| *of == i64::from(job)) {
            Some(at) => self.cycle.ragged("reservations", "on-nodes", &[at as Row])?,
            None => self.cycle.ragged("jobs", "placed", &[job])?,
        };
        Ok(nodes.into_iter().filter_map(|node| Row::try_from(node).ok()).collect())
    }
}
