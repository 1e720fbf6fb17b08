//! What a job needs of nodes, and the number under which equal needs are known.

use ephor_model::request::Request;
use ephor_model::shared::Shared;

/// What decides where a job can run. Equal needs make one class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Need {
    /// What the job asks for.
    pub request: Shared<Request>,
    /// Features that its queue demands of every node.
    pub queue_features: Vec<String>,
}

impl Need {
    /// Every feature that each node must have.
    pub(crate) fn features(&self) -> impl Iterator<Item = &String> {
        self.request.features.iter().chain(&self.queue_features)
    }
}

/// Number of an interned [`Need`], valid for the cluster that gave it and for copies of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u32);
