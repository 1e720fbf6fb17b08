//! Choosing, once at the agent's start, the best way of keeping an attempt's processes together that can be had here.

use super::{Confinement, group};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// What the site asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Wanted {
    /// The best that can be had.
    #[default]
    Auto,
    /// Control groups version 2, or no start.
    CgroupV2,
    /// The freezer control group of version 1, or no start.
    CgroupV1,
    /// By descent alone.
    Walk,
}

/// What was chosen, and what could not be had and why.
#[derive(Debug)]
pub struct Choice {
    /// The folder under which each attempt gets its own.
    pub base: Confinement,
    /// One line for each better way that could not be had.
    pub notes: Vec<String>,
}

/// Tries what is wanted, best first, by really moving a process (`probe` runs the shim) into a group.
///
/// # Errors
/// A way that was asked for by name and cannot be had.
pub fn choose(
    wanted: Wanted,
    data: &Path,
    probe: impl Fn(&Confinement) -> anyhow::Result<()>,
) -> anyhow::Result<Choice> {
    let name = group_name(data);
    let ways: &[Wanted] = match wanted {
        Wanted::Auto => &[Wanted::CgroupV2, Wanted::CgroupV1],
        Wanted::CgroupV2 => &[Wanted::CgroupV2],
        Wanted::CgroupV1 => &[Wanted::CgroupV1],
        Wanted::Walk => &[],
    };
    let mut notes = Vec::new();
    for way in ways {
        match attempt(*way, &name, &probe) {
            Ok(base) => return Ok(Choice { base, notes }),
            Err(e) if wanted != Wanted::Auto => {
                return Err(e.context("the confinement that was asked for cannot be had"));
            }
            Err(e) => notes.push(format!("{e:#}")),
        }
    }
    Ok(Choice { base: Confinement::Walk, notes })
}

/// One name for each data folder, so that agents on one machine never touch each other's groups.
fn group_name(data: &Path) -> String {
    let digest = Sha256::digest(data.as_os_str().as_encoded_bytes());
    format!("ephor-agent-{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3])
}

fn attempt(
    way: Wanted,
    name: &str,
    probe: &impl Fn(&Confinement) -> anyhow::Result<()>,
) -> anyhow::Result<Confinement> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").context("cannot read /proc/self/mounts")?;
    let own = std::fs::read_to_string("/proc/self/cgroup").context("cannot read /proc/self/cgroup")?;
    let base = match way {
        Wanted::CgroupV2 => {
            let own = own.lines().find_map(|l| l.strip_prefix("0::")).context("this machine has no cgroup v2")?;
            let mount = mount_point(&mounts, |kind, _| kind == "cgroup2").context("cgroup v2 is not mounted")?;
            Confinement::CgroupV2(below(&mount, own, name))
        }
        _ => {
            let has = |list: &str| list.split(',').any(|c| c == "freezer");
            let own = own.lines().find_map(|l| match l.splitn(3, ':').collect::<Vec<_>>()[..] {
                [_, controllers, path] if has(controllers) => Some(path),
                _ => None,
            });
            let mount = mount_point(&mounts, |kind, options| kind == "cgroup" && has(options));
            let (own, mount) = own.zip(mount).context("no cgroup v1 with the freezer is mounted")?;
            Confinement::CgroupV1(below(&mount, own, name))
        }
    };
    let Some(folder) = base.folder().cloned() else { bail!("no folder") };
    base.make().with_context(|| format!("cannot make the group {}", folder.display()))?;
    let trial = base.of_attempt("probe");
    let works = check(&trial, probe);
    trial.remove();
    if works.is_err() {
        base.remove();
    }
    works.map(|()| base)
}

fn check(trial: &Confinement, probe: &impl Fn(&Confinement) -> anyhow::Result<()>) -> anyhow::Result<()> {
    trial.make().with_context(|| format!("cannot make the group {trial:?}"))?;
    match trial {
        Confinement::CgroupV2(folder) => {
            group::write(folder, "cgroup.kill", "1").context("cgroup v2 cannot kill a group here (Linux 5.14 can)")?;
        }
        Confinement::CgroupV1(folder) => group::write(folder, "freezer.state", "THAWED").context("cannot freeze")?,
        Confinement::Walk => {}
    }
    probe(trial)
}

fn below(mount: &Path, own: &str, name: &str) -> PathBuf {
    mount.join(own.trim_start_matches('/')).join(name)
}

fn mount_point(mounts: &str, wanted: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (_, point, kind, options) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        wanted(kind, options).then(|| PathBuf::from(point))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_of_different_folders_have_different_groups() {
        assert_ne!(group_name(Path::new("/a")), group_name(Path::new("/b")));
        assert_eq!(below(Path::new("/sys/fs/cgroup"), "/x.service", "e"), Path::new("/sys/fs/cgroup/x.service/e"));
    }

    #[test]
    fn what_cannot_be_had_is_told_or_refused() {
        let refuse = |_: &Confinement| bail!("not here");
        let choice = choose(Wanted::Auto, Path::new("/nowhere"), refuse).unwrap();
        assert_eq!((choice.base, choice.notes.len()), (Confinement::Walk, 2));
        assert!(choose(Wanted::CgroupV2, Path::new("/nowhere"), refuse).is_err());
        assert_eq!(choose(Wanted::Walk, Path::new("/nowhere"), refuse).unwrap().base, Confinement::Walk);
    }
}
