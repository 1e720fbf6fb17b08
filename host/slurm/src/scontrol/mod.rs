//! `scontrol`: its command line, and what it shows.

pub mod show_job;
