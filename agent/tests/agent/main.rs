//! The real agent and the real shim, end to end, against a controller whose every word the test chooses.

mod attempts;
mod controller;
mod joining;
mod relay;
mod restarts;
mod simulate;
mod users;
mod wait;
mod world;
