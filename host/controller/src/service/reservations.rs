//! Reservations of nodes as objects.

use ephor_core::State;
use ephor_core::command::{NodeChoice, ReservationWish};
use ephor_model::{Reservation, Timestamp, limits};
use ephor_proto::convert::Malformed;
use ephor_proto::v1;

pub(super) fn reservation_to_wire(state: &State, r: &Reservation) -> v1::ReservationObject {
    v1::ReservationObject {
        name: r.name.clone(),
        start: r.start.0,
        end: r.end.0,
        nodes: r.nodes.iter().map(|id| state.node_name(*id)).collect(),
        node_count: r.nodes.len() as u32,
        users: r.users.clone(),
        accounts: r.accounts.clone(),
        maintenance: r.maintenance,
        ignore_running: r.ignore_running,
        description: r.description.clone(),
    }
}

pub(super) fn reservation_from_wire(r: v1::ReservationObject) -> Result<ReservationWish, Malformed> {
    let fail = |text: String| Malformed(format!("reservation '{}': {text}", r.name));
    super::objects::check_text("the description of a reservation", &r.description)?;
    let longest = limits::TIME_LIMIT_MS * 100;
    if !(0..longest).contains(&r.start) || !(0..longest).contains(&r.end) {
        return Err(fail("its times are out of range".into()));
    }
    if r.users.len().max(r.accounts.len()) > limits::NAMES_PER_OBJECT || r.nodes.len() > limits::NODES as usize {
        return Err(fail(format!(
            "it names more than {} users or accounts, or too many nodes",
            limits::NAMES_PER_OBJECT
        )));
    }
    let nodes = match r.nodes.is_empty() {
        true => NodeChoice::Count(r.node_count),
        false => NodeChoice::Named(r.nodes),
    };
    let is = Reservation {
        name: r.name,
        start: Timestamp(r.start),
        end: Timestamp(r.end),
        nodes: Vec::new(),
        users: r.users,
        accounts: r.accounts,
        maintenance: r.maintenance,
        ignore_running: r.ignore_running,
        description: r.description,
    };
    Ok(ReservationWish { is, nodes })
}
