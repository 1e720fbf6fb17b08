//! Parameters of `topology.conf`.

use super::Fate::{Nothing, Read};
use super::{Group, group};

/// The table.
pub const TOPOLOGY: &[Group] = &[
    group(Read, &["SwitchName", "Switches", "Nodes", "BlockName"]),
    group(Nothing("only which nodes lie together counts"), &["LinkSpeed", "BlockSizes"]),
];
