//! Slurm's command lines, output formats and configuration: pure reading and writing, without a controller.
//!
//! Everything that depends on who asks, what time it is or what the cluster holds comes in as a value. The tables of
//! options are the one source of command lines, help and the pages about them.

pub mod columns;
pub mod failure;
pub mod getopt;
pub mod import;
pub mod job;
pub mod json;
pub mod sacct;
pub mod sbatch;
pub mod scancel;
pub mod scontrol;
pub mod show;
pub mod sinfo;
pub mod squeue;
pub mod srun;
pub mod table;
pub mod value;

pub use failure::Failure;

/// The release of Slurm whose command lines, formats and messages are followed: what was measured is 22.05.8.
pub const VERSION: &str = "slurm 22.05.8";
