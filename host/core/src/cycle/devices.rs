//! GPUs in the tables of a cycle: devices, their kinds as numbers, and where jobs can and do run.

use super::{Cycle, CycleRefusal};
use ephor_model::{JobId, NodeId};
use std::collections::BTreeSet;

/// Columns of table `devices`.
pub(super) const DEVICES: &[&str] = &["node", "index", "kind", "free"];

/// Columns of lists, by table.
const LISTS: &[(&str, &str)] = &[
    ("attempts", "on-nodes"),
    ("reservations", "on-nodes"),
    ("attempts", "gpu-kinds"),
    ("jobs", "gpu-kinds"),
    ("jobs", "could-use"),
    ("jobs", "placed"),
    ("jobs", "pools"),
    ("jobs", "draws"),
];

/// What a job's list says of a kind of GPU that no node has.
const NO_SUCH_KIND: i64 = -1;

/// The rows of table `devices`, and the kinds of all nodes.
pub(super) struct Devices {
    /// By node row: the rows of its devices end here.
    ends: Vec<u32>,
    /// Sorted: a kind's number is its place.
    kinds: Vec<String>,
}

impl Cycle {
    pub(super) fn devices(&self) -> &Devices {
        self.devices.get_or_init(|| {
            let mut kinds = BTreeSet::new();
            let mut end = 0;
            let ends = self.node_rows().iter().map(|id| {
                let devices = self.state.nodes.get(id).map_or(&[][..], |node| &node.spec.devices);
                kinds.extend(devices.iter().map(|d| d.kind.clone()));
                end += devices.len() as u32;
                end
            });
            let ends = ends.collect();
            Devices { ends, kinds: kinds.into_iter().collect() }
        })
    }

    /// A column of table `devices`.
    pub(super) fn device_column(&self, name: &str, rows: &[u32]) -> Result<Vec<i64>, CycleRefusal> {
        let devices = self.devices();
        // Rows of one node stand together as a rule, so that each node is looked at once.
        let mut free: Option<(NodeId, Vec<i64>)> = None;
        let mut column = Vec::with_capacity(rows.len());
        for row in rows {
            let unknown = || CycleRefusal::Other(format!("table devices has no row {row}"));
            let node_row = devices.ends.partition_point(|end| end <= row);
            let id = *self.node_rows().get(node_row).ok_or_else(unknown)?;
            let first = if node_row == 0 { 0 } else { devices.ends[node_row - 1] };
            let index = (row - first) as usize;
            column.push(match name {
                "node" => node_row as i64,
                "index" => index as i64,
                "kind" => {
                    let node = self.state.nodes.get(&id).ok_or_else(unknown)?;
                    node.spec.devices.get(index).map_or(NO_SUCH_KIND, |d| devices.kind(&d.kind))
                }
                _ => {
                    if free.as_ref().is_none_or(|(of, _)| *of != id) {
                        free = Some((id, self.replica.cluster.free_devices(id)));
                    }
                    free.as_ref().and_then(|(_, free)| free.get(index).copied()).unwrap_or(0)
                }
            });
        }
        Ok(column)
    }

    /// A column of lists: ends and values.
    ///
    /// # Errors
    /// As for [`Self::column`].
    pub fn ragged(&mut self, table: &str, name: &str, rows: &[u32]) -> Result<(Vec<u32>, Vec<i64>), CycleRefusal> {
        if !LISTS.contains(&(table, name)) {
            let known: Vec<String> = LISTS.iter().map(|(table, name)| format!("{name} of {table}")).collect();
            return Err(CycleRefusal::Other(format!("the only columns of lists are: {}", known.join(", "))));
        }
        self.spend(1 + rows.len() as u64)?;
        self.list_promises();
        let (mut ends, mut values) = (Vec::new(), Vec::new());
        for row in rows {
            match name {
                "on-nodes" if table == "reservations" => values.extend(self.reservation_nodes(*row)?),
                "on-nodes" => {
                    let parts = &self.attempt(*row)?.allocation.parts;
                    values.extend(parts.iter().filter_map(|p| self.node_row(p.node)).map(i64::from));
                }
                "pools" | "draws" => values.extend(self.pools_cell(name, *row)?),
                "gpu-kinds" => {
                    let job = if table == "jobs" { self.job(*row)? } else { self.attempt(*row)?.key.job };
                    values.extend(self.kinds_of(job)?);
                }
                "could-use" => {
                    let before = values.len();
                    values.extend(self.could_use(*row)?);
                    self.spend((values.len() - before) as u64)?;
                }
                _ => {
                    let job = self.job(*row)?;
                    let claim = self.promise_of(job).filter(|held| held.claim).map(|held| held.allocation);
                    let placed = self.planned_start(job).or(claim.as_deref());
                    let parts = placed.into_iter().flat_map(|allocation| &allocation.parts);
                    values.extend(parts.filter_map(|p| self.node_row(p.node)).map(i64::from));
                }
            }
            ends.push(values.len() as u32);
        }
        Ok((ends, values))
    }

    /// The kinds of GPU that will do for a job; none: any.
    fn kinds_of(&self, id: JobId) -> Result<Vec<i64>, CycleRefusal> {
        let Some((entry, _)) = self.state.element(id) else {
            return Err(CycleRefusal::Other(format!("job {id} is gone")));
        };
        Ok(entry.job.spec.request.gpu_types.iter().map(|kind| self.devices().kind(kind)).collect())
    }

    /// The nodes that are up and have room for a useful part of a job when they are empty.
    fn could_use(&self, row: u32) -> Result<Vec<i64>, CycleRefusal> {
        let id = self.job(row)?;
        let Some(pending) = self.replica.pending(id) else {
            return Err(CycleRefusal::Other("that job is not pending".into()));
        };
        let nodes = self.replica.cluster.suitable(pending.class);
        Ok(nodes.filter_map(|id| self.node_row(id)).map(i64::from).collect())
    }
}

impl Devices {
    /// How many devices there are.
    pub fn count(&self) -> usize {
        self.ends.last().copied().unwrap_or(0) as usize
    }

    fn kind(&self, name: &str) -> i64 {
        self.kinds.binary_search_by(|kind| kind.as_str().cmp(name)).map_or(NO_SUCH_KIND, |i| i as i64)
    }
}
