//! The earliest time at which a class could start and run to its limit.
//!
//! Room grows only where something ends. So the answer is the time asked from, or the end of a hold; these times are
//! walked in order, while a tally of the room of all nodes is kept, and a choice is tried only where room grew and the
//! tally does not rule it out.
//!
//! The tally looks at a node anew at its own changes only. Until then it may count too much, where a reservation has
//! come within reach of the limit; never too little. By the time that reservation ends, the node was looked at anew
//! when it began, so that no growth is missed.

use crate::cluster::Cluster;
use crate::demand::{Demand, Goal};
use crate::fit::Fit;
use crate::need::ClassId;
use crate::placing::Placing;
use crate::start::{Slot, end_of};
use crate::work::{NoFit, Work};
use ephor_model::time::{Span, Timestamp};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

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
        work.take(1)?;
        let from = from.max(self.now);
        let nodes = self.candidates(class, how)?;
        let (found, demand) = self.class(class)?;
        let required = self.required(found);
        let is_required = |id| required.as_ref().is_some_and(|required| required.contains(&id));
        let slot = |start, allocation| Slot { start, allocation, duration: limit, class };

        let mut room = match self.place(class, &nodes, from, end_of(from, limit), how, work)? {
            Ok(allocation) => return Ok(slot(from, allocation)),
            Err(room) => room,
        };
        let mut tally = Tally::default();
        let mut fits: Vec<Option<Fit>> = Vec::with_capacity(nodes.len());
        let mut events: Vec<Reverse<(Timestamp, usize)>> = Vec::new();
        for (i, id) in nodes.iter().enumerate() {
            let fit = self.fit_in(found, *id, from, end_of(from, limit));
            tally.count(fit, is_required(*id), demand, true);
            fits.push(fit);
            events.extend(self.nodes[id.0 as usize].changes(from).map(|at| Reverse((at, i))));
        }
        work.take(events.len())?;
        let mut events = BinaryHeap::from(events);
        while let Some(Reverse((at, _))) = events.peek().copied() {
            let until = end_of(at, limit);
            let mut grown = false;
            while let Some(Reverse((_, i))) = events.peek().copied().filter(|Reverse((next, _))| *next == at) {
                events.pop();
                let fit = self.fit_in(found, nodes[i], at, until);
                let more = |new: Fit| fits[i].is_none_or(|old| new.tasks > old.tasks || new.gpus > old.gpus);
                grown |= fit.is_some_and(more);
                tally.count(fits[i], is_required(nodes[i]), demand, false);
                tally.count(fit, is_required(nodes[i]), demand, true);
                fits[i] = fit;
            }
            if grown && tally.may_do(demand) {
                match self.place(class, &nodes, at, until, how, work)? {
                    Ok(allocation) => return Ok(slot(at, allocation)),
                    Err(more) => room = more,
                }
            }
        }
        Err(self.refusal(class, &nodes, room))
    }
}

/// The room of all nodes together.
#[derive(Default)]
struct Tally {
    nodes: usize,
    tasks: u64,
    gpus: u64,
    required: usize,
    /// Nodes with at least an average part of the tasks, were they spread over the most nodes; and of the GPUs.
    with_tasks: usize,
    with_gpus: usize,
}

impl Tally {
    /// Adds or takes away the room of one node.
    fn count(&mut self, fit: Option<Fit>, required: bool, demand: &Demand, add: bool) {
        let Some(fit) = fit else { return };
        let part = |sum: u32| (sum as usize).div_ceil(demand.most);
        let tasks = match demand.goal {
            Goal::Sum(tasks) => tasks,
            Goal::Each(_) => 0,
        };
        let with_tasks = usize::from(fit.tasks as usize >= part(tasks));
        let with_gpus = usize::from(fit.gpus as usize >= part(demand.gpus_in_all));
        if add {
            self.nodes += 1;
            self.tasks += u64::from(fit.tasks);
            self.gpus += u64::from(fit.gpus);
            self.required += usize::from(required);
            self.with_tasks += with_tasks;
            self.with_gpus += with_gpus;
        } else {
            self.nodes -= 1;
            self.tasks -= u64::from(fit.tasks);
            self.gpus -= u64::from(fit.gpus);
            self.required -= usize::from(required);
            self.with_tasks -= with_tasks;
            self.with_gpus -= with_gpus;
        }
    }

    /// False where no choice among the nodes can do.
    fn may_do(&self, demand: &Demand) -> bool {
        let tasks = match demand.goal {
            Goal::Sum(tasks) => u64::from(tasks),
            Goal::Each(_) => 0,
        };
        self.nodes >= demand.fewest
            && self.tasks >= tasks
            && self.gpus >= u64::from(demand.gpus_in_all)
            && self.required >= demand.required
            && self.with_tasks > 0
            && self.with_gpus > 0
    }
}
