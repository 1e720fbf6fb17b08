//! Whatever is planned, nothing is held twice at any time, and each job gets what it asked for.

mod slow;

use ephor_model::allocation::Allocation;
use ephor_model::id::{JobId, NodeId};
use ephor_model::time::Timestamp;
use ephor_placement::{ClassId, Cluster, Mark, Need, NodeView, ReservationId, Work};
use proptest::prelude::*;
use slow::audit::{Held, answers, nothing_twice};
use slow::world::{Event, World, cases, world};
use std::collections::BTreeMap;

/// What the auditor has seen: its own books, kept from the answers alone.
#[derive(Clone, Default)]
struct Books {
    running: BTreeMap<JobId, (Allocation, i64)>,
    reserved: BTreeMap<ReservationId, (Allocation, i64, i64)>,
}

struct Audit {
    cluster: Cluster,
    nodes: BTreeMap<NodeId, NodeView>,
    needs: Vec<(ClassId, Need)>,
    now: i64,
    jobs: u64,
    books: Books,
    marks: Vec<(Mark, Books)>,
}

impl Audit {
    fn of(world: &World) -> Self {
        let mut cluster = Cluster::new();
        cluster.advance(Timestamp(0));
        let numbered = world.nodes.iter().enumerate().map(|(i, view)| (NodeId(i as u32), view.clone()));
        let nodes: BTreeMap<NodeId, NodeView> = numbered.collect();
        nodes.iter().for_each(|(id, view)| cluster.set_node(*id, view.clone()));
        let needs = world.needs.iter().map(|need| (cluster.intern(need), need.clone())).collect();
        Self { cluster, nodes, needs, now: 0, jobs: 0, books: Books::default(), marks: Vec::new() }
    }

    fn step(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::Start { class, limit, how } => {
                let (class, need) = self.needs[class % self.needs.len()].clone();
                let job = JobId(self.jobs);
                self.jobs += 1;
                let work = &mut Work(100_000);
                if let Ok(allocation) = self.cluster.try_start(job, class, Timestamp(self.now), *limit, how, work) {
                    answers(&need, &self.nodes, &allocation)?;
                    let until = self.now.saturating_add(limit.0.max(1));
                    self.books.running.insert(job, (allocation.as_ref().clone(), until));
                }
            }
            Event::Retime(pick, later) if !self.books.running.is_empty() => {
                // Nobody is told to go on for longer: that could meet a reservation.
                let jobs: Vec<JobId> = self.books.running.keys().copied().collect();
                let job = jobs[pick % jobs.len()];
                let until = &mut self.books.running.get_mut(&job).expect("a key of it").1;
                *until = (*until).min(self.now + later.max(&1));
                self.cluster.retime(job, Timestamp(*until));
            }
            Event::Earliest { class, later, by, limit, how, reserve } => {
                let (class, need) = self.needs[class % self.needs.len()].clone();
                let (from, work) = (Timestamp(self.now + later), &mut Work(100_000));
                let by = by.map_or(Timestamp::NEVER, |by| Timestamp(self.now + later + by));
                if let Ok(slot) = self.cluster.start_between(class, (from, by), *limit, how, work)
                    && *reserve
                {
                    answers(&need, &self.nodes, &slot.allocation)?;
                    let id = self.cluster.reserve(&slot);
                    let until = slot.start.0.saturating_add(limit.0.max(1));
                    self.books.reserved.insert(id, (slot.allocation.as_ref().clone(), slot.start.0, until));
                }
            }
            Event::Lift(pick) => {
                let ids: Vec<ReservationId> = self.books.reserved.keys().copied().collect();
                if !ids.is_empty() {
                    self.books.reserved.remove(&ids[pick % ids.len()]);
                    self.cluster.lift(ids[pick % ids.len()]);
                }
            }
            Event::Savepoint => self.marks.push((self.cluster.savepoint(), self.books.clone())),
            Event::Rollback(pick) if !self.marks.is_empty() => {
                self.marks.truncate(pick % self.marks.len() + 1);
                if let Some((mark, books)) = self.marks.pop() {
                    self.cluster.rollback(mark);
                    self.books = books;
                }
            }
            Event::Vacate(pick) if !self.books.running.is_empty() => {
                self.end_plan();
                let jobs: Vec<JobId> = self.books.running.keys().copied().collect();
                self.books.running.remove(&jobs[pick % jobs.len()]);
                self.cluster.vacate(jobs[pick % jobs.len()]);
            }
            Event::Advance(by) => {
                // Jobs end in time here: one that goes on is a fact that can meet a reservation.
                self.end_plan();
                self.now += by;
                let over = |until: &i64| *until <= self.now;
                let ended: Vec<JobId> =
                    self.books.running.iter().filter(|(_, (_, u))| over(u)).map(|(j, _)| *j).collect();
                for job in ended {
                    self.cluster.vacate(job);
                    self.books.running.remove(&job);
                }
                self.cluster.advance(Timestamp(self.now));
            }
            _ => {}
        }
        self.audit()
    }

    fn end_plan(&mut self) {
        self.cluster.forget_undo();
        self.marks.clear();
    }

    fn audit(&self) -> Result<(), String> {
        let running = self.books.running.values();
        let running = running.map(|(allocation, until)| Held { from: self.now, until: *until, allocation, runs: true });
        let reserved = self.books.reserved.values();
        let reserved =
            reserved.map(|(allocation, from, until)| Held { from: *from, until: *until, allocation, runs: false });
        nothing_twice(&self.nodes, &running.chain(reserved).collect::<Vec<_>>())
    }
}

proptest! {
    #![proptest_config(cases(12_000))]

    #[test]
    fn nothing_is_held_twice(world in world(false)) {
        let mut audit = Audit::of(&world);
        for event in &world.events {
            audit.step(event).map_err(TestCaseError::fail)?;
        }
    }
}
