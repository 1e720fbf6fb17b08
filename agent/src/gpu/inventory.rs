//! Which GPU has which index. An index stays with its GPU until the next boot, whatever becomes of the others: running
//! attempts, and the controller, know GPUs by it.

use super::Gpu;
use super::driver::Found;
use crate::files::{self, Keep};
use crate::limits::CONFIG_BYTES;
use anyhow::Context;
use ephor_model::limits::DEVICES_PER_NODE;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file in the agent's folder.
const FILE: &str = "gpus.json";

/// One index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its GPU, as it was found last.
    pub found: Found,
    /// Why it cannot be given to jobs, where it is not there.
    pub absent: Option<String>,
}

/// The GPUs by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// By index.
    pub known: Vec<Known>,
    /// What an administrator should know.
    pub notes: Vec<String>,
}

impl Inventory {
    /// Gives each GPU its index: those of this boot keep theirs, then come the listed ones in the order of the list,
    /// then all others as they were found. One that was there or is listed and is not found is kept as absent. While no
    /// attempt is held (`busy`), parts that are gone because a GPU was split another way are forgotten.
    pub fn settle(mut found: Vec<Found>, listed: &[Gpu], before: Vec<Found>, busy: bool) -> Self {
        let mut out = Self::default();
        let take = |found: &mut Vec<Found>, uuid: &str| {
            let at = found.iter().position(|f| f.uuid == uuid)?;
            Some(found.remove(at))
        };
        let is_there =
            |found: &[Found], uuid: &str| found.iter().any(|f| f.uuid == uuid || f.part_of.as_deref() == Some(uuid));
        let all = found.clone();
        for old in before {
            match take(&mut found, &old.uuid) {
                Some(found) => out.known.push(Known { found, absent: None }),
                None => {
                    // Its GPU is there and is split another way now, or not at all.
                    let resplit =
                        is_there(&all, &old.uuid) || old.part_of.as_deref().is_some_and(|whole| is_there(&all, whole));
                    if resplit && !busy {
                        continue;
                    }
                    let why = match resplit {
                        true => "its GPU was split another way while jobs ran",
                        false => "it was there at an earlier start and is not any more",
                    };
                    out.known.push(Known { found: old, absent: Some(why.into()) });
                }
            }
        }
        for gpu in listed {
            if out.known.iter().any(|k| k.found.uuid == gpu.uuid) {
                continue;
            }
            match take(&mut found, &gpu.uuid) {
                Some(found) => out.known.push(Known { found, absent: None }),
                None => {
                    let why = "it is in the agent's configuration and was not found";
                    out.known.push(Known { found: super::of_list(gpu), absent: Some(why.into()) });
                }
            }
        }
        out.known.extend(found.into_iter().map(|found| Known { found, absent: None }));
        for known in &mut out.known {
            // The site's word for a type goes before ours.
            if let Some(gpu) = listed.iter().find(|gpu| gpu.uuid == known.found.uuid) {
                known.found.kind.clone_from(&gpu.kind);
            }
        }
        out.known.truncate(DEVICES_PER_NODE as usize);
        let missing: Vec<&str> =
            out.known.iter().filter(|k| k.absent.is_some()).map(|k| k.found.uuid.as_str()).collect();
        if !missing.is_empty() {
            let (here, of) = (out.known.len() - missing.len(), out.known.len());
            out.notes.push(format!("{here} of {of} GPUs are there; missing: {}", missing.join(", ")));
        }
        out
    }

    /// Compares with how many there should be.
    pub fn count(&mut self, expected: Option<u32>) {
        let here = self.known.iter().filter(|k| k.absent.is_none()).count();
        match expected.map(|n| n as usize) {
            Some(expected) if here < expected => {
                let short = expected - here;
                self.notes.push(format!("{here} GPUs are there and {expected} are configured: {short} missing"));
            }
            Some(expected) if here > expected => {
                self.notes.push(format!("{here} GPUs are there and {expected} are configured"));
            }
            _ => {}
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Memory {
    boot_id: String,
    gpus: Vec<Found>,
}

/// The GPUs of an earlier start in this boot, by index.
///
/// # Errors
/// The file cannot be read. One that makes no sense is passed over.
pub fn recall(data: &Path, boot_id: &str) -> anyhow::Result<Vec<Found>> {
    let path = data.join(FILE);
    let bytes = files::read(&path, CONFIG_BYTES).with_context(|| format!("cannot read {}", path.display()))?;
    let memory = bytes.and_then(|bytes| serde_json::from_slice::<Memory>(&bytes).ok());
    Ok(memory.filter(|m| m.boot_id == boot_id).map(|m| m.gpus).unwrap_or_default())
}

/// Keeps them for the next start.
///
/// # Errors
/// The file cannot be written.
pub fn keep(data: &Path, boot_id: &str, inventory: &Inventory) -> anyhow::Result<()> {
    let gpus = inventory.known.iter().map(|k| k.found.clone()).collect();
    let bytes = serde_json::to_vec(&Memory { boot_id: boot_id.to_owned(), gpus })?;
    let path = data.join(FILE);
    files::replace(&path, &bytes, 0o600, Keep::UntilReboot).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(uuid: &str) -> Found {
        Found { uuid: uuid.into(), kind: "h100".into(), ..Found::default() }
    }

    fn part(uuid: &str, whole: &str) -> Found {
        Found { part_of: Some(whole.into()), ..found(uuid) }
    }

    fn uuids(inventory: &Inventory) -> Vec<(&str, bool)> {
        inventory.known.iter().map(|k| (k.found.uuid.as_str(), k.absent.is_none())).collect()
    }

    #[test]
    fn an_index_stays_with_its_gpu() {
        let before = vec![found("a"), found("b"), found("c")];
        let now = Inventory::settle(vec![found("d"), found("c"), found("a")], &[], before, false);
        assert_eq!(uuids(&now), [("a", true), ("b", false), ("c", true), ("d", true)]);
        assert_eq!(now.notes, ["3 of 4 GPUs are there; missing: b"]);
    }

    #[test]
    fn listed_ones_come_in_the_order_of_the_list_under_their_type() {
        let gpu = |uuid: &str| Gpu { kind: "big".into(), uuid: uuid.into(), mem_mib: 1, numa: 0 };
        let mut now = Inventory::settle(vec![found("a"), found("b")], &[gpu("b"), gpu("x")], Vec::new(), false);
        assert_eq!(uuids(&now), [("b", true), ("x", false), ("a", true)]);
        assert_eq!(now.known[0].found.kind, "big");
        now.count(Some(4));
        assert_eq!(now.notes[1], "2 GPUs are there and 4 are configured: 2 missing");
    }

    #[test]
    fn another_split_counts_from_anew_unless_jobs_run() {
        let before = vec![part("m1", "a"), part("m2", "a"), found("b")];
        let now = Inventory::settle(vec![part("m3", "a"), found("b")], &[], before.clone(), false);
        assert_eq!(uuids(&now), [("b", true), ("m3", true)]);
        let now = Inventory::settle(vec![part("m3", "a"), found("b")], &[], before, true);
        assert_eq!(uuids(&now), [("m1", false), ("m2", false), ("b", true), ("m3", true)]);
        let now = Inventory::settle(vec![part("m1", "a")], &[], vec![found("a")], false);
        assert_eq!(uuids(&now), [("m1", true)], "what was whole is split now");
    }

    #[test]
    fn memory_lasts_for_one_boot() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(recall(folder.path(), "b1").unwrap(), []);
        let inventory = Inventory::settle(vec![found("a")], &[], Vec::new(), false);
        keep(folder.path(), "b1", &inventory).unwrap();
        assert_eq!(recall(folder.path(), "b1").unwrap(), [found("a")]);
        assert_eq!(recall(folder.path(), "b2").unwrap(), []);
    }
}
