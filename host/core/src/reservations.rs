//! Reservations: who may use which, and whether a start keeps to all of them.

use crate::pools::accounts_up;
use crate::records::Job;
use crate::state::State;
use ephor_model::{AccountId, Allocation, Reservation, ReservationNo, Span, Timestamp};
use std::sync::Arc;

impl State {
    /// The reservation of that name.
    pub fn reservation_by_name(&self, name: &str) -> Option<(ReservationNo, &Arc<Reservation>)> {
        self.reservations.iter().find(|(_, r)| r.name == name).map(|(no, r)| (*no, r))
    }
}

/// Whether jobs of that user and account may run in it: either is enough.
pub fn may_use(state: &State, reservation: &Reservation, user: &str, account: AccountId) -> bool {
    reservation.users.iter().any(|u| u == user)
        || accounts_up(state, account)
            .iter()
            .filter_map(|id| state.accounts.get(id))
            .any(|a| reservation.accounts.contains(&a.name))
}

/// The reservation that a job asks to run in, where it is there and may be used.
pub fn of_job<'a>(state: &'a State, job: &Job) -> Option<(ReservationNo, &'a Arc<Reservation>)> {
    let found = state.reservation_by_name(job.spec.reservation.as_deref()?)?;
    may_use(state, found.1, &job.spec.owner.name, job.account).then_some(found)
}

/// Whether a job may hold that allocation from `now` until its expected end.
pub fn allow(state: &State, job: &Job, allocation: &Allocation, now: Timestamp, until: Timestamp) -> bool {
    let own = of_job(state, job);
    let keeps_to_own = match (&job.spec.reservation, own) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(_), Some((_, r))) => {
            let inside = allocation.parts.iter().all(|part| r.has(part.node));
            inside && r.start <= now && until <= r.end
        }
    };
    let own = own.map(|(no, _)| no);
    let mut others = state.reservations.iter().filter(|(no, r)| own != Some(**no) && r.overlaps(now, until));
    keeps_to_own && !others.any(|(_, r)| allocation.parts.iter().any(|part| r.has(part.node)))
}

/// What of reservations stands in the way of a waiting job that may run for `limit`, in words.
pub fn in_the_way(state: &State, job: &Job, now: Timestamp, limit: Span) -> Vec<String> {
    let until = Timestamp(now.0.saturating_add(limit.0));
    let own = job.spec.reservation.as_deref();
    let mut lines: Vec<String> =
        own.and_then(|name| why_not_inside(state, job, name, now, limit)).into_iter().collect();
    let others = state.reservations.values().filter(|r| own != Some(r.name.as_str()) && r.overlaps(now, until));
    lines.extend(others.map(|r| {
        let (count, from, to) = (r.nodes.len(), r.start.to_iso(Span(0)), r.end.to_iso(Span(0)));
        let nodes = if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") };
        let what = if r.maintenance { "for maintenance " } else { "" };
        format!("reservation '{}' keeps {nodes} {what}from {from} to {to} UTC; no other job may run into it", r.name)
    }));
    lines
}

/// Why a job cannot run in its reservation now, whatever is free there.
pub fn why_not_inside(state: &State, job: &Job, name: &str, now: Timestamp, limit: Span) -> Option<String> {
    let Some((_, r)) = state.reservation_by_name(name) else {
        return Some(format!("its reservation '{name}' is gone"));
    };
    if !may_use(state, r, &job.spec.owner.name, job.account) {
        return Some(format!("reservation '{name}' is not for its user or account any more"));
    }
    if now < r.start {
        return Some(format!("its reservation '{name}' begins at {} UTC", r.start.to_iso(Span(0))));
    }
    if r.end <= now {
        return Some(format!("its reservation '{name}' is over"));
    }
    if now.0.saturating_add(limit.0) > r.end.0 {
        let left = (r.end - now).to_clock();
        return Some(format!(
            "its reservation '{name}' lasts {left} longer, and its time limit is {}",
            limit.to_clock()
        ));
    }
    None
}
