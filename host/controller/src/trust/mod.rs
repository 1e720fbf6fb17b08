//! Who is who among machines: the cluster's certificate authority, join tokens, and roles read from certificates.
//!
//! The authority is made at the first start; its key never leaves `DATA/trust`. The controller gives itself a fresh
//! certificate at every start, whose key is never written down. An agent gets its certificate once, for a single-use
//! token, and rejoins with a new token before a year is over.

mod authority;
mod join;
mod role;
mod token;

pub use authority::{Authority, CONTROLLER_NAME, ServerIdentity, TrustError};
pub use join::{SIMULATE, join};
pub use role::{Machine, MachineRole, is_node_name, machine_of};
pub use token::{Token, fresh_secret, secret_digest};
