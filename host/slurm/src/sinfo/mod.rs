//! `sinfo`: its command line, and nodes put together into lines.

pub mod fields;
pub mod table;

use crate::columns::{self, Column, Format, Piece, natural};
use crate::failure::Failure;
use crate::show::Shown;
use crate::table::list;
use ephor_model::submit::hostlist;
use ephor_model::{Span, Timestamp};
use fields::FIELDS;
use std::collections::BTreeMap;
use std::rc::Rc;
use table::{Key, TABLE};

/// Name of the command in messages.
pub const PROGRAM: &str = "sinfo";

/// A node as `sinfo` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the property of the node that has its name")]
pub struct NodeView {
    pub name: String,
    pub address: String,
    pub state: NodeState,
    pub cpus: i64,
    pub cpus_used: i64,
    pub memory: i64,
    pub memory_used: i64,
    /// GPUs by type: how many there are, and how many are in use.
    pub gpus: Vec<(String, u32, u32)>,
    pub features: Vec<String>,
    pub reason: String,
    pub reason_by: String,
    pub reason_since: Option<Timestamp>,
    pub version: String,
}

/// Where a node is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "they are Slurm's, by name")]
pub enum NodeState {
    Drained,
    Draining,
    Down,
    Mixed,
    Allocated,
    Idle,
    Unknown,
}

impl NodeState {
    /// Each with the name of the controller, its long and its short name. A node that is down is so because it is silent.
    const NAMES: [(Self, &str, &str, &str); 7] = [
        (Self::Drained, "DRAINED", "drained", "drain"),
        (Self::Draining, "DRAINING", "draining", "drng"),
        (Self::Down, "DOWN", "down*", "down*"),
        (Self::Mixed, "MIXED", "mixed", "mix"),
        (Self::Allocated, "ALLOCATED", "allocated", "alloc"),
        (Self::Idle, "IDLE", "idle", "idle"),
        (Self::Unknown, "UNKNOWN", "unknown*", "unk*"),
    ];

    /// Reads the controller's name of it.
    pub fn read(name: &str) -> Self {
        Self::NAMES.iter().find(|(_, known, _, _)| *known == name).map_or(Self::Unknown, |(state, ..)| *state)
    }

    fn names(self) -> (&'static str, &'static str) {
        let found = Self::NAMES.iter().find(|(state, ..)| *state == self);
        found.map_or(("unknown*", "unk*"), |(_, _, long, short)| (long, short))
    }

    /// As `scontrol` writes it: a state, and what is added to it.
    pub fn flags(self) -> &'static str {
        match self {
            Self::Drained => "IDLE+DRAIN",
            Self::Draining => "MIXED+DRAIN",
            Self::Down => "DOWN*",
            Self::Mixed => "MIXED",
            Self::Allocated => "ALLOCATED",
            Self::Idle => "IDLE",
            Self::Unknown => "UNKNOWN*",
        }
    }

    /// `idle`, `drained`.
    pub fn long(self) -> &'static str {
        self.names().0
    }

    /// `idle`, `drain`.
    pub fn short(self) -> &'static str {
        self.names().1
    }
}

/// A partition as `sinfo` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the property of the queue that has its name")]
pub struct PartitionView {
    pub name: String,
    pub default: bool,
    /// `up`, `drain`, `inact` or `down`.
    pub available: &'static str,
    pub max_time: Option<Span>,
    pub default_time: Option<Span>,
    pub max_nodes: Option<u32>,
    pub priority: i64,
    /// In MiB.
    pub default_mem_per_cpu: Option<u64>,
    /// Its nodes, by their place in the list of all.
    pub nodes: Vec<usize>,
}

/// Nodes of a partition that are shown on one line.
#[derive(Clone, Debug)]
pub struct Group {
    /// The partition, where its name is shown.
    pub partition: Option<Rc<PartitionView>>,
    /// The nodes.
    pub nodes: Vec<Rc<NodeView>>,
}

/// The command line, read.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "each is what the option of its name asks for")]
pub struct Query {
    pub partitions: Vec<String>,
    pub nodes: Vec<String>,
    pub states: Vec<NodeState>,
    pub by_node: bool,
    pub long: bool,
    pub summary: bool,
    pub reasons: bool,
    pub heading: bool,
    pub format: Option<String>,
    pub long_format: Option<String>,
    pub sort: Option<String>,
    pub json: bool,
    pub version: bool,
    pub help: bool,
}

impl Query {
    /// Reads the words after the command's name, and the variables `SINFO_*`.
    ///
    /// # Errors
    /// What is no option or value, in the lines that clients know.
    pub fn read(words: &[String], variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let (options, _) = crate::table::read(PROGRAM, TABLE, words, variable)?;
        let mut query = Self { heading: true, ..Self::default() };
        for (key, value) in options {
            query.take(key, value)?;
        }
        Ok(query)
    }

    fn take(&mut self, key: Key, value: String) -> Result<(), Failure> {
        match key {
            Key::Partitions => self.partitions = list(&value),
            Key::Nodes => {
                let fail = |why: String| Failure::error(PROGRAM, format!("Bad node list: {why}"), 1);
                self.nodes = hostlist::expand(&value).map_err(fail)?;
            }
            Key::States => self.states = states(&list(&value))?,
            Key::Node => self.by_node = true,
            Key::Long => self.long = true,
            Key::Summarize => self.summary = true,
            Key::Reasons => self.reasons = true,
            Key::NoHeader => self.heading = false,
            Key::Format => (self.format, self.long_format) = (Some(value), None),
            Key::LongFormat => (self.format, self.long_format) = (None, Some(value)),
            Key::Sort => {
                let bad = |c| Failure::error(PROGRAM, format!("Invalid sort specification: {c}"), 1);
                columns::order(FIELDS, &value).map_err(bad)?;
                self.sort = Some(value);
            }
            Key::Json => self.json = true,
            Key::Version => self.version = true,
            Key::Help => self.help = true,
        }
        Ok(())
    }

    /// Whether a node was asked for, whatever its partition.
    pub fn wants(&self, node: &NodeView) -> bool {
        (self.nodes.is_empty() || self.nodes.contains(&node.name))
            && (self.states.is_empty() || self.states.contains(&node.state))
            && (!self.reasons || !node.reason.is_empty())
    }

    /// The format of a line, where `nodes` and `partitions` are the longest names.
    pub fn pieces(&self, nodes: usize, partitions: usize) -> Format<Group> {
        let (n, p) = (nodes.max(8), partitions.max(9));
        let plain = match (&self.format, &self.long_format) {
            (Some(format), _) => return columns::short(FIELDS, format),
            (None, Some(format)) => return columns::long(FIELDS, format),
            (None, None) if self.reasons && self.long => "%20E %12U %19H %6t %N".to_owned(),
            (None, None) if self.reasons => "%20E %9u %19H %N".to_owned(),
            (None, None) if self.summary => "%9P %.5a %.10l %.16F %N".to_owned(),
            (None, None) => match (self.by_node, self.long) {
                (true, true) => format!("%{n}N %.6D %{p}P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"),
                (true, false) => format!("%{n}N %.6D %{p}P %6t"),
                (false, true) => "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N".to_owned(),
                (false, false) => "%9P %.5a %.10l %.6D %.6t %N".to_owned(),
            },
        };
        columns::short(FIELDS, &plain)
    }

    /// The lines to show: nodes that the format makes look alike stand on one.
    pub fn groups(
        &self,
        pieces: &[Piece<Group>],
        partitions: &[Rc<PartitionView>],
        nodes: &[Rc<NodeView>],
        shown: &Shown,
    ) -> Vec<Group> {
        let fields: Vec<&Column<Group>> = pieces
            .iter()
            .filter_map(|piece| match piece {
                Piece::Column(column, _) => Some(*column),
                Piece::Text(_) => None,
            })
            .collect();
        let named = fields.iter().any(|column| fields::is_of_partition(column));
        let of_nodes = fields.iter().any(|column| !fields::is_of_partition(column));
        let keys: Vec<_> = fields.iter().filter(|column| !fields::is_of_group(column)).collect();
        let wanted = partitions
            .iter()
            .enumerate()
            .filter(|(_, p)| self.partitions.is_empty() || self.partitions.contains(&p.name));
        let mut lines: BTreeMap<(usize, u8, String), Group> = BTreeMap::new();
        for (number, partition) in wanted {
            let name = named.then(|| partition.clone());
            let place = if named { number } else { 0 };
            let mut empty = true;
            for node in partition.nodes.iter().filter_map(|at| nodes.get(*at)).filter(|node| self.wants(node)) {
                empty = false;
                let alone = Group { partition: name.clone(), nodes: vec![node.clone()] };
                let mut key: String = keys.iter().map(|column| (column.value)(&alone, shown) + "\u{1f}").collect();
                if self.by_node {
                    key = format!("{}\u{1f}{key}", node.name);
                }
                let state = if of_nodes { node.state as u8 } else { 0 };
                let by_state = keys
                    .iter()
                    .any(|column| matches!(column.code, Some('t' | 'T')) || column.long.starts_with("state"));
                let line = lines.entry((place, if by_state { state } else { 0 }, key));
                let group = line.or_insert_with(|| Group { partition: name.clone(), nodes: Vec::new() });
                if !group.nodes.iter().any(|other| Rc::ptr_eq(other, node)) {
                    group.nodes.push(node.clone());
                }
            }
            if empty && named && !self.by_node && !self.reasons {
                lines.insert((place, 0, String::new()), Group { partition: name, nodes: Vec::new() });
            }
        }
        let mut groups: Vec<Group> = lines.into_values().collect();
        if self.by_node {
            groups.sort_by(|a, b| natural(first_name(a), first_name(b)));
        }
        for (column, descending) in
            columns::order(FIELDS, self.sort.as_deref().unwrap_or_default()).unwrap_or_default().iter().rev()
        {
            groups.sort_by(|a, b| {
                let ordering = natural(&(column.value)(a, shown), &(column.value)(b, shown));
                if *descending { ordering.reverse() } else { ordering }
            });
        }
        groups
    }
}

fn first_name(group: &Group) -> &str {
    group.nodes.first().map_or("", |node| &node.name)
}

fn states(words: &[String]) -> Result<Vec<NodeState>, Failure> {
    let mut all = Vec::new();
    for word in words {
        let word = word.to_ascii_lowercase();
        match word.as_str() {
            "all" => return Ok(Vec::new()),
            "drain" => all.extend([NodeState::Drained, NodeState::Draining]),
            "alloc" => all.push(NodeState::Allocated),
            "mix" => all.push(NodeState::Mixed),
            "no_respond" => all.push(NodeState::Down),
            "unk" => all.push(NodeState::Unknown),
            "maint" | "resv" | "reserved" | "planned" | "fail" | "failing" | "completing" | "comp" | "future"
            | "reboot" => {}
            _ => {
                let found = NodeState::NAMES.iter().find(|(_, name, _, _)| name.eq_ignore_ascii_case(&word));
                let Some((state, ..)) = found else {
                    let names: Vec<String> =
                        NodeState::NAMES.iter().map(|(_, name, _, _)| name.to_ascii_lowercase()).collect();
                    let failure = Failure::error(PROGRAM, format!("valid states: {}", names.join(",")), 1);
                    return Err(failure.after(format!("{PROGRAM}: error: Bad state string: \"{word}\"")));
                };
                all.push(*state);
            }
        }
    }
    Ok(all)
}

/// What a line says whose format names no column.
pub fn unknown_field(name: &str) -> String {
    match name.chars().count() {
        1 => format!("Invalid node format specification: {name}"),
        _ => format!("{PROGRAM}: error: Invalid job format specification: {name}"),
    }
}

/// The help of the command.
pub fn help() -> String {
    crate::table::help(PROGRAM, "", TABLE)
}
