//! Whether a case ended as its file says.

use super::build::{Built, STUCK};
use super::file::{Case, Expected};
use crate::driver::Settled;
use ephor_core::cycle::Note;
use ephor_model::{Allocation, JobId, NodeId, ReasonCode};

/// Everything that is not as expected, in words.
pub(super) fn check(case: &Case, built: &Built, settled: &Settled) -> Vec<String> {
    let free = case.compare.is_some();
    let mut wrong = Vec::new();
    for (name, expected) in &case.expect {
        let Some(place) = built.places.get(name) else {
            wrong.push(format!("there is no job '{name}' of which something is expected"));
            continue;
        };
        let job = settled.jobs.get(*place).copied().unwrap_or_default();
        Checked { name, case, settled, job, free }.check(expected, &mut wrong);
    }
    if case.expect.is_empty() {
        wrong.push("nothing is expected of it that could be looked at".to_owned());
    }
    wrong
}

/// What a reason is called: by its code, or, where a rule of the policy stands against a job, by the word before the colon.
fn named(note: &Note) -> &str {
    match note.text.split_once(':') {
        Some((word, _)) if note.code == ReasonCode::Policy && word.chars().all(char::is_alphanumeric) => word,
        _ => note.code.name(),
    }
}

struct Checked<'a> {
    name: &'a str,
    case: &'a Case,
    settled: &'a Settled,
    job: JobId,
    /// Where jobs run does not count.
    free: bool,
}

impl Checked<'_> {
    fn check(&self, expected: &Expected, wrong: &mut Vec<String>) {
        let name = self.name;
        let state = &self.settled.outcome.state;
        let runs = state.attempts.get(&self.job).map(|attempt| attempt.allocation.clone());
        let pods: u32 = runs.iter().flat_map(|a| &a.parts).map(|part| part.tasks).sum();
        let should = match (expected.run, expected.wait) {
            (Some(run), _) => Some(run),
            (None, Some(wait)) => Some(!wait),
            (None, None) => None,
        };
        match (should, &runs) {
            (Some(true), None) => wrong.push(format!("{name} waits{}", self.reason())),
            (Some(false), Some(_)) => wrong.push(format!("{name} runs on {}", self.nodes(runs.as_deref()).join(", "))),
            _ => {}
        }
        if let Some(wanted) = expected.run_pods.filter(|wanted| *wanted != pods) {
            wrong.push(format!("{pods} pods of {name} run, not {wanted}"));
        }
        if let Some(wanted) = &expected.reason {
            let found = self.settled.notes.get(&self.job).map_or("None", named);
            if found != wanted {
                wrong.push(format!("{name} waits with the reason {found}, not {wanted}"));
            }
        }
        if let Some(wanted) = &expected.state {
            let ends = state.attempts.get(&self.job).is_some_and(|attempt| attempt.told_to_end().is_some());
            match wanted.as_str() {
                STUCK if ends => {}
                STUCK => wrong.push(format!("{name} was not told to end, or has ended")),
                _ => wrong.push(format!("whether {name} is '{wanted}' cannot be seen; {STUCK} can")),
            }
        }
        for (domain, wanted) in &expected.explain {
            match self.room_below(domain) {
                Some(found) if found == *wanted => {}
                Some(found) => wrong.push(format!("{name} is told that {domain} has room for {found}, not {wanted}")),
                None => wrong.push(format!("{name} is told nothing of {domain}{}", self.reason())),
            }
        }
        if let (Some(allocation), false) = (&runs, self.free) {
            self.place(expected, allocation, wrong);
        }
    }

    fn place(&self, expected: &Expected, allocation: &Allocation, wrong: &mut Vec<String>) {
        let name = self.name;
        let nodes = self.nodes(Some(allocation));
        if !expected.at.is_empty() {
            let mut wanted = expected.at.clone();
            wanted.sort();
            if nodes != wanted {
                wrong.push(format!("{name} runs on {}, not on {}", nodes.join(", "), wanted.join(", ")));
            }
        }
        if let Some(wanted) = expected.device {
            let devices: Vec<u32> = allocation.parts.iter().flat_map(|part| part.devices.iter().copied()).collect();
            if devices != [wanted] {
                wrong.push(format!("{name} runs on GPU {devices:?}, not {wanted}"));
            }
        }
        for (label, wanted) in &expected.within {
            let outside = |node: &String| self.case.cluster.get(node).and_then(|n| n.labels.get(label)) != Some(wanted);
            if let Some(node) = nodes.iter().find(|node| outside(node)) {
                wrong.push(format!("{name} runs on {node}, outside {label} {wanted}"));
            }
        }
    }

    /// The node of each pod, sorted.
    fn nodes(&self, allocation: Option<&Allocation>) -> Vec<String> {
        let mut nodes = Vec::new();
        for part in allocation.into_iter().flat_map(|a| &a.parts) {
            nodes.extend(std::iter::repeat_n(self.node(part.node), part.tasks as usize));
        }
        nodes.sort();
        nodes
    }

    fn node(&self, id: NodeId) -> String {
        self.settled.outcome.state.node_name(id)
    }

    /// How much of the job a domain of its level is said to have room for: `2 of 4`.
    fn room_below(&self, domain: &str) -> Option<String> {
        let note = self.settled.notes.get(&self.job)?;
        let (_, domains) = note.text.split_once("room below one ")?.1.split_once(": ")?;
        let of_domain =
            domains.split([',', ';']).find_map(|part| part.trim().strip_prefix(domain)?.strip_prefix(' '))?;
        Some(of_domain.split(' ').take(3).collect::<Vec<_>>().join(" "))
    }

    fn reason(&self) -> String {
        match self.settled.notes.get(&self.job) {
            Some(note) if !note.text.is_empty() => format!(": {}", note.text),
            _ => String::new(),
        }
    }
}
