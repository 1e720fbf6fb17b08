//! The earliest time at which a class could start and run to its limit.
//!
//! Room grows only where something ends. So the answer is the time asked from, or the end of a hold; these times are
//! walked in order, while a tally is kept of the nodes that have room, and a choice is tried only where room grew and
//! the tally does not rule it out. Nodes without room cost nothing until something ends on them.
//!
//! The tally looks at a node anew at its own changes only. Until then it may count too much, where a reservation has
//! come within reach of the limit; never too little. By the time that reservation ends, the node was looked at anew
//! when it began, so that no growth is missed.

use crate::cluster::Cluster;
use crate::demand::{Demand, Goal};
use crate::fit::Fit;
use crate::need::ClassId;
use crate::place::{Among, Candidates, Lack};
use crate::placing::Placing;
use crate::start::{ReservationId, Slot, end_of};
use crate::work::{NoFit, Work};
use ephor_model::allocation::Allocation;
use ephor_model::id::{JobId, NodeId};
use ephor_model::time::{Span, Timestamp};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

impl Cluster {
    /// The earliest time, from `from` on and never before the time that the cluster was told, at which the class fits
    /// for `limit` beside everything that runs and is reserved; and where it would then be placed.
    ///
    /// # Errors
    /// It never fits, does not fit as far as ends are known, or the work units are used up.
    pub fn earliest_start(
        &mut self,
        class: ClassId,
        from: Timestamp,
        limit: Span,
        how: &Placing,
        work: &mut Work,
    ) -> Result<Slot, NoFit> {
        self.start_between(class, (from, Timestamp::NEVER), limit, how, work)
    }

    /// The same, no later than at the second time: what holds on for longer is not waited for.
    ///
    /// # Errors
    /// It does not fit by then, or as for [`Cluster::earliest_start`].
    pub fn start_between(
        &mut self,
        class: ClassId,
        (from, by): (Timestamp, Timestamp),
        limit: Span,
        how: &Placing,
        work: &mut Work,
    ) -> Result<Slot, NoFit> {
        work.take(1)?;
        let from = from.max(self.now);
        match self.first_room(class, (from, by), limit, how, work)? {
            Ok((start, allocation)) => Ok(Slot { start, allocation: Arc::new(allocation), duration: limit, class }),
            Err(lack) => Err(self.refusal(class, how, lack.room)),
        }
    }

    /// The first time from `from` to `by` with room enough, and where; or what there is at the last one.
    fn first_room(
        &self,
        class: ClassId,
        (from, by): (Timestamp, Timestamp),
        limit: Span,
        how: &Placing,
        work: &mut Work,
    ) -> Result<Result<(Timestamp, Allocation), Lack>, NoFit> {
        let candidates = self.candidates(class, how)?;
        let among = match &candidates {
            Candidates::Eligible if from > self.now => Among::All,
            candidates => candidates.as_among(),
        };
        let mut lack = match self.place(class, among, from, end_of(from, limit), how, work)? {
            Ok(allocation) => return Ok(Ok((from, allocation))),
            Err(lack) => lack,
        };
        let (found, demand) = self.class(class)?;
        let mut tally = Tally::of(demand, self.required(found).unwrap_or_default());
        lack.fits.drain(..).for_each(|(id, fit)| _ = tally.set(id, Some(fit)));
        let is_candidate = |id: &NodeId| match &candidates {
            Candidates::Eligible => found.eligible.has(*id),
            Candidates::These(nodes) => nodes.binary_search(id).is_ok(),
        };
        let mut changes = self.changes_after(from).peekable();
        while let Some(at) = changes.peek().map(|(at, _)| *at).filter(|at| *at <= by) {
            let until = end_of(at, limit);
            let mut grown = false;
            while let Some((_, allocation)) = changes.next_if(|(next, _)| *next == at) {
                work.take(1)?;
                for id in allocation.parts.iter().map(|part| part.node).filter(is_candidate) {
                    work.take(1)?;
                    grown |= tally.set(id, self.fit_in(found, id, at, until));
                }
            }
            if grown && tally.may_do() {
                let nodes: Vec<NodeId> = tally.fits.keys().copied().collect();
                match self.place(class, Among::These(&nodes), at, until, how, work)? {
                    Ok(allocation) => return Ok(Ok((at, allocation))),
                    Err(more) => lack = more,
                }
            }
        }
        Ok(Err(lack))
    }

    /// Everything that begins or ends after a time, in order, and what it holds.
    fn changes_after(&self, time: Timestamp) -> impl Iterator<Item = (Timestamp, &Allocation)> {
        let ends = self.ends.range((Excluded((time, JobId(u64::MAX))), Unbounded));
        let turns = self.turns.range((Excluded((time, ReservationId(u64::MAX))), Unbounded));
        let mut ends = ends.map(|((at, _), allocation)| (*at, &**allocation)).peekable();
        let mut turns = turns.map(|((at, _), allocation)| (*at, &**allocation)).peekable();
        std::iter::from_fn(move || match (ends.peek(), turns.peek()) {
            (Some((end, _)), Some((turn, _))) if turn < end => turns.next(),
            (None, _) => turns.next(),
            _ => ends.next(),
        })
    }
}

/// The nodes with room, and sums over them.
struct Tally<'a> {
    demand: &'a Demand,
    required: Vec<NodeId>,
    fits: BTreeMap<NodeId, Fit>,
    tasks: u64,
    gpus: u64,
    with_name: usize,
    /// Nodes with at least an average part of the tasks, were they spread over the most nodes; and of the GPUs.
    with_tasks: usize,
    with_gpus: usize,
}

impl<'a> Tally<'a> {
    fn of(demand: &'a Demand, required: Vec<NodeId>) -> Self {
        let fits = BTreeMap::new();
        Self { demand, required, fits, tasks: 0, gpus: 0, with_name: 0, with_tasks: 0, with_gpus: 0 }
    }

    /// Writes down what a node has room for; whether that is more than before.
    fn set(&mut self, id: NodeId, fit: Option<Fit>) -> bool {
        let old = match fit {
            Some(fit) => self.fits.insert(id, fit),
            None => self.fits.remove(&id),
        };
        if let Some(old) = old {
            self.count(id, old, false);
        }
        let Some(new) = fit else { return false };
        self.count(id, new, true);
        old.is_none_or(|old| new.tasks > old.tasks || new.gpus > old.gpus)
    }

    fn count(&mut self, id: NodeId, fit: Fit, add: bool) {
        let part = |sum: u32| (sum as usize).div_ceil(self.demand.most);
        let with_tasks = usize::from(fit.tasks as usize >= part(self.tasks_in_all()));
        let with_gpus = usize::from(fit.gpus as usize >= part(self.demand.gpus_in_all));
        let with_name = usize::from(self.required.contains(&id));
        if add {
            self.tasks += u64::from(fit.tasks);
            self.gpus += u64::from(fit.gpus);
            self.with_name += with_name;
            self.with_tasks += with_tasks;
            self.with_gpus += with_gpus;
        } else {
            self.tasks -= u64::from(fit.tasks);
            self.gpus -= u64::from(fit.gpus);
            self.with_name -= with_name;
            self.with_tasks -= with_tasks;
            self.with_gpus -= with_gpus;
        }
    }

    fn tasks_in_all(&self) -> u32 {
        match self.demand.goal {
            Goal::Sum(tasks) => tasks,
            Goal::Each(_) => 0,
        }
    }

    /// False where no choice among the nodes can do.
    fn may_do(&self) -> bool {
        self.fits.len() >= self.demand.fewest
            && self.tasks >= u64::from(self.tasks_in_all())
            && self.gpus >= u64::from(self.demand.gpus_in_all)
            && self.with_name >= self.demand.required
            && self.with_tasks > 0
            && self.with_gpus > 0
    }
}
