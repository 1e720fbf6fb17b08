//! The grammars of single values, as Slurm's commands read them.

pub mod count;
pub mod mail;
pub mod memory;
pub mod time;
pub mod when;
