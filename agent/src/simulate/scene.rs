//! The file that describes virtual nodes.

use crate::files;
use crate::limits::CONFIG_BYTES;
use anyhow::{Context, bail, ensure};
use ephor_model::limits::{AMOUNT, DEVICES_PER_NODE, NAME_BYTES, NODES};
use ephor_proto::v1;
use serde::Deserialize;
use std::collections::HashSet;
use std::path::Path;

/// All virtual nodes of a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scene {
    #[serde(default)]
    nodes: Vec<Group>,
}

/// Nodes of one kind: `prefix` and `count` name them `prefix1`, `prefix2`, ..., or `names` does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    prefix: Option<String>,
    count: Option<u32>,
    #[serde(default)]
    names: Vec<String>,
    cpus: u32,
    memory_mib: u64,
    #[serde(default)]
    gpus: u32,
    #[serde(default = "some_gpu")]
    gpu_kind: String,
    #[serde(default)]
    gpu_memory_mib: u32,
    #[serde(default)]
    features: Vec<String>,
}

fn some_gpu() -> String {
    "gpu".into()
}

/// One virtual node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualNode {
    /// Its name.
    pub name: String,
    /// Cores.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// How many GPUs.
    pub gpus: u32,
    /// Their type.
    pub gpu_kind: String,
    /// Memory of each in MiB.
    pub gpu_memory_mib: u32,
    /// Features that requests may ask for.
    pub features: Vec<String>,
}

impl Scene {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, has unknown keys or names no node, one twice, or too many.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let read = || -> anyhow::Result<Self> {
            let bytes = files::read(path, CONFIG_BYTES)?.context("there is no such file")?;
            Self::parse(std::str::from_utf8(&bytes)?)
        };
        read().with_context(|| format!("cannot use the simulation file {}", path.display()))
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let scene: Self = toml::from_str(text)?;
        let mut seen = HashSet::new();
        for (number, group) in (1..).zip(&scene.nodes) {
            let (many, named) = (group.prefix.is_some() && group.count.is_some(), !group.names.is_empty());
            ensure!(many != named, "entry {number} of [[nodes]] needs `prefix` and `count`, or `names`");
            ensure!(group.cpus > 0 && group.memory_mib > 0, "entry {number} of [[nodes]] has no cores or no memory");
            ensure!(
                group.memory_mib <= AMOUNT.unsigned_abs() && group.gpus <= DEVICES_PER_NODE,
                "entry {number} of [[nodes]] has too much memory, or more than {DEVICES_PER_NODE} GPUs"
            );
            ensure!(group.count.unwrap_or(0) <= NODES, "entry {number} of [[nodes]] makes more than {NODES} nodes");
            for name in group.all_names() {
                ensure!(!name.is_empty() && name.len() <= NAME_BYTES, "'{name}' is no name of a node");
                if seen.len() >= NODES as usize {
                    bail!("there are more than {NODES} nodes");
                }
                ensure!(seen.insert(name.clone()), "node '{name}' occurs twice");
            }
        }
        ensure!(!seen.is_empty(), "it names no nodes: add [[nodes]] with prefix, count, cpus and memory_mib");
        Ok(scene)
    }

    /// All nodes, in the order of the file.
    pub fn into_nodes(self) -> Vec<VirtualNode> {
        let of_group = |group: Group| {
            let names: Vec<_> = group.all_names().collect();
            names.into_iter().map(move |name| VirtualNode {
                name,
                cpus: group.cpus,
                memory_mib: group.memory_mib,
                gpus: group.gpus,
                gpu_kind: group.gpu_kind.clone(),
                gpu_memory_mib: group.gpu_memory_mib,
                features: group.features.clone(),
            })
        };
        self.nodes.into_iter().flat_map(of_group).collect()
    }
}

impl Group {
    fn all_names(&self) -> impl Iterator<Item = String> + '_ {
        let prefix = self.prefix.as_deref().unwrap_or_default();
        let numbered = (1..=self.count.unwrap_or(0)).map(move |i| format!("{prefix}{i}"));
        numbered.chain(self.names.iter().cloned())
    }
}

impl VirtualNode {
    /// Cores, memory and GPUs as the wire counts them.
    pub fn capacity(&self) -> Vec<v1::Amount> {
        crate::config::capacity(self.cpus, self.memory_mib, self.gpus as usize)
    }

    /// Its GPUs, in the order of their index.
    pub fn devices(&self) -> Vec<v1::Device> {
        let device = |i| v1::Device {
            kind: self.gpu_kind.clone(),
            uuid: format!("{}-{i}", self.name),
            mem_mib: i64::from(self.gpu_memory_mib),
            numa: -1,
            ..v1::Device::default()
        };
        (0..self.gpus).map(device).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered_or_named() {
        let text = "[[nodes]]\nprefix='n'\ncount=3\ncpus=4\nmemory_mib=1000\ngpus=2\ngpu_kind='h100'\n\
                    [[nodes]]\nnames=['a']\ncpus=1\nmemory_mib=1\nfeatures=['x']\n";
        let nodes = Scene::parse(text).unwrap().into_nodes();
        assert_eq!(nodes.iter().map(|n| n.name.as_str()).collect::<Vec<_>>(), ["n1", "n2", "n3", "a"]);
        assert_eq!(nodes[0].devices()[1].uuid, "n1-1");
        assert_eq!(nodes[3].features, ["x"]);
        assert!(nodes[0].capacity().iter().any(|a| a.resource == "gpu" && a.value == 2000));
    }

    #[test]
    fn mistakes_are_told() {
        for (text, why) in [
            ("", "names no nodes"),
            ("[[nodes]]\nprefix='n'\ncpus=1\nmemory_mib=1", "needs `prefix` and `count`"),
            ("[[nodes]]\nnames=['a','a']\ncpus=1\nmemory_mib=1", "occurs twice"),
            ("[[nodes]]\nnames=['a']\ncpus=1\nmemory_mib=1\ncpu=2", "unknown field"),
            ("[[nodes]]\nnames=['a']\ncpus=0\nmemory_mib=1", "no cores"),
            ("[[nodes]]\nprefix='n'\ncount=4000000000\ncpus=1\nmemory_mib=1", "more than"),
        ] {
            let error = format!("{:#}", Scene::parse(text).unwrap_err());
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
