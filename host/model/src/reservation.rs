//! Nodes that are set aside for a time: for maintenance, or for certain users and accounts.

use crate::id::NodeId;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Nodes set aside from `start` until `end`. Jobs of others neither start on them in that time nor run into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Name.
    pub name: String,
    /// When it begins.
    pub start: Timestamp,
    /// When it is over.
    pub end: Timestamp,
    /// Its nodes, ascending.
    pub nodes: Vec<NodeId>,
    /// Users by name who may run jobs in it.
    pub users: Vec<String>,
    /// Accounts by name whose jobs, and those of the accounts below, may run in it.
    pub accounts: Vec<String>,
    /// For maintenance: it may lie over other reservations, and need not be for anybody.
    pub maintenance: bool,
    /// Jobs that run into it when it is made are no hindrance: they go on.
    pub ignore_running: bool,
    /// Free text.
    pub description: String,
}

impl Reservation {
    /// Whether it holds its nodes at some time in `[from, until)`.
    pub fn overlaps(&self, from: Timestamp, until: Timestamp) -> bool {
        self.start < until && from < self.end
    }

    /// Whether it has that node.
    pub fn has(&self, node: NodeId) -> bool {
        self.nodes.binary_search(&node).is_ok()
    }
}
