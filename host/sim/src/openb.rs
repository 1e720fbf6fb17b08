//! The openb lists: pods that ask for cores, memory and whole or shared GPUs, and the nodes of their cluster.

use crate::csv;
use crate::limits::{GPUS, LOG_SECONDS, PROCESSORS};
use crate::line::BadLine;
use ephor_model::limits::{AMOUNT, DEVICES_PER_NODE, NODES};
use ephor_model::{Amounts, Device, NodeSpec, ResourceId};
use std::collections::BTreeSet;

/// How a list of pods begins.
pub const PODS: &str = "name,cpu_milli";
/// How a list of nodes begins.
pub const NODE_LIST: &str = "sn,cpu_milli";
/// Milli-GPUs of a whole one.
pub const WHOLE_GPU: i64 = 1000;

const POD_COLUMNS: [&str; 9] = [
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "creation_time",
    "deletion_time",
    "scheduled_time",
];
const NODE_COLUMNS: [&str; 5] = ["sn", "cpu_milli", "memory_mib", "gpu", "model"];

/// One pod as the list has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its line in the file, from 1.
    pub line: u32,
    /// Its name.
    pub name: String,
    /// Thousandths of a core.
    pub cpu_milli: i64,
    /// MiB.
    pub memory_mib: i64,
    /// GPUs.
    pub gpus: u32,
    /// Thousandths of each GPU: 1 to 1000; below 1000 only where it asks for one GPU.
    pub share: i64,
    /// GPU models that will do, sorted; none: any.
    pub models: Vec<String>,
    /// When it came, in seconds of the list.
    pub created: i64,
    /// How long it ran, in seconds; 0: not at all.
    pub run: i64,
}

impl Pod {
    /// What it asks of GPUs, in thousandths of one.
    pub fn milli_gpus(&self) -> i64 {
        i64::from(self.gpus) * self.share
    }
}

/// Reads a list of pods, in the order of the file.
///
/// # Errors
/// The first line that is not a pod.
pub fn pods(text: &[u8]) -> Result<Vec<Pod>, BadLine> {
    csv::rows(text, &POD_COLUMNS)?.iter().map(pod).collect()
}

fn pod(row: &csv::Row<'_>) -> Result<Pod, BadLine> {
    let gpus = row.number(3, i64::from(GPUS))? as u32;
    let milli = row.number(4, WHOLE_GPU)?;
    if gpus == 1 && milli == 0 {
        return Err(BadLine::new(row.line, "gpu_milli is 0 for one GPU; it must be within 1 and 1000"));
    }
    let models: BTreeSet<&str> = row.text(5).split('|').map(str::trim).filter(|model| !model.is_empty()).collect();
    let created = row.number(6, LOG_SECONDS)?;
    let began = row.number_or_none(8, LOG_SECONDS)?.unwrap_or(created);
    let gone = row.number_or_none(7, LOG_SECONDS)?.unwrap_or(began);
    Ok(Pod {
        line: row.line,
        name: row.text(0).to_owned(),
        cpu_milli: row.number(1, i64::from(PROCESSORS))?,
        memory_mib: row.number(2, AMOUNT)?,
        gpus,
        share: if gpus == 1 { milli } else { WHOLE_GPU },
        models: models.into_iter().map(str::to_owned).collect(),
        created,
        run: (gone - began).max(0),
    })
}

/// Reads a list of nodes, in the order of the file. A GPU's kind is its model.
///
/// # Errors
/// The first line that is not a node, or a name that stands there twice.
pub fn nodes(text: &[u8]) -> Result<Vec<NodeSpec>, BadLine> {
    let mut names = BTreeSet::new();
    let mut nodes = Vec::new();
    for row in csv::rows(text, &NODE_COLUMNS)? {
        let (name, model) = (row.text(0).to_owned(), row.text(4));
        let gpus = row.number(3, i64::from(DEVICES_PER_NODE))?;
        if gpus > 0 && model.is_empty() {
            return Err(BadLine::new(row.line, "the node has GPUs but no model"));
        }
        if name.is_empty() || !names.insert(name.clone()) {
            return Err(BadLine::new(row.line, format!("the node name '{name}' is empty or stands there twice")));
        }
        if nodes.len() >= NODES as usize {
            return Err(BadLine::new(row.line, format!("there are more than {NODES} nodes")));
        }
        let capacity = Amounts::new()
            .with(ResourceId::CPU, row.number(1, i64::from(PROCESSORS))?)
            .with(ResourceId::MEM, row.number(2, AMOUNT)?)
            .with(ResourceId::GPU, gpus * WHOLE_GPU);
        nodes.push(NodeSpec { devices: devices(&name, model, gpus), capacity, name, ..NodeSpec::default() });
    }
    Ok(nodes)
}

/// That many GPUs of a kind on a node.
pub fn devices(node: &str, kind: &str, count: i64) -> Vec<Device> {
    let device = |index| Device {
        kind: kind.to_owned(),
        uuid: format!("{node}/{index}"),
        mem_mib: 0,
        numa: -1,
        ..Device::default()
    };
    (0..count).map(device).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time";

    #[test]
    fn pods_as_they_stand() {
        let text = format!("{HEAD}\na,6000,12288,1,460,P100|G2,LS,Running,10,100,40\nb,1,2,0,0,,LS,Failed,5,7,\n");
        let pods = pods(text.as_bytes()).unwrap();
        assert_eq!((pods[0].gpus, pods[0].share, pods[0].milli_gpus(), pods[0].run), (1, 460, 460, 60));
        assert_eq!(pods[0].models, ["G2", "P100"]);
        assert_eq!((pods[1].gpus, pods[1].milli_gpus(), pods[1].created, pods[1].run), (0, 0, 5, 2));
    }

    #[test]
    fn nodes_as_they_stand() {
        let nodes = nodes(b"sn,cpu_milli,memory_mib,gpu,model\nn1,32000,1024,2,T4\nn2,500,1,0,\n").unwrap();
        assert_eq!(
            (nodes[0].name.as_str(), nodes[0].devices.len(), nodes[0].devices[1].kind.as_str()),
            ("n1", 2, "T4")
        );
        assert_eq!((nodes[0].capacity.get(ResourceId::GPU), nodes[1].capacity.get(ResourceId::CPU)), (2000, 500));
    }

    #[test]
    fn bad_lines_are_named() {
        for (row, part) in [
            ("a,x,1,0,0,,,,0,0,0", "line 2: cpu_milli is 'x'"),
            ("a,1,1,1,0,,,,0,0,0", "line 2: gpu_milli is 0"),
            ("a,1,1,1,1001,,,,0,0,0", "line 2: gpu_milli is '1001'"),
            ("a,1,1,1,1", "line 2: it has 5 fields"),
        ] {
            let error = pods(format!("{HEAD}\n{row}").as_bytes()).unwrap_err();
            assert!(error.to_string().contains(part), "{row}: {error}");
        }
        let head = "sn,cpu_milli,memory_mib,gpu,model";
        for (rows, part) in [
            ("a,1,1,1,", "line 2: the node has GPUs but no model"),
            ("a,1,1,0,\na,1,1,0,", "line 3: the node name 'a'"),
            ("a,1,1,2000,T4", "line 2: gpu is '2000'"),
        ] {
            let error = nodes(format!("{head}\n{rows}").as_bytes()).unwrap_err();
            assert!(error.to_string().contains(part), "{rows}: {error}");
        }
    }
}
