//! Which of the nodes that fit are taken first.

use ephor_model::id::NodeId;
use ephor_model::resource::ResourceId;

/// The order in which nodes are tried. The default packs: nodes in use before idle ones, then by node id.
///
/// Several wishes count in the order of the fields as they stand in [`Placing`]: rank, spread, pack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placing {
    /// Nodes that already use this resource first, the fullest of them first.
    pub pack: Vec<ResourceId>,
    /// Nodes with most of this resource free first.
    pub spread: Vec<ResourceId>,
    /// These nodes first, in this order.
    pub rank: Vec<NodeId>,
    /// No other nodes than these.
    pub only: Option<Vec<NodeId>>,
    /// All nodes below one domain of this level: nodes with the same feature `LEVEL=DOMAIN`.
    pub require_level: Option<String>,
    /// The same if that can be.
    pub prefer_level: Option<String>,
    /// Whether a job that does not fit now may wait for what is being released. Placement has no use for it.
    pub may_claim: bool,
}

impl Placing {
    /// Whether it leaves every node to choose from, in the order of the default.
    pub fn is_anywhere(&self) -> bool {
        Self { may_claim: false, ..self.clone() } == Self::default()
    }
}
