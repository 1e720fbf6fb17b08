//! From crates to components, through cargo.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::{Path, PathBuf};

use ephor_policy_build::{BuildError, Manifest, Role, build_crate, build_workspace, ensure_target, manifest_section};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A crate without dependencies.
fn krate(cargo_toml: &str, lib_rs: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("src")).unwrap();
    fs::write(dir.path().join("Cargo.toml"), cargo_toml).unwrap();
    fs::write(dir.path().join("src/lib.rs"), lib_rs).unwrap();
    dir
}

#[test]
fn the_target_is_there() {
    ensure_target(&root()).unwrap();
}

#[test]
fn a_policy_of_the_workspace_becomes_a_component() {
    let component = build_crate(&root().join("plugins/scheduling-fifo")).unwrap();
    let manifest = Manifest::parse(manifest_section(&component).unwrap()).unwrap();
    assert_eq!((manifest.name.as_str(), manifest.role), ("scheduling-fifo", Role::Scheduling));
    assert!(component.len() < 150_000, "{} bytes", component.len());
    let text = String::from_utf8_lossy(&component);
    let here = root().canonicalize().unwrap();
    assert!(!text.contains(here.to_str().unwrap()), "no path of this machine is in it");
}

#[test]
fn a_crate_that_makes_no_module_is_told_what_it_needs() {
    let dir = krate("[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n", "");
    for refused in [build_crate(dir.path()).err(), build_workspace(dir.path()).err()] {
        let why = refused.unwrap();
        assert!(matches!(why, BuildError::NoModule(_)));
        assert!(why.to_string().contains("cdylib"), "{why}");
    }
}

#[test]
fn a_module_that_is_no_policy_is_refused() {
    let cargo = "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                 [lib]\ncrate-type = [\"cdylib\"]\n[workspace]\n";
    let dir = krate(cargo, "#[unsafe(no_mangle)]\npub extern \"C\" fn f() {}\n");
    assert!(matches!(build_crate(dir.path()), Err(BuildError::NoManifest)));
    let why = build_workspace(dir.path()).unwrap_err().to_string();
    assert!(why.starts_with("a: "), "it says which: {why}");
}

#[test]
fn source_that_does_not_compile_and_folders_without_a_crate() {
    let dir = krate("[package]\nname = \"a\"\nversion = \"0.1.0\"\n[workspace]\n", "this is no Rust");
    assert!(matches!(build_crate(dir.path()), Err(BuildError::Cargo(_))));
    assert!(matches!(build_crate(&dir.path().join("src")), Err(BuildError::NotACrate(_))));
}
