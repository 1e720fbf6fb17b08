//! The policy on small clusters, cycle after cycle.

mod cases;
mod double;
mod properties;
