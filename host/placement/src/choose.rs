//! Which of the nodes with room are taken, and how tasks and GPUs are shared out among them.
//!
//! As few nodes as will do. Among the sets of that many nodes, the one whose nodes come first in the order wished for;
//! where tasks and GPUs are both given as sums over several nodes, see [`pair`].

mod one;
mod pair;

use crate::demand::{Demand, Goal};
use crate::fit::Fit;
use crate::work::{NoFit, Work};

/// A node with room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub fit: Fit,
    /// It must be taken.
    pub required: bool,
}

/// A node taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    /// Its place among the items.
    pub index: usize,
    /// Tasks there.
    pub tasks: u32,
    /// GPUs there, of those asked for in all.
    pub gpus: u32,
}

/// Chooses among items that stand in the order wished for. `None`: no set of them will do.
pub(crate) fn choose(demand: &Demand, items: &[Item], work: &mut Work) -> Result<Option<Vec<Pick>>, NoFit> {
    let required = items.iter().filter(|item| item.required).count();
    if required < demand.required || items.len() < demand.fewest {
        return Ok(None);
    }
    let gpus = u64::from(demand.gpus_in_all);
    let range = (demand.fewest, demand.most);
    let chosen = match demand.goal {
        Goal::Each(_) => one::fewest(items, |fit| fit.gpus, gpus, range),
        Goal::Sum(tasks) if gpus == 0 => one::fewest(items, |fit| fit.tasks, u64::from(tasks), range),
        Goal::Sum(tasks) => pair::fewest(items, u64::from(tasks), gpus, range, work)?,
    };
    Ok(chosen.map(|chosen| share_out(demand, items, &chosen)))
}

/// Shares tasks and GPUs out among the chosen: each node is filled before the next, but each gets a task.
fn share_out(demand: &Demand, items: &[Item], chosen: &[usize]) -> Vec<Pick> {
    let mut gpus_left = demand.gpus_in_all;
    let mut tasks_left = match demand.goal {
        Goal::Sum(tasks) => tasks,
        Goal::Each(_) => 0,
    };
    let mut picks = Vec::with_capacity(chosen.len());
    for (done, &index) in chosen.iter().enumerate() {
        let fit = items[index].fit;
        let tasks = match demand.goal {
            Goal::Each(each) => each,
            Goal::Sum(_) => fit.tasks.min(tasks_left.saturating_sub((chosen.len() - done - 1) as u32)),
        };
        let gpus = fit.gpus.min(gpus_left);
        tasks_left = tasks_left.saturating_sub(tasks);
        gpus_left -= gpus;
        picks.push(Pick { index, tasks, gpus });
    }
    picks
}
