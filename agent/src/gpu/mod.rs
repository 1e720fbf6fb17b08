//! The GPUs of this node: which there are, how they are doing, and what a job sees of them.
//!
//! [`driver`] is what the agent wants to know of any GPU, [`nvml`] how NVIDIA's are asked. [`inventory`] gives each its
//! index, [`watch`] looks after them and says which can no longer be relied on, [`wire`] tells the controller.

pub mod driver;
mod inventory;
mod nvml;
mod visible;
mod watch;
mod wire;

pub use visible::{VISIBLE, Visibility, Visible};

use crate::limits::GPU_POLL;
use clap::ValueEnum;
use driver::{Driver, Found};
use ephor_proto::v1;
use inventory::{Inventory, Known};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use tokio::sync::watch::Receiver;

/// One GPU as the agent's configuration names it: where the GPUs are asked themselves, one that is expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Type as requests name it, such as `h100`.
    pub kind: String,
    /// Identity that survives a reboot, as the driver's tools print it.
    pub uuid: String,
    /// Memory in MiB.
    pub mem_mib: i64,
    /// NUMA node, -1 where unknown.
    #[serde(default = "unknown_numa")]
    pub numa: i32,
}

fn unknown_numa() -> i32 {
    -1
}

/// Where the agent learns of its GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// From NVML where it can be used, else from the configuration.
    #[default]
    Auto,
    /// From NVML; the agent does not start without.
    Nvml,
    /// From the configuration alone: nobody looks after them.
    List,
    /// There are none to offer, whatever the machine has.
    None,
}

/// How GPUs are found, watched and shown to jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where the agent learns of its GPUs.
    pub source: Source,
    /// NVIDIA's management library: a name for the loader, or a path.
    pub library: String,
    /// How many GPUs the node should have, MIG instances counted one by one. Fewer are reported in numbers.
    pub count: Option<u32>,
    /// How jobs are told which are theirs. MIG instances are always told by uuid.
    pub visible: Visible,
    /// Milliseconds between two looks at them.
    pub poll_ms: u64,
    /// XID errors after which a GPU is out of service.
    pub fatal_xids: Vec<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            source: Source::Auto,
            library: "libnvidia-ml.so.1".into(),
            count: None,
            visible: Visible::Uuid,
            poll_ms: GPU_POLL.as_millis() as u64,
            fatal_xids: nvml::FATAL.to_vec(),
        }
    }
}

/// The GPUs of this node, found.
pub struct Gpus {
    inventory: Inventory,
    visibility: Visibility,
    driver: Option<Box<dyn Driver>>,
    source: String,
    poll_ms: u64,
}

impl Gpus {
    /// Looks for them. `data` is the agent's folder, where it keeps in mind which GPU had which index in this boot;
    /// `busy` says whether attempts are held that know their GPUs by index.
    ///
    /// # Errors
    /// They are to come from NVML, and it cannot be used; or the memory of indices cannot be kept.
    pub fn find(settings: &Settings, listed: &[Gpu], data: &Path, boot_id: &str, busy: bool) -> anyhow::Result<Self> {
        let mut notes = Vec::new();
        let opened: Option<Box<dyn Driver>> = match settings.source {
            Source::List | Source::None => None,
            Source::Auto | Source::Nvml => match nvml::Nvml::open(&settings.library, &settings.fatal_xids) {
                Ok(driver) => Some(Box::new(driver)),
                Err(why) if settings.source == Source::Nvml => anyhow::bail!("NVML cannot be used: {why}"),
                Err(why) => {
                    notes.push(format!("NVML cannot be used: {why}"));
                    None
                }
            },
        };
        let mut gpus = match opened {
            Some(driver) => Self::ask(driver, listed, data, boot_id, busy)?,
            None => {
                let offered = if settings.source == Source::None { &[][..] } else { listed };
                let source = if offered.is_empty() { "" } else { "the agent's configuration" };
                let known = offered.iter().map(|gpu| Known { found: of_list(gpu), absent: None }).collect();
                let inventory = Inventory { known, notes: Vec::new() };
                Self { inventory, visibility: Visibility::default(), driver: None, source: source.into(), poll_ms: 0 }
            }
        };
        // That there is no library is no news on a node that has no GPUs, and expects none.
        if !listed.is_empty() || settings.count.is_some() {
            gpus.inventory.notes.splice(0..0, notes);
        }
        gpus.inventory.count(settings.count);
        gpus.visibility = Visibility::of(&gpus.inventory.known, settings.visible);
        gpus.poll_ms = settings.poll_ms;
        gpus.say();
        Ok(gpus)
    }

    fn ask(
        mut driver: Box<dyn Driver>,
        listed: &[Gpu],
        data: &Path,
        boot_id: &str,
        busy: bool,
    ) -> anyhow::Result<Self> {
        let (found, notes) = driver.find().map_err(anyhow::Error::msg)?;
        let before = inventory::recall(data, boot_id)?;
        let mut inventory = Inventory::settle(found, listed, before, busy);
        inventory::keep(data, boot_id, &inventory)?;
        inventory.notes.splice(0..0, notes);
        let source = driver.describe();
        Ok(Self { inventory, visibility: Visibility::default(), driver: Some(driver), source, poll_ms: 0 })
    }

    fn say(&self) {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        self.inventory.known.iter().for_each(|k| *kinds.entry(&k.found.kind).or_default() += 1);
        let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        if !kinds.is_empty() {
            tracing::info!("GPUs: {}, from {}", kinds.join(", "), self.source);
        }
        self.inventory.notes.iter().for_each(|note| tracing::warn!("GPUs: {note}"));
    }

    /// How many there are, those out of service included.
    pub fn count(&self) -> usize {
        self.inventory.known.len()
    }

    /// What jobs are shown.
    pub fn visibility(&self) -> &Visibility {
        &self.visibility
    }

    /// How they are introduced to the controller, in the order of their index.
    pub fn devices(&self) -> Vec<v1::Device> {
        wire::devices(&self.inventory.known)
    }

    /// Looks after them from now on, on a thread of its own: what the receiver holds is how they are now. `None` where
    /// there is nothing to tell of them.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn watch(self, node: &str) -> anyhow::Result<Option<Receiver<v1::GpuReport>>> {
        watch::start(self, node)
    }
}

fn of_list(gpu: &Gpu) -> Found {
    Found { kind: gpu.kind.clone(), uuid: gpu.uuid.clone(), mem_mib: gpu.mem_mib, numa: gpu.numa, ..Found::default() }
}
