//! NodeName lines: which nodes there are, and what features they have.

use super::error::{Found, Wrong, short};
use super::hosts::{Hosts, is_name};
use super::known::{self, NODE};
use super::pairs::Pair;
use super::report::{Outcome, Place};
use super::source::Statement;
use std::collections::BTreeMap;

/// A node of the site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its features, sorted: those of Slurm, and those that stand for queues and for the topology.
    pub features: Vec<String>,
    /// The line that it comes from, by its number in [`super::Site::hardware`].
    pub(super) line: usize,
}

/// What a line says of the hardware of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// The line.
    pub place: Place,
    /// In words: `64 CPUs, 512000 MiB, gpu:a100:4`; empty where it says nothing.
    pub text: String,
}

/// All nodes, in the order of the files.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub all: Vec<Node>,
    pub hardware: Vec<Hardware>,
    by_name: BTreeMap<String, usize>,
    /// Nodes by the features that Slurm's files give them.
    by_feature: BTreeMap<String, Vec<usize>>,
    defaults: BTreeMap<String, String>,
}

impl Nodes {
    pub fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The nodes to which Slurm's files give a feature.
    pub fn with_feature(&self, feature: &str) -> impl Iterator<Item = usize> {
        self.by_feature.get(feature).into_iter().flatten().copied()
    }

    /// Adds a feature to a node, in its place.
    pub fn add_feature(&mut self, node: usize, feature: &str) {
        let Some(node) = self.all.get_mut(node) else { return };
        if let Err(at) = node.features.binary_search_by(|known| known.as_str().cmp(feature)) {
            node.features.insert(at, feature.to_owned());
        }
    }

    /// Reads a line.
    pub fn read(&mut self, line: &mut Statement, hosts: &mut Hosts, found: &mut Found) {
        for pair in &line.pairs {
            if known::note(NODE, pair, &mut line.outcome) {
                note(pair, &mut line.outcome);
            }
        }
        let own = line.pairs.iter().map(|pair| (canonical(pair), pair.value.clone()));
        let Some(list) = line.value("NodeName") else { return };
        if list.eq_ignore_ascii_case("DEFAULT") {
            self.defaults.extend(own);
            let _ = hardware(&self.defaults, line, found);
            return line.outcome.take();
        }
        let mut keys = self.defaults.clone();
        keys.extend(own);
        let Some(names) = hosts.expand(&line.place, "NodeName", list, found) else { return };
        let features = features(&keys, line);
        if !hosts.spend(&line.place, names.len().saturating_mul(features.len()), found) {
            return;
        }
        let text = hardware(&keys, line, found);
        self.hardware.push(Hardware { place: line.place.clone(), text });
        let line_number = self.hardware.len() - 1;
        for name in names {
            if !is_name(&name) {
                found.add(&line.place, Wrong::Name { kind: "node", name: short(&name) });
                return;
            }
            if let Some(node) = self.find(&name).and_then(|at| self.all.get(at)) {
                let first = self.hardware.get(node.line).map_or(&line.place, |hardware| &hardware.place).clone();
                found.add(&line.place, Wrong::Twice { kind: "node", name, first });
                return;
            }
            self.by_name.insert(name.clone(), self.all.len());
            for feature in &features {
                self.by_feature.entry(feature.clone()).or_default().push(self.all.len());
            }
            self.all.push(Node { name, features: features.clone(), line: line_number });
        }
        line.outcome.take();
    }
}

/// One name for the keys that Slurm has two of.
fn canonical(pair: &Pair) -> String {
    match pair.lower().as_str() {
        "features" => "feature".into(),
        "procs" => "cpus".into(),
        "socketsperboard" => "sockets".into(),
        other => other.into(),
    }
}

/// What the keys become that are read here.
fn note(pair: &Pair, outcome: &mut Outcome) {
    let value = pair.value.to_ascii_lowercase();
    match pair.lower().as_str() {
        "state" => match value.as_str() {
            "unknown" | "idle" | "up" => outcome.take(),
            "future" | "cloud" => outcome.near(&pair.key, "the node is down until its agent comes"),
            _ => outcome.nothing(&pair.key, "`ephor node drain NODES --reason TEXT` takes nodes out of use"),
        },
        "threadspercore" if value != "1" => outcome.near(
            &pair.key,
            "an agent offers each hardware thread as a core; it offers fewer where its configuration says `cpus`",
        ),
        "gres" => {
            let other = value.split(',').any(|gres| gres.split(':').next() != Some("gpu") && !gres.is_empty());
            match other && value != "none" {
                true => outcome.nothing(
                    &pair.key,
                    "agents find GPUs; other kinds are not counted (a part of a GPU is --gpus=0.5)",
                ),
                false => outcome.by_itself(&pair.key, known::COUNTED),
            }
        }
        _ => {}
    }
}

/// The features of a line's nodes, sorted; those that Ephor does not take are told.
fn features(keys: &BTreeMap<String, String>, line: &mut Statement) -> Vec<String> {
    let list = keys.get("feature").map_or("", String::as_str);
    let mut features = Vec::new();
    for feature in list.split(',').map(str::trim).filter(|feature| !feature.is_empty()) {
        match is_name(feature) {
            true => features.push(feature.to_owned()),
            false => line.outcome.near(
                "Feature",
                format!("{} is left out: a feature has letters, digits and . _ - + @", short(feature)),
            ),
        }
    }
    features.sort();
    features.dedup();
    features
}

/// What the keys say of the hardware. What is wrong with a default was told where it stands.
fn hardware(keys: &BTreeMap<String, String>, line: &Statement, found: &mut Found) -> String {
    let mut number = |key: &str| -> Option<u64> {
        let lower = key.to_ascii_lowercase();
        let value = keys.get(&lower)?;
        let number = value.bytes().all(|b| b.is_ascii_digit()).then(|| value.parse::<u64>().ok()).flatten();
        if number.is_none_or(|n| n == 0) && line.pairs.iter().any(|pair| canonical(pair) == lower) {
            found.value(&line.place, key, value, "write a whole number of at least 1");
        }
        number
    };
    let parts = ["Boards", "Sockets", "CoresPerSocket", "ThreadsPerCore"].map(&mut number);
    let product = parts.iter().flatten().fold(1_u64, |all, n| all.saturating_mul(*n));
    let cpus = number("CPUs").or_else(|| parts.iter().any(Option::is_some).then_some(product));
    let memory = number("RealMemory");
    let mut text = Vec::new();
    text.extend(cpus.map(|n| format!("{n} CPUs")));
    text.extend(memory.map(|n| format!("{n} MiB")));
    let gres = keys.get("gres").filter(|gres| !gres.is_empty() && !gres.eq_ignore_ascii_case("none"));
    text.extend(gres.map(|gres| short(gres)));
    text.join(", ")
}
