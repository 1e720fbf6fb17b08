//! The cluster and its slow twin give the same answers over random histories, and a rollback restores the state.

mod slow;

use ephor_model::allocation::Allocation;
use ephor_model::id::{JobId, NodeId};
use ephor_model::time::{Span, Timestamp};
use ephor_placement::{ClassId, Cluster, Mark, Need, NoFit, Placing, ReservationId, Slot, Work};
use proptest::prelude::*;
use slow::brute::Choice;
use slow::sharing::Who;
use slow::twin::Twin;
use slow::world::{Event, World, cases, world};

struct Both {
    cluster: Cluster,
    twin: Twin,
    needs: Vec<(ClassId, Need)>,
    jobs: u64,
    /// Savepoints with the state at each.
    marks: Vec<(Mark, String, Twin)>,
}

impl Both {
    fn of(world: &World) -> Self {
        let mut cluster = Cluster::new();
        let mut twin = Twin::default();
        cluster.advance(Timestamp(0));
        // Half of the classes come before the nodes, half after.
        let half = world.needs.len() / 2;
        world.needs[..half].iter().for_each(|need| _ = cluster.intern(need));
        for (i, view) in world.nodes.iter().enumerate() {
            cluster.set_node(NodeId(i as u32), view.clone());
            twin.nodes.insert(NodeId(i as u32), view.clone());
        }
        let needs = world.needs.iter().map(|need| (cluster.intern(need), need.clone())).collect();
        Self { cluster, twin, needs, jobs: 0, marks: Vec::new() }
    }

    fn check(&mut self, event: &Event) -> Result<(), TestCaseError> {
        match event {
            Event::Start { class, limit, how } => self.start(*class, *limit, how)?,
            Event::Earliest { class, later, by, limit, how, reserve } => {
                self.earliest(*class, (*later, *by), *limit, how, *reserve)?
            }
            Event::Retime(pick, later) => {
                if let Some(job) = nth(self.twin.running.keys(), *pick) {
                    let until = self.twin.now + later;
                    self.twin.running.get_mut(&job).expect("a key of it").1 = until;
                    self.cluster.retime(job, Timestamp(until));
                }
            }
            Event::Lift(pick) => {
                if let Some(id) = nth(self.twin.reservations.keys(), *pick) {
                    self.twin.leave(Who::Reservation(id));
                    self.twin.reservations.remove(&id);
                    prop_assert!(self.cluster.lift(ReservationId(id)));
                    prop_assert!(!self.cluster.lift(ReservationId(id)));
                }
            }
            Event::Savepoint => {
                let mark = self.cluster.savepoint();
                self.marks.push((mark, format!("{:?}", self.cluster), self.twin.clone()));
            }
            Event::Rollback(pick) => {
                if !self.marks.is_empty() {
                    self.marks.truncate(pick % self.marks.len() + 1);
                    let (mark, state, twin) = self.marks.pop().expect("one is left");
                    self.cluster.rollback(mark);
                    self.twin = twin;
                    prop_assert_eq!(format!("{:?}", self.cluster), state);
                }
            }
            fact => {
                self.cluster.forget_undo();
                self.marks.clear();
                self.fact(fact);
            }
        }
        self.ever()
    }

    fn start(&mut self, class: usize, limit: Span, how: &Placing) -> Result<(), TestCaseError> {
        let (class, need) = self.needs[class % self.needs.len()].clone();
        let now = self.twin.now;
        let job = JobId(self.jobs);
        self.jobs += 1;
        let expected = self.twin.place(&need, now, limit, how);
        let before = format!("{:?}", self.cluster);
        let found = self.cluster.try_start(job, class, Timestamp(now), limit, how, &mut Work(100_000));
        match (&found, &expected) {
            (Ok(allocation), Some(choice)) => {
                same_choice(allocation, choice)?;
                let until = now.saturating_add(limit.0.max(1));
                for part in allocation.parts.iter().filter(|p| p.share().is_some()) {
                    let right = |kind: &str| need.request.takes_gpu_type(kind);
                    prop_assert!(self.twin.share(job, part, right, until), "shares in {part:?}");
                }
                self.twin.start(job, allocation, until);
            }
            (Err(why), None) => {
                prop_assert_eq!(matches!(why, NoFit::Never(_)), !self.twin.ever(&need), "{}", why);
                prop_assert_eq!(format!("{:?}", self.cluster), before);
            }
            _ => prop_assert!(false, "started as {found:?}, expected {expected:?}"),
        }
        Ok(())
    }

    fn earliest(
        &mut self,
        class: usize,
        (later, by): (i64, Option<i64>),
        limit: Span,
        how: &Placing,
        reserve: bool,
    ) -> Result<(), TestCaseError> {
        let (class, need) = self.needs[class % self.needs.len()].clone();
        let from = self.twin.now + later;
        let by = by.map(|by| from.max(self.twin.now) + by);
        let in_time = |(start, _): &(i64, Choice)| by.is_none_or(|by| *start <= by);
        let expected = self.twin.earliest(&need, from, limit, how).filter(in_time);
        let before = format!("{:?}", self.cluster);
        let work = &mut Work(100_000);
        let found = match by {
            None => self.cluster.earliest_start(class, Timestamp(from), limit, how, work),
            Some(by) => self.cluster.start_between(class, (Timestamp(from), Timestamp(by)), limit, how, work),
        };
        prop_assert_eq!(format!("{:?}", self.cluster), before);
        match (&found, &expected) {
            (Ok(slot), Some((start, choice))) => {
                prop_assert_eq!(slot.start.0, *start);
                same_choice(&slot.allocation, choice)?;
                prop_assert!(self.cluster.is_free(slot));
                if reserve {
                    self.reserve(slot);
                }
            }
            (Err(why), None) => prop_assert_eq!(matches!(why, NoFit::Never(_)), !self.twin.ever(&need), "{}", why),
            _ => prop_assert!(false, "found {found:?}, expected {expected:?}"),
        }
        Ok(())
    }

    fn reserve(&mut self, slot: &Slot) {
        let id = self.cluster.reserve(slot);
        let until = slot.start.0.saturating_add(slot.duration.0.max(1));
        self.twin.reservations.insert(id.0, (slot.allocation.as_ref().clone(), slot.start.0, until));
        self.twin.join(id.0);
    }

    fn fact(&mut self, fact: &Event) {
        match fact {
            Event::Advance(by) => {
                self.twin.now += by;
                self.cluster.advance(Timestamp(self.twin.now));
            }
            Event::Vacate(pick) => {
                if let Some(job) = nth(self.twin.running.keys(), *pick) {
                    self.twin.leave(Who::Job(job));
                    self.twin.running.remove(&job);
                    self.cluster.vacate(job);
                }
            }
            Event::Extend(pick, later) => {
                if let Some(job) = nth(self.twin.running.keys(), *pick) {
                    let until = self.twin.now + later;
                    self.twin.running.get_mut(&job).expect("a key of it").1 = until;
                    self.cluster.extend(job, Timestamp(until));
                }
            }
            Event::Turn(pick) => {
                if let Some(id) = nth(self.twin.nodes.keys(), *pick) {
                    let view = self.twin.nodes.get_mut(&id).expect("a key of it");
                    view.up = !view.up;
                    self.cluster.set_node(id, view.clone());
                }
            }
            Event::Change(pick, view) => {
                let id = NodeId(*pick as u32 % 7);
                let mut view = view.clone();
                view.name = slow::world::name(id.0 as usize);
                self.twin.nodes.insert(id, view.clone());
                self.cluster.set_node(id, view);
            }
            Event::Leave(pick) => {
                if let Some(id) = nth(self.twin.nodes.keys(), *pick) {
                    self.twin.nodes.remove(&id);
                    self.cluster.remove_node(id);
                }
            }
            _ => {}
        }
    }

    fn ever(&mut self) -> Result<(), TestCaseError> {
        for (class, need) in &self.needs {
            let verdict = self.cluster.ever(*class);
            prop_assert_eq!(verdict.is_ok(), self.twin.ever(need), "{:?}", verdict);
        }
        Ok(())
    }
}

/// Same nodes and tasks; where several choices are as good, as many nodes.
fn same_choice(allocation: &Allocation, choice: &Choice) -> Result<(), TestCaseError> {
    let nodes: Vec<NodeId> = allocation.parts.iter().map(|p| p.node).collect();
    let tasks: Vec<u32> = allocation.parts.iter().map(|p| p.tasks).collect();
    if choice.only_one {
        prop_assert_eq!((&nodes, &tasks), (&choice.nodes, &choice.tasks));
    }
    prop_assert_eq!(nodes.len(), choice.nodes.len());
    Ok(())
}

fn nth<'a, T: Copy + 'a>(mut items: impl ExactSizeIterator<Item = &'a T>, pick: usize) -> Option<T> {
    let count = items.len();
    if count == 0 { None } else { items.nth(pick % count).copied() }
}

proptest! {
    #![proptest_config(cases(12_000))]

    #[test]
    fn the_cluster_agrees_with_its_twin(world in world(true)) {
        let mut both = Both::of(&world);
        for event in &world.events {
            both.check(event)?;
        }
    }
}
