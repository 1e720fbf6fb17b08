//! Which cluster is simulated: one node of so many processors, groups of nodes from a TOML file, or an openb node list.

use crate::limits::PROCESSORS;
use crate::line::BadLine;
use crate::openb::{self, WHOLE_GPU, devices};
use ephor_model::limits::{DEVICES_PER_NODE, NODES};
use ephor_model::submit::{hostlist, parse_mib};
use ephor_model::{Amounts, NodeSpec, Queue, ResourceId};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;

/// Nodes, and queues with settings of their own (with the name of the queue above, where there is one).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimCluster {
    /// The nodes, in the order in which they register.
    pub nodes: Vec<NodeSpec>,
    /// Queues; those that jobs name and that are not here have no settings.
    pub queues: Vec<(Queue, Option<String>)>,
}

impl SimCluster {
    /// One node with that many processors and nothing else.
    pub fn one_node(processors: u32) -> Self {
        let capacity = Amounts::new().with(ResourceId::CPU, i64::from(processors) * 1000);
        Self { nodes: vec![NodeSpec { name: "node1".into(), capacity, ..NodeSpec::default() }], queues: Vec::new() }
    }

    /// The nodes of an openb list.
    ///
    /// # Errors
    /// The first line that is not a node.
    pub fn of_node_list(text: &[u8]) -> Result<Self, BadLine> {
        Ok(Self { nodes: openb::nodes(text)?, queues: Vec::new() })
    }

    /// The groups of nodes and the queues of a TOML file; `docs/simulation.md` shows one.
    ///
    /// # Errors
    /// What is wrong, with its line.
    pub fn of_toml(text: &str) -> Result<Self, BadLine> {
        let source = Source(text);
        let file: File = toml::from_str(text).map_err(|e| {
            let message = e.message().lines().collect::<Vec<_>>().join("; ");
            source.error(&e.span().unwrap_or_default(), message)
        })?;
        let mut cluster = Self::default();
        let mut names = BTreeSet::new();
        for group in &file.nodes {
            for node in source.group(group)? {
                if !names.insert(node.name.clone()) {
                    return Err(source.error(&group.name.span(), format!("the node '{}' is named twice", node.name)));
                }
                cluster.nodes.push(node);
            }
        }
        let mut names = BTreeSet::new();
        for entry in file.queue {
            let (name, span) = (entry.name.get_ref().clone(), entry.name.span());
            if name.is_empty() || !names.insert(name.clone()) {
                return Err(source.error(&span, format!("the queue '{name}' has no name or is named twice")));
            }
            cluster.queues.push((source.queue(&entry)?, entry.parent));
        }
        if cluster.nodes.is_empty() {
            return Err(BadLine::new(1, "there are no nodes; a group of them begins with [[nodes]]"));
        }
        Ok(cluster)
    }

    /// All capacity together.
    pub fn capacity(&self) -> Amounts {
        let mut all = Amounts::new();
        self.nodes.iter().for_each(|node| all.add(&node.capacity));
        all
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    nodes: Vec<Group>,
    #[serde(default)]
    queue: Vec<QueueEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: Spanned<String>,
    count: Option<Spanned<u32>>,
    cpu: Spanned<u32>,
    memory: Option<Spanned<String>>,
    gpus: Option<Spanned<u32>>,
    gpu_type: Option<Spanned<String>>,
    #[serde(default)]
    features: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueEntry {
    name: Spanned<String>,
    parent: Option<String>,
    #[serde(default)]
    priority: i64,
    #[serde(default = "equal_part")]
    weight: u32,
    #[serde(default)]
    node_features: Vec<String>,
    #[serde(default)]
    quota: Asked,
    #[serde(default)]
    limit: Asked,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    cpu: Option<Spanned<f64>>,
    memory: Option<Spanned<String>>,
    gpu: Option<Spanned<f64>>,
}

fn equal_part() -> u32 {
    1
}

/// The text of the file, for lines in errors.
struct Source<'a>(&'a str);

impl Source<'_> {
    fn error(&self, span: &Range<usize>, what: impl Into<String>) -> BadLine {
        let before = self.0.get(..span.start).unwrap_or(self.0);
        BadLine::new(u32::try_from(before.matches('\n').count() + 1).unwrap_or(u32::MAX), what)
    }

    fn group(&self, group: &Group) -> Result<Vec<NodeSpec>, BadLine> {
        let cpu = *group.cpu.get_ref();
        if !(1..=PROCESSORS).contains(&cpu) {
            return Err(self.error(&group.cpu.span(), format!("cpu is {cpu}; it must be within 1 and {PROCESSORS}")));
        }
        let gpus = group.gpus.as_ref().map_or(0, |gpus| *gpus.get_ref());
        if let Some(written) = group.gpus.as_ref().filter(|_| gpus > DEVICES_PER_NODE) {
            let what = format!("gpus is {gpus}; a node has at most {DEVICES_PER_NODE}");
            return Err(self.error(&written.span(), what));
        }
        let kind = match &group.gpu_type {
            Some(kind) if gpus == 0 => {
                return Err(self.error(&kind.span(), "gpu_type is given for nodes without gpus"));
            }
            kind => kind.as_ref().map_or("gpu", |kind| kind.get_ref()),
        };
        let capacity = Amounts::new()
            .with(ResourceId::CPU, i64::from(cpu) * 1000)
            .with(ResourceId::MEM, self.memory(group.memory.as_ref())?)
            .with(ResourceId::GPU, i64::from(gpus) * WHOLE_GPU);
        let node = |name: String| NodeSpec {
            devices: devices(&name, kind, i64::from(gpus)),
            capacity: capacity.clone(),
            features: group.features.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect(),
            name,
            ..NodeSpec::default()
        };
        Ok(self.names(group)?.into_iter().map(node).collect())
    }

    /// A list in brackets says its count itself; another name gets numbers behind it where a count is given.
    fn names(&self, group: &Group) -> Result<Vec<String>, BadLine> {
        let (pattern, span) = (group.name.get_ref(), group.name.span());
        let listed = hostlist::expand(pattern).map_err(|what| self.error(&span, what))?;
        let Some(count) = &group.count else { return Ok(listed) };
        let (count, span) = (*count.get_ref(), count.span());
        if !(1..=NODES).contains(&count) {
            return Err(self.error(&span, format!("count is {count}; it must be within 1 and {NODES}")));
        }
        match listed.as_slice() {
            [one] if one == pattern => Ok((1..=count).map(|n| format!("{pattern}{n}")).collect()),
            _ if listed.len() == count as usize => Ok(listed),
            _ => Err(self.error(&span, format!("count is {count}, but '{pattern}' names {} nodes", listed.len()))),
        }
    }

    fn memory(&self, written: Option<&Spanned<String>>) -> Result<i64, BadLine> {
        let Some(written) = written else { return Ok(0) };
        let mib = parse_mib(written.get_ref()).map_err(|what| self.error(&written.span(), what))?;
        Ok(i64::try_from(mib).unwrap_or(i64::MAX))
    }

    fn queue(&self, entry: &QueueEntry) -> Result<Queue, BadLine> {
        Ok(Queue {
            name: entry.name.get_ref().clone(),
            priority: entry.priority,
            weight: i64::from(entry.weight),
            node_features: entry.node_features.clone(),
            quota: self.amounts(&entry.quota)?,
            limit: self.amounts(&entry.limit)?,
            ..Queue::default()
        })
    }

    fn amounts(&self, asked: &Asked) -> Result<Amounts, BadLine> {
        let mut amounts = Amounts::new();
        for (id, written) in [(ResourceId::CPU, &asked.cpu), (ResourceId::GPU, &asked.gpu)] {
            let Some(written) = written else { continue };
            let number = *written.get_ref();
            if !(0.0..=f64::from(PROCESSORS)).contains(&number) {
                return Err(self.error(&written.span(), format!("{number} must be within 0 and {PROCESSORS}")));
            }
            amounts.set(id, (number * 1000.0).round() as i64);
        }
        amounts.set(ResourceId::MEM, self.memory(asked.memory.as_ref())?);
        Ok(amounts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_queues() {
        let cluster = SimCluster::of_toml(
            r#"
            [[nodes]]
            name = "big[01-03]"
            cpu = 64
            memory = "512G"
            gpus = 8
            gpu_type = "p100"
            features = ["ib", "fast"]
            [[nodes]]
            name = "small"
            count = 2
            cpu = 8
            [[queue]]
            name = "vc1"
            quota = { gpu = 2.5, memory = "1G" }
            "#,
        )
        .unwrap();
        let names: Vec<_> = cluster.nodes.iter().map(|n| n.name.as_str()).collect();
        assert_eq!(names, ["big01", "big02", "big03", "small1", "small2"]);
        let first = &cluster.nodes[0];
        assert_eq!((first.devices.len(), first.devices[7].kind.as_str()), (8, "p100"));
        assert_eq!(first.features, ["fast", "ib"]);
        assert_eq!(cluster.capacity().get(ResourceId::CPU), 208_000);
        assert_eq!(cluster.capacity().get(ResourceId::GPU), 24_000);
        let (queue, _) = &cluster.queues[0];
        assert_eq!((queue.quota.get(ResourceId::GPU), queue.quota.get(ResourceId::MEM)), (2500, 1024));
    }

    #[test]
    fn what_is_wrong_stands_with_its_line() {
        for (text, part) in [
            ("", "line 1: there are no nodes"),
            ("[[nodes]]\nname = \"a\"\ncpu = 0", "line 3: cpu is 0"),
            ("[[nodes]]\nname = \"a\"\ncpus = 1", "line 3: unknown field `cpus`"),
            ("[[nodes]]\nname = \"a\"\ncpu = 1\nmemory = \"1X\"", "line 4: "),
            ("[[nodes]]\nname = \"a\"\ncpu = 1\ngpu_type = \"x\"", "line 4: gpu_type is given"),
            ("[[nodes]]\nname = \"a\"\ncpu = 1\ngpus = 5000", "line 4: gpus is 5000; a node has at most"),
            ("[[nodes]]\nname = \"a[1-2]\"\ncount = 3\ncpu = 1", "line 3: count is 3, but 'a[1-2]' names 2"),
            ("[[nodes]]\nname = \"a[1-\"\ncpu = 1", "line 2: "),
            (
                "[[nodes]]\nname = \"a\"\ncpu = 1\n[[nodes]]\nname = \"a\"\ncpu = 1",
                "line 5: the node 'a' is named twice",
            ),
            ("[[nodes]]\nname=\"a\"\ncpu=1\n[[queue]]\nname=\"q\"\nlimit={gpu=-1}", "line 6: -1 must be within"),
        ] {
            let error = SimCluster::of_toml(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
