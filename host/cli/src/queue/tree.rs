//! `ephor queue tree`: who has what of a resource, beside what each queue is due.

use crate::connect::Controller;
use crate::{Global, amount, output};
use anyhow::bail;
use clap::Args;
use ephor_proto::v1::{Amount, Empty, QueueView};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

/// Characters of the longest bar.
const BAR: u128 = 32;

#[derive(Args)]
pub struct Tree {
    /// Resource to show, such as gpu, cpu or mem; left out: gpu where anything of it is there, else cpu
    #[arg(long, value_name = "NAME")]
    resource: Option<String>,
}

/// A queue of the tree. Amounts are those of its own jobs and of all queues below, in thousandths of cores and GPUs, in
/// MiB of memory, else as they are counted.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct Line {
    queue: String,
    parent: Option<String>,
    #[serde(skip)]
    branch: String,
    pending: u32,
    running: u32,
    allocated: i64,
    /// What pending jobs ask for.
    wanted: i64,
    quota: Option<i64>,
    limit: Option<i64>,
    /// What the scheduling policy holds it to be due now.
    fair: Option<i64>,
    /// It has more than that.
    over: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    resource: &'a str,
    queues: &'a [Line],
}

impl Tree {
    /// Runs the command.
    ///
    /// # Errors
    /// The request was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let queues = Controller::connect(global)?.call(async |c| c.list_queues(Empty {}).await)?.queues;
        let resource = match self.resource {
            None => usual(&queues).into(),
            Some(name) => known(&queues, name)?,
        };
        let lines = lines(&queues, &resource);
        if global.json {
            output::json(&Answer { resource: &resource, queues: &lines })?;
        } else {
            print(&lines, &resource)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// GPUs where anybody has, wants or is due some, else cores.
fn usual(queues: &[QueueView]) -> &'static str {
    let named = |amounts: &[Amount]| amounts.iter().any(|a| a.resource == "gpu" && a.value > 0);
    let any = |view: &QueueView| {
        let of_queue = view.queue.as_ref().is_some_and(|q| named(&q.quota) || named(&q.limit));
        of_queue || [&view.allocated, &view.wanted, &view.fair].into_iter().any(|amounts| named(amounts))
    };
    if queues.iter().any(any) { "gpu" } else { "cpu" }
}

/// A resource that is always there, or that any queue has something of.
fn known(queues: &[QueueView], name: String) -> anyhow::Result<String> {
    let mut names = BTreeSet::from(["cpu", "gpu", "mem"]);
    for view in queues {
        let of_queue = view.queue.iter().flat_map(|queue| queue.quota.iter().chain(&queue.limit));
        let amounts = of_queue.chain(&view.allocated).chain(&view.wanted).chain(&view.fair);
        names.extend(amounts.map(|amount| amount.resource.as_str()));
    }
    if names.contains(name.as_str()) {
        return Ok(name);
    }
    let names: Vec<&str> = names.into_iter().collect();
    bail!("no queue has, wants or is due anything of '{name}'; there are {}", names.join(", "))
}

/// The tree from the top down, siblings by name.
fn lines(queues: &[QueueView], resource: &str) -> Vec<Line> {
    let mut children: BTreeMap<&str, BTreeMap<&str, &QueueView>> = BTreeMap::new();
    for view in queues {
        let Some(queue) = &view.queue else { continue };
        children.entry(queue.parent.as_deref().unwrap_or("")).or_default().insert(&queue.name, view);
    }
    let mut lines = Vec::new();
    walk("", "", &children, resource, &mut lines);
    // What a policy shares at all it shares among all: where it says nothing, nothing is due.
    if lines.iter().any(|line| line.fair.is_some()) {
        lines.iter_mut().for_each(|line| line.fair = line.fair.or(Some(0)));
    }
    lines.iter_mut().for_each(|line| line.over = line.fair.is_some_and(|fair| line.allocated > fair));
    lines
}

fn walk(
    parent: &str,
    stem: &str,
    children: &BTreeMap<&str, BTreeMap<&str, &QueueView>>,
    resource: &str,
    lines: &mut Vec<Line>,
) {
    let Some(siblings) = children.get(parent) else { return };
    for (n, (name, view)) in siblings.iter().enumerate() {
        let last = n + 1 == siblings.len();
        let (branch, below) = match (parent.is_empty(), last) {
            (true, _) => ("", ""),
            (false, true) => ("`- ", "   "),
            (false, false) => ("|- ", "|  "),
        };
        let at = lines.len();
        lines.push(line(view, resource, format!("{stem}{branch}")));
        walk(name, &format!("{stem}{below}"), children, resource, lines);
        let (here, under) = lines.split_at_mut(at + 1);
        let here = &mut here[at];
        for child in under.iter().filter(|line| line.parent.as_deref() == Some(*name)) {
            here.pending += child.pending;
            here.running += child.running;
            here.allocated += child.allocated;
            here.wanted += child.wanted;
        }
    }
}

fn line(view: &QueueView, resource: &str, branch: String) -> Line {
    let queue = view.queue.clone().unwrap_or_default();
    let named = |amounts: &[Amount]| amounts.iter().find(|a| a.resource == resource).map(|a| a.value);
    Line {
        branch,
        pending: view.pending,
        running: view.running,
        allocated: named(&view.allocated).unwrap_or(0),
        wanted: named(&view.wanted).unwrap_or(0),
        quota: named(&queue.quota),
        limit: named(&queue.limit),
        fair: named(&view.fair),
        over: false,
        queue: queue.name,
        parent: queue.parent,
    }
}

fn print(lines: &[Line], resource: &str) -> anyhow::Result<()> {
    let longest = lines.iter().map(|line| line.allocated.max(line.fair.or(line.quota).unwrap_or(0))).max();
    let scale = longest.unwrap_or(0).max(1);
    let show = |value: i64| amount::show(resource, value);
    let maybe = |value: Option<i64>| value.map_or_else(|| "-".into(), show);
    let row = |line: &Line| {
        [
            format!("{}{}", line.branch, line.queue),
            line.pending.to_string(),
            line.running.to_string(),
            maybe(line.quota),
            maybe(line.limit),
            maybe(line.fair),
            show(line.allocated),
            show(line.wanted),
            bar(line, scale),
        ]
    };
    let headings = ["QUEUE", "PENDING", "RUNNING", "QUOTA", "LIMIT", "FAIR", "ALLOCATED", "WANTED", ""];
    output::table(headings, lines.iter().map(row).collect())?;
    let due = match lines.iter().any(|line| line.fair.is_some()) {
        true => "its fair share",
        false => "its quota; the scheduling policy says nothing of fair shares",
    };
    output::line(&format!("{resource}: # allocated, + allocated beyond it, . free of {due}"))
}

/// What a queue has, as part of what it is due and beyond it.
fn bar(line: &Line, scale: i64) -> String {
    // Whatever is there is seen, however little. At most the length of the bar, since no amount is above the scale.
    let cells = |amount: i64| (amount.max(0) as u128 * BAR).div_ceil(scale as u128) as usize;
    let due = line.fair.or(line.quota).unwrap_or(line.allocated);
    let (within, all) = (cells(line.allocated.min(due)), cells(line.allocated));
    let free = cells(due).saturating_sub(all);
    format!("{}{}{}", "#".repeat(within), "+".repeat(all - within), ".".repeat(free))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ephor_proto::v1::QueueObject;

    fn gpus(n: i64) -> Vec<Amount> {
        vec![Amount { resource: "gpu".into(), value: n * 1000 }]
    }

    fn queue(name: &str, parent: &str, quota: i64, fair: i64, allocated: i64, wanted: i64) -> QueueView {
        QueueView {
            queue: Some(QueueObject {
                name: name.into(),
                parent: (!parent.is_empty()).then(|| parent.into()),
                quota: gpus(quota),
                ..QueueObject::default()
            }),
            pending: 1,
            running: 2,
            allocated: gpus(allocated),
            wanted: gpus(wanted),
            fair: gpus(fair),
            ..QueueView::default()
        }
    }

    fn research() -> Vec<QueueView> {
        vec![
            queue("vision", "research", 4, 6, 8, 0),
            queue("research", "", 8, 8, 0, 0),
            queue("speech", "research", 4, 2, 0, 3),
            queue("other", "", 0, 0, 0, 0),
        ]
    }

    #[test]
    fn queues_stand_below_their_parents_which_have_what_their_children_have() {
        let lines = lines(&research(), "gpu");
        let names: Vec<String> = lines.iter().map(|line| format!("{}{}", line.branch, line.queue)).collect();
        assert_eq!(names, ["other", "research", "|- speech", "`- vision"]);
        let research = &lines[1];
        assert_eq!((research.pending, research.running, research.allocated, research.wanted), (3, 6, 8_000, 3_000));
        assert_eq!(lines.iter().map(|line| line.over).collect::<Vec<_>>(), [false, false, false, true]);
    }

    #[test]
    fn bars_show_what_is_within_and_beyond_the_share() {
        let lines = lines(&research(), "gpu");
        let bars: Vec<String> = lines.iter().map(|line| bar(line, 8_000)).collect();
        assert_eq!(bars[0], "");
        assert_eq!(bars[1], "#".repeat(32));
        assert_eq!(bars[2], ".".repeat(8));
        assert_eq!(bars[3], format!("{}{}", "#".repeat(24), "+".repeat(8)));
    }

    #[test]
    fn without_shares_the_quota_is_what_is_due() {
        let mut queues = research();
        queues.iter_mut().for_each(|view| view.fair.clear());
        let lines = lines(&queues, "gpu");
        assert!(lines.iter().all(|line| line.fair.is_none() && !line.over));
        assert_eq!(bar(&lines[3], 8_000), format!("{}{}", "#".repeat(16), "+".repeat(16)));
        assert_eq!((usual(&queues), usual(&[])), ("gpu", "cpu"));
    }

    #[test]
    fn a_queue_that_is_due_nothing_is_due_0_and_a_resource_that_nobody_has_is_named() {
        let mut queues = research();
        queues[3].fair.clear();
        queues[3].allocated = gpus(1);
        let other = &lines(&queues, "gpu")[0];
        assert_eq!((other.fair, other.over), (Some(0), true));
        assert_eq!(known(&queues, "mem".into()).unwrap(), "mem");
        let error = known(&queues, "gpus".into()).unwrap_err().to_string();
        assert_eq!(error, "no queue has, wants or is due anything of 'gpus'; there are cpu, gpu, mem");
    }
}
