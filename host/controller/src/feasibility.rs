//! Answers whether a draft could ever run here, on a copy of the nodes beside the scheduler's.

use ephor_core::{Node, State};
use ephor_model::{Draft, NodeId};
use ephor_placement::{ClassId, Cluster, Need, NodeView};
use imbl::ordmap::DiffItem;
use std::sync::{Arc, Mutex, PoisonError};

/// Request classes that are remembered; then the cluster is made anew.
const CLASSES: u32 = 4096;

/// See the module.
#[derive(Debug, Default)]
pub struct Feasibility(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    cluster: Cluster,
    /// The nodes that `cluster` was made of. Tables share structure, so that comparing them costs what changed.
    nodes: imbl::OrdMap<NodeId, Arc<Node>>,
}

impl Feasibility {
    /// Why the draft could never run, counting nodes that are down or drained as up; `None`: it could. A cluster whose
    /// first node has yet to come says nothing: what it will have is not known.
    pub fn never_runs(&self, state: &State, draft: &Draft) -> Option<String> {
        if state.nodes.is_empty() {
            return None;
        }
        let queue = match draft.spec.queue.as_str() {
            "" => state.queues.values().find(|q| q.default),
            name => state.queue_by_name(name).map(|(_, q)| q),
        };
        let queue_features = queue.map(|q| q.node_features.clone()).unwrap_or_default();
        let need = Need { request: draft.spec.request.clone(), queue_features };
        // The cluster is consistent between calls; a panic inside one leaves at worst a stale verdict.
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.follow(state);
        let class = inner.cluster.intern(&need);
        let class = if class.0 < CLASSES { class } else { inner.renew(&need) };
        inner.cluster.ever(class).err().map(|why| why.to_string())
    }
}

impl Inner {
    fn follow(&mut self, state: &State) {
        if self.nodes.ptr_eq(&state.nodes) {
            return;
        }
        let before = std::mem::replace(&mut self.nodes, state.nodes.clone());
        for change in before.diff(&state.nodes) {
            match change {
                DiffItem::Add(id, node) | DiffItem::Update { new: (id, node), .. } => {
                    self.cluster.set_node(*id, view(node));
                }
                DiffItem::Remove(id, _) => self.cluster.remove_node(*id),
            }
        }
    }

    fn renew(&mut self, need: &Need) -> ClassId {
        self.cluster = Cluster::new();
        for (id, node) in &self.nodes {
            self.cluster.set_node(*id, view(node));
        }
        self.cluster.intern(need)
    }
}

fn view(node: &Node) -> NodeView {
    NodeView {
        name: node.spec.name.clone(),
        capacity: node.capacity(),
        features: node.features(),
        devices: node.spec.devices.iter().map(|d| d.kind.clone()).collect(),
        // They will be back, or others in their place.
        out: Vec::new(),
        up: node.takes_jobs(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ephor_core::Event;
    use ephor_core::Stamped;
    use ephor_model::{Amounts, Blobs, JobSpec, NodeSpec, Payload, ResourceId, Timestamp};

    fn node(number: u32, cores: i64) -> Stamped {
        let capacity = Amounts::new().with(ResourceId::CPU, cores * 1000).with(ResourceId::MEM, 1024);
        let spec = NodeSpec { name: format!("n{number}"), capacity, ..NodeSpec::default() };
        let event = Event::NodeRegistered { node: NodeId(number), spec: Arc::new(spec) };
        Stamped { at: Timestamp(1), event }
    }

    #[test]
    fn verdicts_follow_the_nodes() {
        let feasibility = Feasibility::default();
        let mut state = State::default();
        let mut spec = JobSpec::new("x", Payload::Argv(vec!["true".into()]));
        spec.request.cpus_per_task = 4;
        let mut draft = Draft { spec, blobs: Blobs::default() };
        assert_eq!(feasibility.never_runs(&state, &draft), None);
        state.apply(&node(0, 2), &mut Default::default()).unwrap();
        assert!(feasibility.never_runs(&state, &draft).is_some());
        state.apply(&node(1, 4), &mut Default::default()).unwrap();
        assert_eq!(feasibility.never_runs(&state, &draft), None);
        for n in 0..CLASSES + 2 {
            draft.spec.name = format!("{n}");
            draft.spec.request.mem = ephor_model::MemRequest::PerNode(u64::from(n));
            assert_eq!(feasibility.never_runs(&state, &draft).is_some(), n > 1024, "{n}");
        }
        state
            .apply(
                &Stamped { at: Timestamp(2), event: Event::NodeDeleted { node: NodeId(1) } },
                &mut Default::default(),
            )
            .unwrap();
        assert!(feasibility.never_runs(&state, &draft).is_some());
    }
}
