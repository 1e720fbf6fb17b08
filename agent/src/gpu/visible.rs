//! What a job sees of the node's GPUs: its own ones, by uuid or by index.

use super::inventory::Known;
use serde::{Deserialize, Serialize};

/// The variable that says which GPUs a program may see. What a job came with in it is never passed on.
pub const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";

/// How jobs are told which GPUs are theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Visible {
    /// By uuid, which means the same whatever else a process can see.
    #[default]
    Uuid,
    /// By the index that programs count them by, in the order of their PCI addresses; for programs that want numbers.
    Index,
}

/// The names of the node's GPUs for its jobs, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visibility {
    uuids: Vec<String>,
    /// Of whole GPUs where they are told by index; `None` is told by uuid.
    indices: Vec<Option<u32>>,
}

impl Visibility {
    pub(super) fn of(known: &[Known], how: Visible) -> Self {
        let index = |k: &Known| (how == Visible::Index && k.found.part_of.is_none()).then_some(k.found.index);
        Self { uuids: known.iter().map(|k| k.found.uuid.clone()).collect(), indices: known.iter().map(index).collect() }
    }

    /// The environment entries that show an attempt its GPUs and hide the others; none on a node without GPUs. Who has a
    /// share of a GPU sees it as who has all of it.
    ///
    /// # Errors
    /// An index that the node does not have.
    pub fn entries(&self, held: &[u32]) -> Result<Vec<String>, String> {
        if self.uuids.is_empty() && held.is_empty() {
            return Ok(Vec::new());
        }
        let count = self.uuids.len();
        if let Some(strange) = held.iter().find(|i| **i as usize >= count) {
            return Err(format!("GPU {strange} is not on this node, which has {count}"));
        }
        let places = || held.iter().map(|i| *i as usize);
        // The runtime reads either numbers or uuids: one instance turns all to uuids.
        let indices: Option<Vec<String>> = places().map(|i| self.indices[i].map(|n| n.to_string())).collect();
        Ok(match indices.filter(|indices| !indices.is_empty()) {
            Some(indices) => {
                vec!["CUDA_DEVICE_ORDER=PCI_BUS_ID".into(), format!("{VISIBLE}={}", indices.join(","))]
            }
            None => {
                let uuids: Vec<&str> = places().map(|i| self.uuids[i].as_str()).collect();
                vec![format!("{VISIBLE}={}", uuids.join(","))]
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::Found;
    use super::*;

    fn known(uuid: &str, index: u32, part_of: Option<&str>) -> Known {
        let part_of = part_of.map(str::to_owned);
        Known { found: Found { uuid: uuid.into(), index, part_of, ..Found::default() }, absent: None }
    }

    #[test]
    fn a_job_sees_its_gpus_and_no_others() {
        let gpus = [known("GPU-a", 1, None), known("GPU-b", 0, None), known("MIG-c", 2, Some("GPU-d"))];
        let by_uuid = Visibility::of(&gpus, Visible::Uuid);
        assert_eq!(by_uuid.entries(&[1, 0]), Ok(vec!["CUDA_VISIBLE_DEVICES=GPU-b,GPU-a".into()]));
        assert_eq!(by_uuid.entries(&[]), Ok(vec!["CUDA_VISIBLE_DEVICES=".into()]));
        assert_eq!(Visibility::of(&[], Visible::Uuid).entries(&[]), Ok(vec![]));
        assert!(by_uuid.entries(&[3]).unwrap_err().contains("which has 3"));
        let by_index = Visibility::of(&gpus, Visible::Index);
        let entries = vec!["CUDA_DEVICE_ORDER=PCI_BUS_ID".to_owned(), "CUDA_VISIBLE_DEVICES=1,0".into()];
        assert_eq!(by_index.entries(&[0, 1]), Ok(entries), "as programs count them, not as we do");
        assert_eq!(by_index.entries(&[0, 2]), Ok(vec!["CUDA_VISIBLE_DEVICES=GPU-a,MIG-c".into()]));
        assert_eq!(by_index.entries(&[]), Ok(vec!["CUDA_VISIBLE_DEVICES=".into()]));
    }
}
