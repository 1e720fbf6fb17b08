//! Reports that were not acknowledged, by number.

use crate::files::{self, Keep};
use ephor_proto::v1;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::Path;

/// Bits of a report's number that count within one start of the agent.
const COUNT_BITS: u32 = 40;

/// The open reports. They are made anew from the spool after a restart of the agent, with numbers never used before.
#[derive(Debug)]
pub struct Reports {
    next: u64,
    open: HashMap<u64, v1::Report>,
    by_node: HashMap<String, BTreeSet<u64>>,
    fresh: VecDeque<u64>,
}

impl Reports {
    /// No reports yet; numbers go on above those of every earlier start in this data folder.
    ///
    /// # Errors
    /// What the file system says.
    pub fn open(data: &Path) -> anyhow::Result<Self> {
        let path = data.join("starts");
        let earlier = files::read(&path, 32)?.and_then(|b| std::str::from_utf8(&b).ok()?.trim().parse::<u64>().ok());
        let starts = earlier.unwrap_or(0) + 1;
        files::replace(&path, format!("{starts}\n").as_bytes(), 0o600, Keep::UntilReboot)?;
        Ok(Self { next: starts << COUNT_BITS, open: HashMap::new(), by_node: HashMap::new(), fresh: VecDeque::new() })
    }

    /// Adds a report and gives its number.
    pub fn add(&mut self, node: &str, attempt: v1::AttemptRef, what: v1::report::What) -> u64 {
        let number = self.next;
        self.next += 1;
        self.open
            .insert(number, v1::Report { number, node: node.to_owned(), attempt: Some(attempt), what: Some(what) });
        self.by_node.entry(node.to_owned()).or_default().insert(number);
        self.fresh.push_back(number);
        number
    }

    /// Gives a report once more, if it is open.
    pub fn repeat(&mut self, number: u64) {
        if self.open.contains_key(&number) {
            self.fresh.push_back(number);
        }
    }

    /// The next report that nobody was given yet.
    pub fn take(&mut self) -> Option<v1::Report> {
        while let Some(number) = self.fresh.pop_front() {
            if let Some(report) = self.open.get(&number) {
                return Some(report.clone());
            }
        }
        None
    }

    /// The open reports of a node, oldest first.
    pub fn of_node(&self, node: &str) -> Vec<v1::Report> {
        self.by_node.get(node).into_iter().flatten().filter_map(|number| self.open.get(number)).cloned().collect()
    }

    /// Closes a report and gives it back; `None` where it is not open.
    pub fn close(&mut self, number: u64) -> Option<v1::Report> {
        let report = self.open.remove(&number)?;
        if let Some(numbers) = self.by_node.get_mut(&report.node) {
            numbers.remove(&number);
        }
        Some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_never_used_twice() {
        let folder = tempfile::tempdir().unwrap();
        let attempt = v1::AttemptRef { job: 1, attempt: 1 };
        let began = || v1::report::What::Began(v1::Began { at: 1 });
        let mut reports = Reports::open(folder.path()).unwrap();
        let first = reports.add("n", attempt, began());
        let second = reports.add("n", attempt, began());
        assert!(second > first);
        assert_eq!(reports.take().unwrap().number, first);
        assert!(reports.close(second).is_some() && reports.close(second).is_none());
        assert_eq!(reports.take(), None, "a closed report is not given");
        reports.repeat(first);
        assert_eq!(reports.take().unwrap().number, first);
        assert_eq!((reports.of_node("n").len(), reports.of_node("m").len()), (1, 0));
        assert!(Reports::open(folder.path()).unwrap().next > second);
    }
}
