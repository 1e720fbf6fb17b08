//! Making reservations: when, on which nodes, for whom.

use super::Tx;
use super::objects::check_name;
use crate::command::{NodeChoice, Refusal, RefusalKind, ReservationWish};
use crate::event::Event;
use crate::promise::LiftCause;
use crate::records::Job;
use crate::reservations;
use crate::state::State;
use ephor_model::{Account, AccountId, JobId, NodeId, Reservation, ReservationNo, Span, Timestamp, limits};
use std::collections::{BTreeMap, BTreeSet};

impl Tx<'_> {
    /// Lifts the promises that a reservation was made over.
    pub(super) fn lift_promises_under(&mut self, no: ReservationNo) {
        let Some(reservation) = self.state.reservations.get(&no) else { return };
        let promised = reservation.nodes.iter().filter_map(|node| self.state.derived.promised.get(node));
        let jobs: BTreeSet<JobId> = promised.flat_map(|jobs| jobs.iter().copied()).collect();
        for job in jobs {
            let broken = self.state.promises.get(&job).is_some_and(|p| {
                let may = |entry: &Job| reservations::allow(self.state, entry, &p.allocation, p.start, p.until);
                !self.state.element(job).is_some_and(|(entry, _)| may(&entry.job))
            });
            if broken {
                self.emit(Event::PromiseLifted { job, why: LiftCause::Reservation });
            }
        }
    }
}

/// The reservations that are wished for, with their numbers. Each sees those before it.
pub(super) fn plan(
    tx: &Tx<'_>,
    wished: Vec<ReservationWish>,
    coming: &[(AccountId, Account)],
) -> Result<Vec<(ReservationNo, Reservation)>, Refusal> {
    let mut after: BTreeMap<ReservationNo, Reservation> =
        tx.state.reservations.iter().map(|(no, r)| (*no, (**r).clone())).collect();
    let mut next = tx.state.meta.next_reservation;
    let mut out = Vec::with_capacity(wished.len());
    for wish in wished {
        check_name("reservation", &wish.is.name)?;
        let there =
            |name: &String| tx.state.account_by_name(name).is_some() || coming.iter().any(|(_, a)| a.name == *name);
        if let Some(account) = wish.is.accounts.iter().find(|name| !there(name)) {
            let text = format!("reservation '{}' names account '{account}', which is not there", wish.is.name);
            return Err(Refusal::new(RefusalKind::NotFound, text));
        }
        let known = after.iter().find(|(_, r)| r.name == wish.is.name).map(|(no, r)| (*no, r.clone()));
        let no = known.as_ref().map_or(ReservationNo(next), |(no, _)| *no);
        let mut is = wish.is;
        is.nodes = match &wish.nodes {
            NodeChoice::Named(names) => named(tx.state, &is.name, names)?,
            // Chosen once: a change of something else keeps the nodes.
            NodeChoice::Count(count) => match known.as_ref().filter(|(_, old)| old.nodes.len() == *count as usize) {
                Some((_, old)) => old.nodes.clone(),
                None => choose(tx.state, &after, no, &is, *count)?,
            },
        };
        if known.as_ref().is_none_or(|(_, old)| *old != is) {
            check(tx, &after, no, &is)?;
        }
        if known.is_none() {
            if after.len() >= limits::RESERVATIONS {
                let text = format!("there are {} reservations already; delete those that are over", after.len());
                return Err(Refusal::new(RefusalKind::Limit, text));
            }
            next += 1;
        }
        after.insert(no, is.clone());
        out.push((no, is));
    }
    Ok(out)
}

fn named(state: &State, reservation: &str, names: &[String]) -> Result<Vec<NodeId>, Refusal> {
    let mut nodes = Vec::with_capacity(names.len());
    for name in names {
        let Some(node) = state.node_by_name(name) else {
            let text = format!("reservation '{reservation}' names node '{name}', which is not there");
            return Err(Refusal::new(RefusalKind::NotFound, text));
        };
        nodes.push(node.id);
    }
    nodes.sort_unstable();
    nodes.dedup();
    Ok(nodes)
}

/// Nodes that no other reservation has in that time: those that are up and that nothing runs into it on first, then
/// those where it is over earliest, then by number.
fn choose(
    state: &State,
    all: &BTreeMap<ReservationNo, Reservation>,
    no: ReservationNo,
    wish: &Reservation,
    count: u32,
) -> Result<Vec<NodeId>, Refusal> {
    let taken =
        |node: NodeId| all.iter().any(|(other, r)| *other != no && r.overlaps(wish.start, wish.end) && r.has(node));
    let mut free: Vec<(bool, Timestamp, NodeId)> = state
        .nodes
        .values()
        .filter(|n| wish.maintenance || !taken(n.id))
        .map(|n| (!n.takes_jobs(), busy_until(state, n.id).max(wish.start), n.id))
        .filter(|(_, until, _)| wish.ignore_running || *until <= wish.start)
        .collect();
    free.sort_unstable();
    if (free.len() as u64) < u64::from(count) {
        let (name, n) = (&wish.name, free.len());
        let text = format!(
            "reservation '{name}' wants {count} nodes, and {n} are free of other reservations and of jobs that run \
             into it; ignore what runs, or begin later"
        );
        return Err(Refusal::new(RefusalKind::Conflict, text));
    }
    let mut nodes: Vec<NodeId> = free.into_iter().take(count as usize).map(|(_, _, id)| id).collect();
    nodes.sort_unstable();
    Ok(nodes)
}

/// When the last job that holds something of a node is expected to end.
fn busy_until(state: &State, node: NodeId) -> Timestamp {
    let jobs = state.derived.held.get(&node).map(|h| &h.jobs);
    let ends = jobs.into_iter().flatten().filter_map(|job| state.attempts.get(job)).map(|a| a.expected_end);
    ends.max().unwrap_or(Timestamp(i64::MIN))
}

fn check(
    tx: &Tx<'_>,
    all: &BTreeMap<ReservationNo, Reservation>,
    no: ReservationNo,
    is: &Reservation,
) -> Result<(), Refusal> {
    let name = &is.name;
    let invalid = |text: String| Err(Refusal::new(RefusalKind::Invalid, text));
    let conflict = |text: String| Err(Refusal::new(RefusalKind::Conflict, text));
    if is.end <= is.start || is.end <= tx.at {
        return invalid(format!("reservation '{name}' would be over before it begins, or already"));
    }
    if is.end - is.start > Span(limits::TIME_LIMIT_MS) {
        return invalid(format!("reservation '{name}' would last more than 100 years"));
    }
    if is.nodes.is_empty() {
        return invalid(format!("reservation '{name}' has no nodes: name some, or how many"));
    }
    if is.users.is_empty() && is.accounts.is_empty() && !is.maintenance {
        return invalid(format!(
            "nobody could use reservation '{name}': name users or accounts, or say that it is for maintenance"
        ));
    }
    let clash = all.iter().find(|(other, r)| {
        **other != no && !r.maintenance && r.overlaps(is.start, is.end) && is.nodes.iter().any(|n| r.has(*n))
    });
    if let (Some((_, other)), false) = (clash, is.maintenance) {
        return conflict(format!("reservation '{}' has some of the nodes of '{name}' at the same time", other.name));
    }
    // Jobs that run in it already are no hindrance to a change of it.
    let inside = |job: &JobId| tx.state.find(*job).is_some_and(|(e, _)| e.job.spec.reservation.as_ref() == Some(name));
    let busy = is.nodes.iter().find_map(|node| {
        let held = tx.state.derived.held.get(node)?;
        let runs_into =
            |job: &&JobId| !inside(job) && tx.state.attempts.get(*job).is_some_and(|a| a.expected_end > is.start);
        held.jobs.iter().find(runs_into).map(|job| (*node, *job))
    });
    match busy.filter(|_| !is.ignore_running) {
        None => Ok(()),
        Some((node, job)) => conflict(format!(
            "job {} runs into reservation '{name}' on {}; ignore what runs, begin later, or take other nodes",
            tx.state.display_id(job),
            tx.state.node_name(node)
        )),
    }
}
