//! What is known of the tasks of a step: who runs, who ended how, which nodes are there. What nodes say is checked here.

use ephor_proto::v1;
use ephor_slurm::srun::PROGRAM;
use ephor_slurm::srun::report::{Ended, folded, status};
use std::collections::{BTreeMap, BTreeSet};

/// Exit code that a task adds which was lost with its node.
const LOST: u8 = 1;

/// See the module.
#[derive(Debug)]
pub struct Board {
    step: String,
    nodes: BTreeMap<String, Node>,
    /// The highest of the tasks.
    code: u8,
    /// Ranks of tasks that ended.
    ended: BTreeSet<u32>,
}

#[derive(Debug)]
struct Node {
    /// Ranks of tasks that have not ended.
    tasks: BTreeSet<u32>,
    attached: bool,
    closed: bool,
}

impl Board {
    /// A step of that name whose nodes are all awaited.
    pub fn new(step: String, plan: &v1::StepPlan) -> Self {
        let node = |part: &v1::StepPart| {
            let tasks = part.tasks.iter().copied().collect();
            (part.node.clone(), Node { tasks, attached: false, closed: false })
        };
        Self { step, nodes: plan.parts.iter().map(node).collect(), code: 0, ended: BTreeSet::new() }
    }

    /// A node is there.
    pub fn attached(&mut self, node: &str) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.attached = true;
        }
    }

    /// Whether all nodes are there, were, or are given up.
    pub fn is_whole(&self) -> bool {
        self.nodes.values().all(|node| node.attached)
    }

    /// Nothing more will come.
    pub fn is_over(&self) -> bool {
        self.nodes.values().all(|node| node.closed)
    }

    /// Tasks ended; the line to be said, and whether any ended badly. Ranks that are none of the node's, or ended before,
    /// count for nothing.
    pub fn exited(&mut self, name: &str, exit: v1::StepExit) -> (Option<String>, bool) {
        let Some(node) = self.nodes.get_mut(name) else { return (None, false) };
        let tasks: Vec<u32> = exit.tasks.into_iter().filter(|rank| node.tasks.remove(rank)).collect();
        if tasks.is_empty() {
            return (None, false);
        }
        self.ended.extend(&tasks);
        let ended = Ended { tasks, code: exit.code, signal: exit.signal, core_dumped: exit.core_dumped };
        self.code = self.code.max(ended.exit_code());
        (ended.line(name), ended.exit_code() != 0)
    }

    /// A node's connection is over. The line to be said, where tasks were lost with it.
    pub fn closed(&mut self, name: &str) -> Option<String> {
        let node = self.nodes.get_mut(name)?;
        node.closed = true;
        let lost: Vec<u32> = std::mem::take(&mut node.tasks).into_iter().collect();
        if lost.is_empty() {
            return None;
        }
        self.code = self.code.max(LOST);
        self.ended.extend(&lost);
        let tasks = if lost.len() == 1 { "task" } else { "tasks" };
        Some(format!("{PROGRAM}: error: {name}: {tasks} {}: lost with the connection to the node", folded(&lost)))
    }

    /// Nodes that never came are given up. The line to be said, where there are any.
    pub fn give_up(&mut self) -> Option<String> {
        let all: usize = self.nodes.values().map(|node| node.tasks.len()).sum::<usize>() + self.ended.len();
        let started = |node: &Node| if node.attached { node.tasks.len() } else { 0 };
        let here = self.nodes.values().map(started).sum::<usize>() + self.ended.len();
        let missing: Vec<String> =
            self.nodes.iter().filter(|(_, node)| !node.attached).map(|(name, _)| name.clone()).collect();
        if missing.is_empty() {
            return None;
        }
        for node in self.nodes.values_mut().filter(|node| !node.attached) {
            (node.attached, node.closed, node.tasks) = (true, true, BTreeSet::new());
        }
        self.code = self.code.max(LOST);
        let why = format!("timeout waiting for task launch, started {here} of {all} tasks");
        Some(format!("{PROGRAM}: error: {why}; no word from {}", missing.join(", ")))
    }

    /// What the tasks are doing, in lines.
    pub fn status(&self) -> Vec<String> {
        let of = |attached: bool| {
            let nodes = self.nodes.values().filter(|node| node.attached == attached);
            nodes.flat_map(|node| node.tasks.iter().copied()).collect::<Vec<u32>>()
        };
        let groups = [(of(false), "unknown"), (of(true), "running"), (self.ended.iter().copied().collect(), "exited")];
        let told = groups.iter().filter(|(ranks, _)| !ranks.is_empty());
        told.map(|(ranks, state)| status(&self.step, ranks, state)).collect()
    }

    /// The exit code that the tasks add up to.
    pub fn code(&self) -> u8 {
        self.code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> Board {
        let part = |node: &str, tasks: &[u32]| v1::StepPart {
            node: node.into(),
            tasks: tasks.to_vec(),
            ..v1::StepPart::default()
        };
        let parts = vec![part("n1", &[0, 1]), part("n2", &[2])];
        Board::new("5.0".into(), &v1::StepPlan { parts, ..v1::StepPlan::default() })
    }

    fn exit(tasks: &[u32], code: i32) -> v1::StepExit {
        v1::StepExit { tasks: tasks.to_vec(), code, ..v1::StepExit::default() }
    }

    #[test]
    fn the_highest_code_counts_and_lost_tasks_are_told() {
        let mut board = board();
        board.attached("n1");
        assert!(!board.is_whole());
        board.attached("n2");
        assert_eq!(board.status(), ["srun: StepId=5.0 tasks 0-2: running"]);
        assert_eq!(board.exited("n1", exit(&[0], 0)), (None, false));
        let (line, bad) = board.exited("n1", exit(&[1], 3));
        assert_eq!((line.as_deref(), bad), (Some("srun: error: n1: task 1: Exited with exit code 3"), true));
        assert_eq!(board.status(), ["srun: StepId=5.0 task 2: running", "srun: StepId=5.0 tasks 0-1: exited"]);
        assert_eq!(board.closed("n1"), None);
        assert!(board.closed("n2").unwrap().contains("n2: task 2: lost"));
        assert!(board.is_over());
        assert_eq!(board.code(), 3);
    }

    #[test]
    fn nodes_that_never_came_are_given_up() {
        let mut board = board();
        board.attached("n1");
        board.exited("n1", exit(&[0], 0));
        let line = board.give_up().unwrap();
        assert!(line.contains("started 2 of 3 tasks; no word from n2"), "{line}");
        assert!(board.is_whole() && board.give_up().is_none(), "once is enough");
        assert!(!board.is_over());
        board.exited("n1", exit(&[1], 0));
        board.closed("n1");
        assert!(board.is_over());
        assert_eq!(board.code(), 1);
    }

    proptest::proptest! {
        #[test]
        fn whatever_nodes_say_the_step_ends_with_its_nodes(
            said in proptest::collection::vec(
                ("n[0-3]", proptest::collection::vec(0u32..5, 0..4), proptest::num::i32::ANY, proptest::num::i32::ANY, 0..4u8),
                0..30,
            )
        ) {
            let mut board = board();
            for (node, tasks, code, signal, what) in said {
                match what {
                    0 => board.attached(&node),
                    1 => drop(board.closed(&node)),
                    2 => drop(board.give_up()),
                    _ => drop(board.exited(&node, v1::StepExit { tasks, code, signal, core_dumped: false })),
                }
                board.status();
            }
            for node in ["n1", "n2"] {
                board.closed(node);
            }
            proptest::prop_assert!(board.is_over());
            proptest::prop_assert_eq!(board.ended.iter().filter(|rank| **rank > 2).count(), 0);
        }
    }

    #[test]
    fn a_node_speaks_of_its_own_tasks_once() {
        let mut board = board();
        assert_eq!(board.exited("n1", exit(&[2, 7], 9)), (None, false));
        assert_eq!(board.exited("n9", exit(&[0], 9)), (None, false));
        board.exited("n1", exit(&[0], 0));
        assert_eq!(board.exited("n1", exit(&[0], 9)), (None, false));
        assert_eq!(board.code(), 0);
    }
}
