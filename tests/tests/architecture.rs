//! The laws of the source: which way the arrows between crates point, what the pure crates may not know, how long a
//! file may be, and that everything says what it is for.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Crates by folder, and the crates of ours that each may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("host/model", &[]),
    ("host/placement", &["model"]),
    ("host/core", &["model", "placement"]),
    ("host/proto", &["model"]),
    ("host/slurm", &["model"]),
    ("host/policy", &["model", "placement", "core"]),
    ("host/store", &["model", "placement", "core"]),
    ("host/sim", &["model", "placement", "core", "policy", "store"]),
    ("host/controller", &["model", "placement", "core", "policy", "store", "proto", "sim"]),
    ("host/cli", &["model", "core", "policy", "policy-build", "store", "proto", "sim", "slurm", "controller"]),
    ("agent", &["model", "proto"]),
    ("sdk/build", &[]),
];

const PURE: &[&str] = &["host/model", "host/placement", "host/core", "host/slurm"];

/// Law 2: what a pure crate may not name, and what to do instead.
const IMPURE: &[(&str, &str)] = &[
    ("SystemTime", "time comes in as a Timestamp"),
    ("std::time", "time comes in as a Timestamp"),
    ("Instant::", "time comes in as a Timestamp"),
    ("std::fs", "the caller reads files"),
    ("std::net", "the caller talks to the network"),
    ("std::thread", "the caller has the threads"),
    ("std::sync::Mutex", "a pure crate shares nothing"),
    ("std::env", "the caller reads the environment"),
    ("HashMap", "its order differs from run to run (law 11): use BTreeMap"),
    ("HashSet", "its order differs from run to run (law 11): use BTreeSet"),
    ("async fn", "a pure crate waits for nothing"),
    ("tokio", "a pure crate waits for nothing"),
    ("rand::", "randomness comes in as input"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn manifest(folder: &str) -> toml::Table {
    fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap().parse().unwrap()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return out };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|n| n != "target" && n != ".git") {
                out.extend(sources(&path));
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
    out.sort();
    out
}

#[test]
fn arrows_between_crates_point_one_way() {
    for (folder, allowed) in ARROWS {
        let table = manifest(folder);
        let dependencies = table.get("dependencies").and_then(|d| d.as_table()).unwrap();
        for name in dependencies.keys().filter_map(|n| n.strip_prefix("ephor-")) {
            assert!(allowed.contains(&name), "{folder} depends on ephor-{name}; it may depend on {allowed:?}");
        }
        if *folder == "agent" {
            assert!(!dependencies.contains_key("wasmtime"), "the agent never holds wasmtime");
        }
    }
    let members: Vec<String> = ARROWS.iter().map(|(f, _)| (*f).to_owned()).collect();
    for folder in fs::read_dir(root().join("host")).unwrap().flatten() {
        let name = format!("host/{}", folder.file_name().to_string_lossy());
        assert!(members.contains(&name), "{name} has no place in the map: add it here and to docs/architecture.md");
    }
}

#[test]
fn pure_crates_stay_pure() {
    for folder in PURE {
        let table = manifest(folder);
        let dependencies = table.get("dependencies").and_then(|d| d.as_table()).unwrap();
        for banned in ["tokio", "rand", "nix", "libc", "tracing"] {
            assert!(!dependencies.contains_key(banned), "{folder} depends on {banned} (law 2)");
        }
        for path in sources(&root().join(folder).join("src")) {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.lines().filter(|l| !l.trim_start().starts_with("//"));
            for (number, line) in code.enumerate() {
                for (banned, instead) in IMPURE {
                    // With a fixed hasher a map that is only looked up in is the same everywhere.
                    let fixed =
                        banned.starts_with("Hash") && (line.contains("BuildHasherDefault") || line.starts_with("use "));
                    let found = line.contains(banned) && !fixed;
                    assert!(!found, "{}: line {}: {banned} in a pure crate; {instead}", path.display(), number + 1);
                }
            }
        }
    }
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    let mut sizes = BTreeMap::new();
    for folder in ["host", "agent", "plugins", "sdk", "tests"] {
        for path in sources(&root().join(folder)) {
            let text = fs::read_to_string(&path).unwrap();
            let lines = text.lines().count();
            assert!(lines <= 600, "{} has {lines} lines; split it by what it speaks of", path.display());
            let first = text.lines().find(|l| !l.starts_with("#![")).unwrap_or_default();
            assert!(first.starts_with("//! "), "{} does not open with what it is responsible for", path.display());
            sizes.insert(path, lines);
        }
    }
    assert!(sizes.len() > 100, "the sources were not found");
}

/// `missing_docs` is a lint that CI turns into an error; this keeps it switched on everywhere.
#[test]
fn every_crate_keeps_the_lints() {
    let workspace: toml::Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let lints = workspace["workspace"]["lints"]["rust"].as_table().unwrap();
    assert_eq!(lints["missing_docs"].as_str(), Some("warn"));
    assert_eq!(lints["unsafe_code"].as_str(), Some("deny"));
    for (folder, _) in ARROWS {
        let table = manifest(folder);
        let on = table.get("lints").and_then(|l| l.get("workspace")).and_then(toml::Value::as_bool);
        assert_eq!(on, Some(true), "{folder} does not take the workspace's lints");
    }
}

/// GPUs of other vendors can follow: what is particular to one is in the agent's module for them.
#[test]
fn vendors_of_gpus_are_known_to_one_module() {
    let module = root().join("agent/src/gpu");
    let ours: Vec<PathBuf> = ["host", "agent/src"].iter().flat_map(|folder| sources(&root().join(folder))).collect();
    let (inside, outside): (Vec<_>, Vec<_>) = ours.iter().partition(|path| path.starts_with(&module));
    let named = |path: &Path| {
        let text = fs::read_to_string(path).unwrap().to_lowercase();
        let code = text.lines().filter(|l| !l.trim_start().starts_with("//"));
        ["nvml", "nvidia", "cuda"].into_iter().find(|name| code.clone().any(|line| line.contains(name)))
    };
    assert!(inside.iter().any(|path| named(path).is_some()), "the module was not found");
    for path in outside {
        assert_eq!(named(path), None, "{} knows a vendor; that belongs to {}", path.display(), module.display());
    }
}

/// Unsafe code lives in modules that exist to hold it, each with its reason.
#[test]
fn unsafe_code_gives_its_reason() {
    for folder in ["host", "agent", "sdk/build"] {
        for path in sources(&root().join(folder)) {
            let text = fs::read_to_string(&path).unwrap();
            let uses = text
                .lines()
                .any(|l| !l.trim_start().starts_with("//") && (l.contains("unsafe {") || l.contains("unsafe fn")));
            let allowed = text.contains("allow(unsafe_code, reason") || text.contains("unsafe_code,\n    reason");
            assert!(!uses || allowed, "{} holds unsafe code without a reason", path.display());
        }
    }
}
