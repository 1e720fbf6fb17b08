//! What the agent is told: its configuration file, with the command line on top.

use crate::confine::Wanted;
use crate::facts::Facts;
use crate::files;
use crate::gpu::{self, Gpu};
use crate::limits::CONFIG_BYTES;
use crate::token::Token;
use anyhow::{Context, ensure};
use ephor_model::limits::{DEVICES_PER_NODE, NAME_BYTES};
use ephor_proto::v1;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The configuration file. Every key has a default; unknown keys are errors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Name of the node; default: the host's, up to its first dot.
    pub name: Option<String>,
    /// Folder of the agent's own files; default: `/var/lib/ephor-agent`, for ordinary users
    /// `~/.local/state/ephor-agent`.
    pub data: Option<PathBuf>,
    /// Local socket for users; default: `agent.sock` in the data folder.
    pub socket: Option<PathBuf>,
    /// `host:port` of the controller, instead of the one that the join token named.
    pub controller: Option<String>,
    /// File with the join token, which is needed once.
    pub token_file: Option<PathBuf>,
    /// Features that requests may ask for.
    pub features: Vec<String>,
    /// Cores to offer; default: all that the agent may use.
    pub cpus: Option<u32>,
    /// Memory to offer, in MiB; default: all of the machine's.
    pub memory_mib: Option<u64>,
    /// How an attempt's processes are kept together.
    pub confine: Wanted,
    /// Hosts the virtual nodes of this file instead of running jobs.
    pub simulate: Option<PathBuf>,
    /// How GPUs are found, watched and shown to jobs.
    pub gpus: gpu::Settings,
    /// GPUs of the node, in the order of their index: all there are where they are not asked themselves, else those that
    /// are expected.
    pub gpu: Vec<Gpu>,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, has an unknown key, or a value of the wrong kind; the text says where.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let read = || -> anyhow::Result<Self> {
            let bytes = files::read(path, CONFIG_BYTES)?.context("there is no such file")?;
            Ok(toml::from_str(std::str::from_utf8(&bytes)?)?)
        };
        read().with_context(|| format!("cannot use the configuration {}", path.display()))
    }

    /// Fills in the defaults, so that every key but the optional ones has its value.
    ///
    /// # Errors
    /// A value out of its range.
    pub fn settle(mut self, facts: &Facts) -> anyhow::Result<Self> {
        let name = self.name.get_or_insert_with(|| facts.hostname.clone());
        let good = |text: &str| !text.is_empty() && text.len() <= NAME_BYTES && !text.contains(['/', '\0', ',', ' ']);
        ensure!(good(name), "'{name}' is no name of a node: at most {NAME_BYTES} bytes, no blank, comma or slash");
        for feature in &self.features {
            ensure!(good(feature), "'{feature}' is no feature: at most {NAME_BYTES} bytes, no blank, comma or slash");
        }
        let most = u64::from(DEVICES_PER_NODE);
        ensure!(self.gpu.len() as u64 <= most, "there are more than {most} GPUs");
        ensure!(self.gpus.count.is_none_or(|n| u64::from(n) <= most), "a node has at most {most} GPUs");
        for gpu in &self.gpu {
            ensure!(
                good(&gpu.kind) && good(&gpu.uuid) && gpu.mem_mib >= 0,
                "GPU '{}' is not described rightly",
                gpu.uuid
            );
        }
        let data = std::path::absolute(self.data.take().map_or_else(default_data, Ok)?)?;
        self.socket.get_or_insert_with(|| data.join("agent.sock"));
        self.data = Some(data);
        self.cpus.get_or_insert(facts.cores);
        self.memory_mib.get_or_insert(facts.memory_mib);
        ensure!(self.cpus > Some(0) && self.memory_mib > Some(0), "a node offers at least one core and 1 MiB");
        Ok(self)
    }

    /// The token in the file that is named, where one is.
    ///
    /// # Errors
    /// The file cannot be read or holds no token.
    pub fn token(&self) -> anyhow::Result<Option<Token>> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let name = || format!("cannot use the token file {}", path.display());
        let Some(bytes) = files::read(path, CONFIG_BYTES).with_context(name)? else { return Ok(None) };
        Token::parse(std::str::from_utf8(&bytes).with_context(name)?).with_context(name).map(Some)
    }

    /// How the node introduces itself, with these devices.
    pub fn introduction(&self, node: &str, facts: &Facts, devices: Vec<v1::Device>) -> v1::Register {
        let mut features = self.features.clone();
        features.sort();
        features.dedup();
        v1::Register {
            node: node.to_owned(),
            boot_id: facts.boot_id.clone(),
            agent_version: env!("CARGO_PKG_VERSION").into(),
            address: facts.hostname.clone(),
            capacity: capacity(
                self.cpus.unwrap_or(facts.cores),
                self.memory_mib.unwrap_or(facts.memory_mib),
                devices.len(),
            ),
            features,
            devices,
            ..v1::Register::default()
        }
    }
}

/// What a node offers, as the wire counts it: thousandths of cores and GPUs, MiB of memory.
pub fn capacity(cpus: u32, memory_mib: u64, gpus: usize) -> Vec<v1::Amount> {
    let amount = |resource: &str, value: i64| v1::Amount { resource: resource.into(), value };
    let mut out =
        vec![amount("cpu", i64::from(cpus) * 1000), amount("mem", i64::try_from(memory_mib).unwrap_or(i64::MAX))];
    if gpus > 0 {
        out.push(amount("gpu", i64::try_from(gpus).unwrap_or(i64::MAX).saturating_mul(1000)));
    }
    out
}

fn default_data() -> anyhow::Result<PathBuf> {
    if nix::unistd::geteuid().is_root() {
        return Ok("/var/lib/ephor-agent".into());
    }
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let base = state.or_else(home).context("there is no HOME: say where to keep files with --data")?;
    Ok(base.join("ephor-agent"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_default_and_unknown_ones_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Config::read(&path)
        };
        let facts = Facts::find().unwrap();
        let empty = read("").unwrap().settle(&facts).unwrap();
        assert_eq!(empty.name.as_ref(), Some(&facts.hostname));
        assert_eq!(empty.socket.unwrap().file_name().unwrap(), "agent.sock");
        let full =
            read("name='n1'\ncpus=4\nconfine='walk'\n[[gpu]]\nkind='h100'\nuuid='GPU-1'\nmem_mib=80000").unwrap();
        let register = full.introduction("n1", &facts, vec![v1::Device::default()]);
        assert_eq!(register.capacity.iter().map(|a| a.value).collect::<Vec<_>>()[0], 4000);
        assert_eq!(register.capacity[2].value, 1000);
        assert_eq!(full.gpu[0].numa, -1);
        let gpus = read("[gpus]\nsource='list'\nvisible='index'\ncount=8").unwrap().gpus;
        assert_eq!((gpus.source, gpus.visible, gpus.count), (gpu::Source::List, gpu::Visible::Index, Some(8)));
        assert!(read("[gpus]\ncount=5000").unwrap().settle(&facts).is_err());
        let unknown = format!("{:#}", read("cpu=4").unwrap_err());
        assert!(unknown.contains("unknown field `cpu`") && unknown.contains("agent.toml"), "{unknown}");
        assert!(read("name='a b'").unwrap().settle(&facts).is_err());
        assert!(read("cpus=0").unwrap().settle(&facts).is_err());
    }
}
