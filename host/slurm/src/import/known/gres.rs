//! Parameters of `gres.conf`.

use super::Fate::{Nothing, Read};
use super::{Group, group};

/// What becomes of a line about GPUs.
pub const GPUS: &str = "agents find GPUs, their type, cores and links: [gpus] in their configuration, and [[gpu]] for \
    those that they do not see";

/// The table.
pub const GRES: &[Group] = &[
    group(Read, &["Name", "NodeName"]),
    group(
        Nothing(GPUS),
        &["AutoDetect", "Type", "File", "MultipleFiles", "Count", "Cores", "CPUs", "Links", "Flags", "Ignore"],
    ),
];
