//! One cycle under way: what all its steps share.

use std::collections::{BTreeMap, BTreeSet};

use ephor_sdk::Row;
use ephor_sdk::scheduling::{Cause, Cycle, Placing, Refusal};

use crate::config::{Action, Config};
use crate::order::Waiting;
use crate::search::{Found, Goal, Room};
use crate::tree::{Amounts, Headroom, Place};
use crate::victims::Pools;
use crate::words::Words;
use crate::world::{End, Job, Running, World};
use crate::{allocate, consolidate, preempt, reclaim};

/// How often shares are worked out anew where past use counts: as often as the ledger fades.
const SHARES_MOVE_MS: i64 = 300_000;
/// Jobs of which more than the host knows is said to their users, in a cycle.
const NOTES: usize = 2_000;

/// See the module.
pub struct Pass<'a, C: Cycle> {
    pub(crate) cycle: &'a C,
    pub(crate) config: &'a Config,
    pub(crate) words: Words<'a>,
    pub(crate) world: World,
    /// Packs, and takes what is being given back.
    pub(crate) how: C::Placing,
    /// Everything that is free or about to be: never less than what can be had without asking anybody to go.
    pub(crate) free: Amounts,
    /// A search left something free behind.
    pub(crate) freed: bool,
    pub(crate) all_shared: bool,
    now: i64,
    /// When something ends by itself that keeps others from giving way.
    wake_at: Option<i64>,
    /// Jobs that have room or cannot have it in this cycle.
    gone: BTreeSet<usize>,
    /// Running jobs that were asked to go.
    asked: BTreeSet<usize>,
    /// Rows of the jobs whose users hear anew what stands against them; `None`: all. A job of which nothing is said keeps
    /// what was said of it before.
    told: Option<BTreeSet<Row>>,
    /// What is to be said to the users of jobs that wait.
    notes: BTreeMap<usize, (Weight, String)>,
}

/// Jobs that ask for the same and may take from the same: what one of them does not find, the others do not either.
type Alike = (Place, i64, i64, bool);

fn alike(job: &Job) -> Alike {
    (job.leaf, job.class, job.turn.class, job.gives_way)
}

/// The rows of those who came, where nothing else happened than that jobs came and went.
fn who_came(causes: &[Cause]) -> Option<BTreeSet<Row>> {
    let came = |cause: &Cause| match cause {
        Cause::Arrived(row) => Some(Some(*row)),
        Cause::Released | Cause::ReleasedEarly => Some(None),
        _ => None,
    };
    let rows: Option<Vec<Option<Row>>> = causes.iter().map(came).collect();
    rows.filter(|rows| !rows.is_empty()).map(|rows| rows.into_iter().flatten().collect())
}

/// Which of several things is said of a job: the last of these.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Weight {
    Nobody,
    Barred,
    Ended,
}

/// What came of a look at a job.
pub enum Looked {
    /// This step is not for it.
    Not,
    /// A rule stands against it, in words for its user.
    Barred(String),
    /// A search.
    For(Room),
}

impl<'a, C: Cycle> Pass<'a, C> {
    /// With nothing done yet.
    pub fn new(cycle: &'a C, config: &'a Config, words: Words<'a>, world: World) -> Self {
        let how = cycle.placing();
        how.may_claim(true);
        let mut free = world.free;
        for running in world.running.iter().filter(|r| r.end == End::Soon) {
            free.iter_mut().zip(running.amounts).for_each(|(sum, more)| *sum += more);
        }
        Self {
            cycle,
            config,
            words,
            how,
            free,
            freed: false,
            all_shared: config.shares_all(),
            now: cycle.now(),
            wake_at: None,
            gone: BTreeSet::new(),
            asked: BTreeSet::new(),
            told: who_came(&cycle.causes()),
            notes: BTreeMap::new(),
            world,
        }
    }

    /// Does every step that is set.
    ///
    /// # Errors
    /// The work of the call is used up; what was done stands.
    pub fn run(&mut self) -> Result<(), Refusal> {
        self.report()?;
        let searches = self.searches_now();
        let done = self.config.actions.iter().try_for_each(|action| match action {
            Action::Allocate => allocate::allocate(self),
            _ if !searches => Ok(()),
            Action::Consolidate => consolidate::consolidate(self),
            Action::Reclaim => reclaim::reclaim(self),
            Action::Preempt => preempt::preempt(self),
        });
        for (at, (_, text)) in std::mem::take(&mut self.notes) {
            if !self.gone.contains(&at) {
                self.cycle.note(self.world.jobs[at].row, &text)?;
            }
        }
        if self.gone.len() < self.cycle.rows("jobs")? as usize {
            self.ask_for_a_call()?;
        }
        done
    }

    /// Whether others may be asked to move or go in this cycle. Where that is only to be from time to time, it is not while
    /// jobs just come and go; then a call is asked for at the next full period, which no other call moves.
    fn searches_now(&mut self) -> bool {
        let period = self.config.search_every_s * 1_000;
        let now = period == 0 || self.told.is_none();
        if !now && self.world.running.iter().any(|running| running.gives_way) {
            self.ends_at((self.now.div_euclid(period) + 1) * period);
        }
        now
    }

    /// While somebody waits: when a delay or a least run time ends, and from time to time where past use counts, which moves
    /// shares without anything else happening.
    fn ask_for_a_call(&self) -> Result<(), Refusal> {
        let shares_move = (self.config.k_thousandths > 0).then_some(self.now + SHARES_MOVE_MS);
        match self.wake_at.into_iter().chain(shares_move).min() {
            Some(at) => self.cycle.wake_at(at),
            None => Ok(()),
        }
    }

    /// Something that stands against others giving way ends at that time.
    fn ends_at(&mut self, at: i64) {
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Tells people the fair shares.
    fn report(&self) -> Result<(), Refusal> {
        let tree = &self.world.tree;
        let (rows, places): (Vec<Row>, Vec<Place>) =
            (1..tree.nodes.len()).filter_map(|place| Some((tree.nodes[place].row? as Row, place))).unzip();
        for (at, resource) in self.config.resources.iter().enumerate() {
            let shares: Vec<i64> = places.iter().map(|place| tree.nodes[*place].fair[at]).collect();
            match self.cycle.report("queues", &format!("fair.{}", resource.name), &rows, &shares) {
                // The host shows no shares of that resource.
                Ok(()) | Err(Refusal::Other(_)) => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(())
    }

    /// Waiting jobs in order, without those that something stands against which their users know. `limits` tells whether
    /// limits of queues count: whoever goes makes room below them.
    pub fn waiting(&self, limits: bool) -> Waiting {
        let tree = &self.world.tree;
        let headroom: Vec<Headroom> = (0..tree.nodes.len()).map(|place| tree.headroom(place)).collect();
        let wanted = |at: usize, job: &Job| {
            let room = &headroom[job.leaf];
            let barred =
                limits && !room.within_limits(&job.amounts) || !job.gives_way && !room.within_quotas(&job.amounts);
            !self.gone.contains(&at) && (!barred || self.hears(job))
        };
        Waiting::new(tree, self.world.by_leaf(wanted), self.all_shared)
    }

    fn hears(&self, job: &Job) -> bool {
        self.told.as_ref().is_none_or(|told| told.contains(&job.row))
    }

    /// Whether a job may have room at all: one that gives way to nobody never holds more than a quota, of its queue and
    /// of each above. If not it is held, and its user told.
    ///
    /// # Errors
    /// The host refused to hold it.
    pub fn within_quota(&mut self, at: usize) -> Result<bool, Refusal> {
        let job = &self.world.jobs[at];
        let tree = &self.world.tree;
        if job.gives_way || tree.headroom(job.leaf).within_quotas(&job.amounts) {
            return Ok(true);
        }
        if self.hears(job) {
            let lacks = |place: Place| {
                let node = &tree.nodes[place];
                let lacks = |r: &usize| job.amounts[*r] > 0 && node.fixed[*r] + job.amounts[*r] > node.queue.quota[*r];
                Some((node, node.row?, (0..tree.resources).find(lacks)?))
            };
            if let Some((node, row, resource)) = tree.path(job.leaf).find_map(lacks) {
                let text = self.words.over_quota(node, row, resource, job.amounts[resource]);
                self.cycle.hold(job.row, &text)?;
            }
        }
        self.gone.insert(at);
        Ok(false)
    }

    /// Writes down that a job has room.
    pub fn placed(&mut self, at: usize) {
        let job = &self.world.jobs[at];
        self.world.tree.hold(job.leaf, &job.amounts, job.gives_way, 1);
        self.free.iter_mut().zip(job.amounts).for_each(|(free, taken)| *free -= taken);
        self.gone.insert(at);
    }

    /// Running jobs that may be asked to go, after they ran for so many seconds.
    pub fn candidates(&mut self, min_runtime: i64) -> Pools {
        let gives_way = |at: &usize| {
            let running = &self.world.running[*at];
            running.gives_way && running.end == End::Open && !self.asked.contains(at)
        };
        let protected_until = |at: &usize| self.world.running[*at].started.saturating_add(min_runtime * 1_000);
        let all = (0..self.world.running.len()).filter(gives_way);
        let (may_go, protected): (Vec<usize>, Vec<usize>) = all.partition(|at| protected_until(at) <= self.now);
        if let Some(first) = protected.iter().map(protected_until).min() {
            self.ends_at(first);
        }
        Pools::new(&self.world, may_go.into_iter())
    }

    /// Looks at each waiting job in order, until the work for this step ends.
    ///
    /// # Errors
    /// The work of the call is used up.
    pub fn for_each(
        &mut self,
        mut pools: Pools,
        look: impl Fn(&Self, &Job, &Pools, u64) -> Looked,
    ) -> Result<(), Refusal> {
        if pools.is_empty() && !self.freed {
            return Ok(());
        }
        let least = self.cycle.budget().saturating_sub(self.config.work_per_action);
        self.world.read_all(self.cycle, self.config)?;
        let mut waiting = self.waiting(false);
        // Jobs alike find nothing either.
        let mut vain: BTreeSet<Alike> = BTreeSet::new();
        while let Some((leaf, at)) = waiting.take() {
            if pools.is_empty() && !self.freed {
                break;
            }
            let job = self.world.jobs[at];
            let looked = if let Some(text) = self.too_early(&job) {
                Looked::Barred(text)
            } else if self.within_quota(at)? {
                let floor = least.max(self.cycle.budget().saturating_sub(self.config.work_per_job));
                look(self, &job, &pools, floor)
            } else {
                Looked::Not
            };
            match looked {
                Looked::Not => {}
                Looked::Barred(text) => self.note(at, Weight::Barred, text),
                Looked::For(Room::Impossible) => {
                    self.note(at, Weight::Nobody, self.words.nobody());
                    vain.insert(alike(&job));
                }
                Looked::For(Room::Ended) => {
                    self.note(at, Weight::Ended, self.words.ended());
                    if self.cycle.budget() <= least {
                        break;
                    }
                }
                Looked::For(Room::Found(found)) => self.found(at, &found, &mut pools, &mut waiting),
            }
            while let Some(next) = waiting.next_of(leaf).filter(|next| vain.contains(&alike(&self.world.jobs[*next]))) {
                waiting.pass_over(leaf);
                if self.hears(&self.world.jobs[next]) {
                    self.note(next, Weight::Nobody, self.words.nobody());
                }
            }
            waiting.moved(&self.world.tree, leaf);
        }
        if self.cycle.budget() == 0 { Err(Refusal::Budget) } else { Ok(()) }
    }

    fn found(&mut self, at: usize, found: &Found, pools: &mut Pools, waiting: &mut Waiting) {
        for victim in &found.gone {
            let Running { leaf, amounts, gives_way, .. } = &self.world.running[*victim];
            let (leaf, amounts) = (*leaf, *amounts);
            self.world.tree.hold(leaf, &amounts, *gives_way, -1);
            self.free.iter_mut().zip(amounts).for_each(|(free, more)| *free += more);
            self.freed = true;
            waiting.moved(&self.world.tree, leaf);
        }
        for set in [&found.gone, &found.moved] {
            pools.remove(&self.world, set);
            self.asked.extend(set.iter().copied());
        }
        self.placed(at);
    }

    /// Why others do not give way for a job yet.
    fn too_early(&mut self, job: &Job) -> Option<String> {
        let waited = self.now.saturating_sub(job.eligible);
        let left = self.config.preemption_delay_s * 1_000 - waited;
        if left <= 0 {
            return None;
        }
        self.ends_at(self.now + left);
        Some(self.words.too_early((left + 999) / 1_000))
    }

    fn note(&mut self, at: usize, weight: Weight, text: String) {
        let known = self.notes.get(&at);
        if known.map_or(self.notes.len() < NOTES, |(old, _)| *old < weight) {
            self.notes.insert(at, (weight, text));
        }
    }

    /// Why a running job goes, for its user.
    pub fn why(&self, goal: Goal<'_>, job: &Job, victim: &Running) -> String {
        let tree = &self.world.tree;
        match goal {
            Goal::MoveAll(_) => self.words.moved(job),
            Goal::TakeBack(_) => self.words.reclaimed(tree, job, victim),
            Goal::Preempt => self.words.preempted(job, victim),
        }
    }
}
