//! Looks for the fewest victims that make room for one job, tries every step on the cycle's copy, and keeps it whole or
//! not at all.

use std::cell::RefCell;
use std::collections::BTreeMap;

use ephor_sdk::Row;
use ephor_sdk::scheduling::{Afterwards, Cycle, Outcome, Placing, Refusal};

use crate::pass::Pass;
use crate::tree::{Amounts, Place};
use crate::victims::Picker;
use crate::world::Job;

/// Victims that are tried to be spared one by one, at most.
const SPARED: usize = 64;

/// What became of a search.
#[derive(Clone, Debug)]
pub enum Room {
    /// The job has room; these running jobs lose theirs, or have other room.
    Found(Found),
    /// There is none, whoever goes.
    Impossible,
    /// The work units ended before that was known.
    Ended,
}

/// Running jobs by their place in the world.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// They go, and wait again.
    pub gone: Vec<usize>,
    /// They go, and have other room.
    pub moved: Vec<usize>,
}

/// Whether it is fair that those lose their room for good, in this order.
pub type Fair<'a> = dyn Fn(&[usize]) -> bool + 'a;

/// When a search is good.
#[derive(Clone, Copy)]
pub enum Goal<'a> {
    /// Everybody who goes has other room. At most so many go; `None`: no bound.
    MoveAll(Option<usize>),
    /// What others lose is fair.
    TakeBack(&'a Fair<'a>),
    /// The job has room.
    Preempt,
}

/// Why a search ends without room.
enum Stop {
    Impossible,
    Ended,
}

/// A search under way. An open savepoint is at its base all the time.
struct Search<'a, C: Cycle> {
    pass: &'a Pass<'a, C>,
    job: &'a Job,
    goal: Goal<'a>,
    base: u32,
    /// Work ends where so many units are left.
    floor: u64,
    /// What is said to victims that are alike: of the same leaf and class, with the same amounts.
    texts: RefCell<BTreeMap<(Place, Amounts, i64), String>>,
}

/// Looks for room for a job; every candidate comes from the picker, in its order. Work ends where `floor` units are left.
pub fn find<C: Cycle>(pass: &Pass<'_, C>, job: &Job, picker: &mut Picker<'_>, goal: Goal<'_>, floor: u64) -> Room {
    let base = pass.cycle.savepoint();
    let mut search = Search { pass, job, goal, base, floor, texts: RefCell::default() };
    match search.run(picker) {
        Ok(found) if pass.cycle.accept(search.base).is_ok() => Room::Found(found),
        Ok(_) => Room::Ended,
        Err(stop) => {
            // It is open: nothing else closes it.
            let _ = pass.cycle.rollback(search.base);
            match stop {
                Stop::Impossible => Room::Impossible,
                Stop::Ended => Room::Ended,
            }
        }
    }
}

impl<C: Cycle> Search<'_, C> {
    fn run(&mut self, picker: &mut Picker<'_>) -> Result<Found, Stop> {
        // What others left behind in this cycle may do.
        if self.pass.freed && self.fits(None)? {
            return Ok(Found::default());
        }
        let mut order = self.first(picker)?;
        let least = order.len();
        let mut evicted = 0;
        loop {
            let needed = self.fewest(&mut order, evicted, least, picker)?;
            let set = self.spare(&order[..needed])?;
            if let Some(found) = self.place_again(&set)? {
                return Ok(found);
            }
            if matches!(self.goal, Goal::Preempt) {
                return Err(Stop::Impossible);
            }
            // The last one opened a place that costs others too much: look for another one.
            order.remove(needed - 1);
            evicted = needed - 1;
            self.again()?;
            self.evict(&order[..evicted])?;
        }
    }

    /// As many as it takes at least, by what there is in all.
    fn first(&self, picker: &mut Picker<'_>) -> Result<Vec<usize>, Stop> {
        let mut room = self.pass.free;
        if matches!(self.goal, Goal::MoveAll(_)) && !covers(&room, &self.job.amounts) {
            return Err(Stop::Impossible);
        }
        let mut order = Vec::new();
        while order.is_empty() || !covers(&room, &self.job.amounts) {
            let next = picker.next().ok_or(Stop::Impossible)?;
            add(&mut room, &self.pass.world.running[next].amounts, 1);
            order.push(next);
        }
        Ok(order)
    }

    /// How many of the order have to go for the job to fit, where the first `evicted` are gone already and not enough,
    /// and fewer than `least` cannot be; more are taken from the picker. Afterwards they are gone and the job is placed.
    fn fewest(
        &self,
        order: &mut Vec<usize>,
        evicted: usize,
        least: usize,
        picker: &mut Picker<'_>,
    ) -> Result<usize, Stop> {
        let (mut low, mut step) = (evicted, 1);
        let mut mark;
        loop {
            let many = if low == evicted && order.len() > low { order.len() } else { low + step };
            while order.len() < many {
                let Some(next) = picker.next() else { break };
                order.push(next);
            }
            if order.len() == low {
                return Err(Stop::Impossible);
            }
            mark = self.pass.cycle.savepoint();
            self.evict(&order[low..])?;
            if self.fits(None)? {
                break;
            }
            low = order.len();
            step *= 2;
        }
        let (mut high, mut placed) = (order.len(), true);
        while high - low > 1 && high > least {
            if placed {
                self.rollback(mark)?;
            }
            let middle = low + (high - low) / 2;
            mark = self.pass.cycle.savepoint();
            self.evict(&order[low..middle])?;
            placed = self.fits(None)?;
            *if placed { &mut high } else { &mut low } = middle;
        }
        if !placed {
            self.evict(&order[low..high])?;
            if !self.fits(None)? {
                return Err(Stop::Impossible);
            }
        }
        Ok(high)
    }

    /// Of those that are gone the ones that have to be for the place that the job got; nobody goes in vain.
    fn spare(&mut self, order: &[usize]) -> Result<Vec<usize>, Stop> {
        if order.len() == 1 {
            return Ok(order.to_vec());
        }
        let nodes = self.placed()?;
        let there = |at: &usize| {
            let on = &self.pass.world.running[*at].nodes;
            on.iter().any(|node| nodes.binary_search(node).is_ok())
        };
        let mut set: Vec<usize> = order.iter().copied().filter(there).collect();
        self.again()?;
        let free = self.free_on(&nodes)?;
        self.evict(&set)?;
        if !self.fits(Some(&nodes))? {
            // Not only for room: a limit of a queue, say.
            self.again()?;
            self.evict(order)?;
            return if self.fits(None)? { Ok(order.to_vec()) } else { Err(Stop::Impossible) };
        }
        let amounts = |victim: usize| &self.pass.world.running[victim].amounts;
        let mut room = free;
        set.iter().for_each(|victim| add(&mut room, amounts(*victim), 1));
        let (mut placed, mut tries) = (true, 0);
        for at in (0..set.len()).rev() {
            let mut without = room;
            add(&mut without, amounts(set[at]), -1);
            if !covers(&without, &self.job.amounts) {
                continue;
            }
            if tries == SPARED {
                break;
            }
            tries += 1;
            let mut others = set.clone();
            others.remove(at);
            self.again()?;
            self.evict(&others)?;
            placed = self.fits(Some(&nodes))?;
            if placed {
                (set, room) = (others, without);
            }
        }
        if !placed {
            self.again()?;
            self.evict(&set)?;
            if !self.fits(Some(&nodes))? {
                return Err(Stop::Impossible);
            }
        }
        Ok(set)
    }

    /// Finds other room for those that are gone, the last one first, and looks whether the whole is good.
    fn place_again(&self, set: &[usize]) -> Result<Option<Found>, Stop> {
        let world = &self.pass.world;
        let mut room = self.pass.free;
        set.iter().for_each(|at| add(&mut room, &world.running[*at].amounts, 1));
        add(&mut room, &self.job.amounts, -1);
        let mut found = Found::default();
        for at in set.iter().rev() {
            let running = &world.running[*at];
            let moved = covers(&room, &running.amounts) && self.re_place(running.row)?;
            if moved {
                add(&mut room, &running.amounts, -1);
            }
            if moved { &mut found.moved } else { &mut found.gone }.push(*at);
        }
        let good = match self.goal {
            Goal::MoveAll(most) => found.gone.is_empty() && most.is_none_or(|most| set.len() <= most),
            Goal::TakeBack(fair) => {
                found.gone.reverse();
                fair(&found.gone)
            }
            Goal::Preempt => true,
        };
        Ok(good.then_some(found))
    }

    fn re_place(&self, row: Row) -> Result<bool, Stop> {
        self.look()?;
        match self.pass.cycle.re_place(row, &self.pass.how) {
            Ok(Outcome::Started | Outcome::Claimed | Outcome::Reserved(_)) => Ok(true),
            Err(Refusal::Budget) | Ok(Outcome::Refused(Refusal::Budget)) => Err(Stop::Ended),
            _ => Ok(false),
        }
    }

    /// Whether the job can be placed now, or as soon as those that go are gone; then it is.
    fn fits(&self, only: Option<&[Row]>) -> Result<bool, Stop> {
        self.look()?;
        let how;
        let how = match only {
            None => &self.pass.how,
            Some(nodes) => {
                how = self.pass.cycle.placing();
                how.may_claim(true);
                how.only_nodes(nodes).map_err(stop)?;
                &how
            }
        };
        let refusal = match self.pass.cycle.try_start(self.job.row, None, how) {
            Ok(Outcome::Started | Outcome::Claimed) => return Ok(true),
            Ok(Outcome::Reserved(_) | Outcome::Untried) => return Ok(false),
            Ok(Outcome::Refused(refusal)) | Err(refusal) => refusal,
        };
        match refusal {
            // Those that go may have held what a limit allows.
            Refusal::NotNow(_) | Refusal::Pool(_) => Ok(false),
            Refusal::Never(_) if only.is_some() => Ok(false),
            Refusal::Never(_) | Refusal::Other(_) => Err(Stop::Impossible),
            Refusal::Budget => Err(Stop::Ended),
        }
    }

    /// The nodes that the job got.
    fn placed(&self) -> Result<Vec<Row>, Stop> {
        let (_, nodes) = self.pass.cycle.ragged("jobs", "placed", &[self.job.row]).map_err(stop)?;
        let mut nodes: Vec<Row> = nodes.iter().filter_map(|n| Row::try_from(*n).ok()).collect();
        nodes.sort_unstable();
        Ok(nodes)
    }

    fn free_on(&self, nodes: &[Row]) -> Result<Amounts, Stop> {
        let mut free = Amounts::default();
        for (at, resource) in self.pass.config.resources.iter().enumerate() {
            let column = self.pass.cycle.column("nodes", &format!("free.{}", resource.name), Some(nodes));
            free[at] = column.map_err(stop)?.iter().sum();
        }
        Ok(free)
    }

    fn evict(&self, victims: &[usize]) -> Result<(), Stop> {
        let (grace, mut texts) = (self.pass.config.grace(), self.texts.borrow_mut());
        for at in victims {
            let victim = &self.pass.world.running[*at];
            let alike = (victim.leaf, victim.amounts, victim.turn.class);
            let why = texts.entry(alike).or_insert_with(|| self.pass.why(self.goal, self.job, victim));
            self.pass.cycle.evict(victim.row, grace, Afterwards::Requeue, why).map_err(stop)?;
        }
        Ok(())
    }

    /// Everything is as it was when the search began.
    fn again(&mut self) -> Result<(), Stop> {
        self.rollback(self.base)?;
        self.base = self.pass.cycle.savepoint();
        Ok(())
    }

    fn rollback(&self, mark: u32) -> Result<(), Stop> {
        self.pass.cycle.rollback(mark).map_err(stop)
    }

    fn look(&self) -> Result<(), Stop> {
        if self.pass.cycle.budget() > self.floor { Ok(()) } else { Err(Stop::Ended) }
    }
}

fn stop(refusal: Refusal) -> Stop {
    if matches!(refusal, Refusal::Budget) { Stop::Ended } else { Stop::Impossible }
}

fn covers(room: &Amounts, asked: &Amounts) -> bool {
    room.iter().zip(asked).all(|(room, asked)| room >= asked)
}

fn add(sum: &mut Amounts, amounts: &Amounts, sign: i64) {
    sum.iter_mut().zip(amounts).for_each(|(sum, amount)| *sum += sign * amount);
}
