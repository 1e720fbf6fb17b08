//! Packs GPU clusters: each job goes where it does least harm to the jobs that are typical here.
//!
//! Jobs are taken in the order of the queue. Of the nodes with room a job gets the one that loses least by it: GPUs left
//! in pieces that typical requests could not use (the idea of fragmentation gradient descent, USENIX ATC '23), cores out
//! of proportion to GPUs, and resources that are scarce on that type of node for those who can go nowhere else, by a
//! price. What is typical is learnt anew in each cycle from the jobs that wait and run. The first jobs that must wait
//! are promised the earliest start that there is, as in backfilling.

mod classes;
mod config;
mod fleet;
mod node;
mod price;
mod request;
mod score;
mod typical;
mod view;

use classes::Classes;
use ephor_sdk::Row;
use ephor_sdk::scheduling::{Cause, Cycle, Keep, Outcome, Placing, Refusal, Scheduling, Scope, lift_promises};
use view::View;

pub use config::Config;

/// Jobs that the first window asks for, and that a window may grow to.
const WINDOWS: (u32, u32) = (64, 4_096);
/// Nodes that a job is tried on one by one before the host chooses.
const TRIES: u32 = 4;
/// Jobs without a start in sight that are passed over in search of one to promise a start to.
const WITHOUT_START: u32 = 8;
/// Fuel that may go into choosing nodes: for each pending job, each node, and in any case. The rest of what the manifest
/// asks for is for everything else.
const EFFORT: (u64, u64, u64) = (320_000, 250_000, 10_000_000);

/// The policy.
pub struct Packing;

impl Scheduling for Packing {
    type Config = Config;

    fn schedule<C: Cycle>(cycle: &C, config: &Config) {
        // Promises that outlive a cycle are another policy's; nobody would keep them here.
        if lift_promises(cycle).is_err() {
            return;
        }
        let mut classes = Classes::default();
        // Without a view of the nodes jobs start in plain order.
        let view = View::read(cycle, &mut classes, config).ok().flatten();
        let rows = |table| cycle.rows(table).map_or(0, u64::from);
        let (each_job, each_node, base) = EFFORT;
        let mut plan = Plan {
            cycle,
            how: cycle.placing(),
            classes,
            view,
            effort: base + rows("jobs") * each_job + rows("nodes") * each_node,
            promises_left: config.promises,
            without_start: 0,
        };
        plan.run();
    }
}

/// A cycle under way.
struct Plan<'a, C: Cycle> {
    cycle: &'a C,
    how: C::Placing,
    classes: Classes,
    /// `None`: nodes are not followed any more, and the host chooses.
    view: Option<View>,
    effort: u64,
    promises_left: u32,
    without_start: u32,
}

/// What became of a job.
enum Tried {
    Started,
    Waits,
    /// It can never run, or is none of this cycle's.
    PassedOver,
}

impl<C: Cycle> Plan<'_, C> {
    /// Works through the queue, window by window. None: this cycle was over before its end.
    fn run(&mut self) -> Option<()> {
        // Where jobs came and nothing came free, those that waited before still do.
        let only_arrivals = self.cycle.causes().iter().all(|cause| matches!(cause, Cause::Arrived(_)));
        let (mut size, mut scope, mut after) = (WINDOWS.0, Scope::All, None);
        'windows: loop {
            let window = self.cycle.next(scope, after, size);
            let last = *window.last()?;
            let numbers = self.classes.of(self.cycle, &window).ok()?;
            for (&job, number) in window.iter().zip(numbers) {
                if scope == Scope::All && self.promises_left == 0 {
                    scope = if only_arrivals { Scope::Arrived } else { Scope::Awake };
                    continue 'windows;
                }
                if matches!(self.start(job, number)?, Tried::Waits) && self.promises_left > 0 {
                    self.promise(job)?;
                }
                after = Some(job);
            }
            after = Some(last);
            size = (size * 4).min(WINDOWS.1);
        }
    }

    /// Starts a job where it loses least, or wherever it can.
    fn start(&mut self, job: Row, number: i64) -> Option<Tried> {
        if let Some(started) = self.start_on_best(job, number)? {
            return Some(started);
        }
        let outcome = self.cycle.try_start(job, None, &self.how);
        let tried = self.tried(job, &outcome)?;
        if matches!(tried, Tried::Started) {
            let placed = self.cycle.ragged("jobs", "placed", &[job]).map(|(_, nodes)| nodes);
            placed.unwrap_or_default().into_iter().filter_map(|n| Row::try_from(n).ok()).for_each(|n| self.follow(n));
        }
        Some(tried)
    }

    /// Starts a job of one node on the best that there is; `Some(None)`: on none of the first few.
    fn start_on_best(&mut self, job: Row, number: i64) -> Option<Option<Tried>> {
        for _ in 0..TRIES {
            let Some(view) = self.view.as_mut().filter(|view| view.fleet.effort() < self.effort) else {
                self.view = None;
                return Some(None);
            };
            let Some(class) = self.classes.get(number).filter(|class| class.nodes == 1 && !class.full) else {
                return Some(None);
            };
            let open = |node| {
                !class.refused.contains(&node) && class.could_use.as_ref().is_none_or(|nodes| nodes.contains(&node))
            };
            let Some(node) = view.fleet.best(number, &class.request, open) else {
                class.full = true;
                return Some(None);
            };
            let how = self.cycle.placing();
            how.only_nodes(&[node]).ok()?;
            let outcome = self.cycle.try_start(job, None, &how);
            let refused = matches!(outcome, Err(Refusal::NotNow(_)));
            let tried = self.tried(job, &outcome)?;
            if !refused {
                self.follow(node);
                return Some(Some(tried));
            }
            self.refuse(job, number, node);
        }
        Some(None)
    }

    /// A node refused a class: it may lack what this policy does not see, or be promised to others.
    fn refuse(&mut self, job: Row, number: i64, node: Row) {
        let Some(class) = self.classes.get(number) else { return };
        class.refused.insert(node);
        if class.could_use.is_none()
            && let Ok((_, nodes)) = self.cycle.ragged("jobs", "could-use", &[job])
        {
            class.could_use = Some(nodes.into_iter().filter_map(|n| Row::try_from(n).ok()).collect());
        }
    }

    /// Brings a node up to date; where that cannot be, nodes are followed no more.
    fn follow(&mut self, node: Row) {
        if self.view.as_mut().is_some_and(|view| view.refresh(self.cycle, node).is_err()) {
            self.view = None;
        }
    }

    /// What an answer means; `None`: this cycle is over.
    fn tried(&self, job: Row, outcome: &Result<Outcome, Refusal>) -> Option<Tried> {
        match outcome {
            Ok(Outcome::Started | Outcome::Claimed) => Some(Tried::Started),
            Ok(Outcome::Reserved(_)) => Some(Tried::Waits),
            Ok(Outcome::Refused(why)) | Err(why) => match why {
                Refusal::NotNow(_) => Some(Tried::Waits),
                // It waits for a limit or a licence: no room is to be kept for it, and it stands in nobody's way.
                Refusal::Pool(_) => Some(Tried::PassedOver),
                Refusal::Never(why) => {
                    // A note that finds no budget is lost; the host still knows the refusal.
                    let _ = self.cycle.note(job, why);
                    Some(Tried::PassedOver)
                }
                Refusal::Other(_) => Some(Tried::PassedOver),
                Refusal::Budget => None,
            },
            Ok(Outcome::Untried) => None,
        }
    }

    /// Keeps the earliest start of a job free for it; `None`: this cycle is over.
    fn promise(&mut self, job: Row) -> Option<()> {
        match self.cycle.earliest_start(job, None, &self.how, self.cycle.now()) {
            Ok(slot) => {
                self.cycle.reserve(&slot, Keep::ThisCycle).ok()?;
                self.promises_left -= 1;
            }
            Err(Refusal::Budget) => return None,
            // No end that is known would let it start: there is nothing to promise.
            Err(_) => {
                self.without_start += 1;
                if self.without_start >= WITHOUT_START {
                    self.promises_left = 0;
                }
            }
        }
        Some(())
    }
}

ephor_sdk::policy!(Scheduling for Packing { manifest: include_str!("../manifest.json") });
