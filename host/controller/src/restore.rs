//! Checks a backup, and makes a data folder of it.

use crate::archive::{FILES, unpack};
use anyhow::{Context, ensure};
use ephor_store::Report;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::BufReader;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What a backup holds.
#[derive(Clone, Debug)]
pub struct Restored {
    /// What the live state is.
    pub live: Report,
    /// Whether the certificate authority came with it; else every node joins anew.
    pub trust: bool,
}

/// Reads a backup to its end and checks the state in it, in a temporary folder beside the file.
///
/// # Errors
/// The file is no whole backup, or its state is damaged.
pub fn check(backup: &Path) -> anyhow::Result<Restored> {
    let parent = backup.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = Temporary(parent.join(format!(".ephor-check-{}", std::process::id())));
    restore(backup, &folder.0)
}

struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // Not there where nothing was unpacked.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Unpacks a backup into a folder that is empty or not there, and checks the state in it.
///
/// # Errors
/// The folder is not empty, the file is no whole backup, or its state is damaged. What was unpacked until then stays
/// for a look, and does not start: state and history are checked first.
pub fn restore(backup: &Path, folder: &Path) -> anyhow::Result<Restored> {
    let shown = backup.display();
    let from = File::open(backup).with_context(|| format!("cannot read {shown}"))?;
    let make = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path);
    make(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let empty = std::fs::read_dir(folder)?.next().is_none();
    ensure!(empty, "{} is not empty; name a folder that is, or that is not there", folder.display());
    let mut written = Vec::new();
    let place = |name: &'static str| {
        let path = folder.join(name);
        path.parent().map_or(Ok(()), make)?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        written.push(path);
        Ok(file)
    };
    let names = unpack(BufReader::new(from), place).with_context(|| format!("{shown} is no whole backup"))?;
    for path in &written {
        File::open(path)?.sync_all()?;
    }
    File::open(folder)?.sync_all()?;
    let live = ephor_store::verify(&folder.join(FILES[0])).with_context(|| format!("the state in {shown}"))?;
    ensure!(live.is_sound(), "the state in {shown} is damaged:\n  {}", live.problems.join("\n  "));
    let trust = names.iter().any(|name| name.starts_with("trust/"));
    Ok(Restored { live, trust })
}
