//! Runs cargo for the guest target and finds the modules that it made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::{BuildError, Manifest, componentize, manifest_section};

/// The target that policies are built for: no operating system, so no WASI to strip.
pub const TARGET: &str = "wasm32-unknown-unknown";
/// Stack of a guest. A fresh instance is mapped with it, and none of the built-in policies recurses.
const STACK_BYTES: u32 = 256 * 1_024;

/// Builds the policy crate in `dir` and makes a component of it.
///
/// # Errors
/// The target is missing and could not be installed, cargo failed, or [`componentize`] refused the module.
pub fn build_crate(dir: &Path) -> Result<Vec<u8>, BuildError> {
    let modules = run_cargo(dir, &[])?;
    match modules.as_slice() {
        [] => Err(BuildError::NoModule(dir.to_owned())),
        [module] => componentize(&read(&module.file)?),
        many => Err(BuildError::ManyModules { dir: dir.to_owned(), count: many.len() }),
    }
}

/// Builds every policy of the workspace in `dir` with one run of cargo. Components by the name in their manifest.
///
/// # Errors
/// As [`build_crate`]; and where two policies have the same name.
pub fn build_workspace(dir: &Path) -> Result<BTreeMap<String, Vec<u8>>, BuildError> {
    let mut components = BTreeMap::new();
    let modules = run_cargo(dir, &["--workspace"])?;
    if modules.is_empty() {
        return Err(BuildError::NoModule(dir.to_owned()));
    }
    for module in modules {
        let component = componentize(&read(&module.file)?).map_err(|why| why.within(module.krate))?;
        let name = Manifest::parse(manifest_section(&component)?)?.name;
        if components.insert(name.clone(), component).is_some() {
            return Err(BuildError::SameName(name));
        }
    }
    Ok(components)
}

/// Checks that the standard library for [`TARGET`] is there, and asks rustup for it where it is not.
///
/// `dir` matters because a crate may pin its own toolchain.
///
/// # Errors
/// [`BuildError::NoTarget`] with what rustup said and the way around it.
pub fn ensure_target(dir: &Path) -> Result<(), BuildError> {
    if target_is_there(dir)? {
        return Ok(());
    }
    let said = match Command::new("rustup").args(["target", "add", TARGET]).current_dir(dir).output() {
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(why) => why.to_string(),
    };
    if target_is_there(dir)? { Ok(()) } else { Err(BuildError::NoTarget(said)) }
}

fn target_is_there(dir: &Path) -> Result<bool, BuildError> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(&rustc)
        .args(["--print", "target-libdir", "--target", TARGET])
        .current_dir(dir)
        .output()
        .map_err(|why| BuildError::NoTool { program: rustc.to_string_lossy().into_owned(), why })?;
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(output.status.success() && Path::new(&folder).is_dir())
}

/// A module that cargo made.
struct Module {
    /// Name of its crate.
    krate: String,
    file: PathBuf,
}

/// One line of cargo's JSON output, as far as it matters here.
#[derive(Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Message {
    CompilerArtifact {
        target: Target,
        filenames: Vec<PathBuf>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// Builds for the guest target; the modules that are up to date now.
fn run_cargo(dir: &Path, more: &[&str]) -> Result<Vec<Module>, BuildError> {
    if !dir.join("Cargo.toml").is_file() {
        return Err(BuildError::NotACrate(dir.to_owned()));
    }
    ensure_target(dir)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(&cargo)
        .args(["build", "--release", "--target", TARGET, "--message-format=json-render-diagnostics"])
        .args(more)
        .current_dir(dir)
        // Flags for this machine's processor mean nothing to the guest, and link-time optimisation is not incremental.
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", flags(dir).join("\u{1f}"))
        .env("CARGO_INCREMENTAL", "0")
        .stderr(Stdio::inherit())
        .output()
        .map_err(|why| BuildError::NoTool { program: cargo.to_string_lossy().into_owned(), why })?;
    if !output.status.success() {
        return Err(BuildError::Cargo(dir.to_owned()));
    }
    let mut modules = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if let Ok(Message::CompilerArtifact { target, filenames }) = serde_json::from_str(line) {
            let wasm = filenames.into_iter().filter(|file| file.extension().is_some_and(|e| e == "wasm"));
            modules.extend(wasm.map(|file| Module { krate: target.name.clone(), file }));
        }
    }
    Ok(modules)
}

/// Flags that make a guest small to start and the same on every machine.
fn flags(dir: &Path) -> Vec<String> {
    let mut flags = vec![format!("-Clink-arg=-zstack-size={STACK_BYTES}")];
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    // The last prefix that matches wins, so the widest comes first.
    let root = dir.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&dir);
    let mut prefixes = vec![(root.to_owned(), "."), (dir.clone(), ".")];
    prefixes.extend(registries().into_iter().map(|folder| (folder, "registry")));
    for (from, to) in prefixes {
        flags.push(format!("--remap-path-prefix={}={to}", from.display()));
    }
    flags
}

/// Folders that cargo unpacks the sources of registries into.
fn registries() -> Vec<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    let Some(home) = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home) else { return Vec::new() };
    // None yet on the first build of a machine: its components then differ in a few texts, which is no harm.
    let Ok(entries) = std::fs::read_dir(home.join("registry").join("src")) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.sort();
    folders
}

fn read(path: &Path) -> Result<Vec<u8>, BuildError> {
    std::fs::read(path).map_err(|why| BuildError::file(path, why))
}
