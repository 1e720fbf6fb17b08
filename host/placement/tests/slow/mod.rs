//! What the tests share: a slow and obvious twin of the cluster, an auditor, and random worlds.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod audit;
pub mod brute;
pub mod sharing;
pub mod twin;
pub mod world;
