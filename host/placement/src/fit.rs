//! How much of a request one node has room for.

use crate::demand::Demand;
use crate::domains::domain;
use crate::need::Need;
use crate::profile::Level;
use crate::shape::{Shape, WHOLE_GPU};
use ephor_model::resource::ResourceId;
use smallvec::SmallVec;

/// What a node has room for: tasks, and GPUs towards those asked for in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    /// Tasks, never more than the request puts on one node and never fewer than make the node useful.
    pub tasks: u32,
    /// Whole GPUs of the right kind; counted only where GPUs are asked for.
    pub gpus: u32,
}

/// One column of a level that a request draws on.
#[derive(Clone, Copy, Debug)]
struct Draw {
    column: usize,
    per_task: i64,
    per_node: i64,
}

/// A request in the columns of one shape.
#[derive(Clone, Debug)]
pub(crate) struct Fitting {
    draws: SmallVec<[Draw; 2]>,
    /// Columns of the GPU kinds that will do.
    pub gpu_columns: SmallVec<[usize; 2]>,
}

impl Fitting {
    /// `None` where nodes of the shape cannot serve: a feature, a resource or the kind of GPU is missing.
    pub fn of(need: &Need, demand: &Demand, shape: &Shape) -> Option<Self> {
        if need.features().any(|f| shape.features.binary_search(f).is_err()) {
            return None;
        }
        let nodes = u32::try_from(demand.fewest).unwrap_or(u32::MAX);
        if need.request.constraint.as_ref().is_some_and(|c| !c.admits(&shape.features, nodes)) {
            return None;
        }
        let level = need.request.topology.as_ref().filter(|topology| topology.required).map(|t| &t.level);
        if level.is_some_and(|level| domain(shape, level).is_none()) {
            return None;
        }
        let (per_task, per_node) = (need.request.per_task(), need.request.per_node());
        let mut draws: SmallVec<[Draw; 2]> = SmallVec::new();
        for (id, _) in per_task.iter().chain(per_node.iter()).filter(|(id, _)| *id != ResourceId::GPU) {
            let column = shape.resources.iter().position(|r| *r == id)?;
            if draws.iter().all(|d| d.column != column) {
                draws.push(Draw { column, per_task: per_task.get(id), per_node: per_node.get(id) });
            }
        }
        let mut gpu_columns = SmallVec::new();
        if demand.asks_gpus() {
            let fits = |k: &usize| need.request.takes_gpu_type(&shape.kinds[*k]);
            gpu_columns.extend((0..shape.kinds.len()).filter(fits).map(|k| shape.kind_column(k)));
        }
        Some(Self { draws, gpu_columns })
    }

    /// What fits where `level` is free of a node with that capacity; `None`: nothing useful. `shared`: a GPU in shared
    /// use has enough left for the part asked for.
    pub fn fit(&self, demand: &Demand, level: &Level, capacity: &Level, shared: bool) -> Option<Fit> {
        if demand.exclusive && level.iter().zip(capacity).any(|(free, all)| free < all) {
            return None;
        }
        let mut tasks = i64::from(demand.cap);
        for draw in &self.draws {
            let left = level[draw.column] - draw.per_node;
            if left < 0 {
                return None;
            }
            if draw.per_task > 0 {
                tasks = tasks.min(left / draw.per_task);
            }
        }
        let gpus: i64 = self.gpu_columns.iter().map(|c| level[*c].max(0) / WHOLE_GPU).sum();
        // A part of a GPU takes a whole free one where it cannot share.
        let for_share = i64::from(demand.share > 0 && !shared);
        let left = gpus - i64::from(demand.gpus_per_node) - for_share;
        // Where one node is asked for it must have all of them.
        if left < 0 || demand.most == 1 && gpus < i64::from(demand.gpus_in_all) {
            return None;
        }
        if demand.gpus_per_task > 0 {
            tasks = tasks.min(left / i64::from(demand.gpus_per_task));
        }
        // Within u32: `tasks` starts at a u32 and only falls, and a node has at most as many GPUs as a u32 indexes.
        (tasks >= i64::from(demand.least)).then_some(Fit { tasks: tasks as u32, gpus: gpus as u32 })
    }
}
