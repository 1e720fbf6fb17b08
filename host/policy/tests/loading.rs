//! What cannot fill a slot is refused with a text that says why; what can is cached.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may its helpers")]

mod common;

use common::*;
use ephor_model::{PolicyLimits, Role, limits};
use ephor_policy::bounds::site_maxima;
use ephor_policy::{Host, LoadError, MANIFEST_SECTION, Request, Services, builtin};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn refusal(role: Role, component: &[u8], config: &str) -> LoadError {
    prepare(role, component, config).err().expect("it is taken")
}

#[test]
fn what_is_no_policy_is_refused_by_name() {
    assert_eq!(refusal(Role::Scheduling, b"", "{}"), LoadError::NotWasm);
    assert_eq!(refusal(Role::Scheduling, b"#!/bin/sh\n", "{}"), LoadError::NotWasm);
    assert_eq!(refusal(Role::Scheduling, b"\0asm\x01\0\0\0", "{}"), LoadError::CoreModule);
    assert_eq!(refusal(Role::Scheduling, b"\0asm\x0d\0\x01\0", "{}"), LoadError::NoManifest);
    assert!(matches!(refusal(Role::Scheduling, b"\0asm\x0d\0\x01\0\xff\xff", "{}"), LoadError::Damaged(_)));
    let huge = vec![0; limits::COMPONENT_BYTES + 1];
    assert_eq!(refusal(Role::Scheduling, &huge, "{}"), LoadError::TooLarge(huge.len()));
}

#[test]
fn a_component_that_breaks_off_is_damaged() {
    let Some(component) = plugin("scheduling-fifo") else { return };
    for end in [9, 100, component.len() / 2, component.len() - 1] {
        let error = refusal(Role::Scheduling, &component[..end], "{}");
        assert!(matches!(error, LoadError::Damaged(_)), "cut at {end}: {error}");
    }
}

#[test]
fn another_role_and_a_configuration_that_does_not_fit_are_refused() {
    let Some(component) = plugin("scheduling-backfill") else { return };
    let error = refusal(Role::Priority, &component, "{}");
    let text = "'scheduling-backfill' is a policy for scheduling; this slot takes one for priority";
    assert_eq!(error.to_string(), text);
    let error = refusal(Role::Scheduling, &component, r#"{"window": 0, "colour": "red"}"#).to_string();
    assert!(error.contains("at /window: ") && error.contains("colour"), "{error}");
    assert!(matches!(refusal(Role::Scheduling, &component, "window=1"), LoadError::ConfigText(_)));
    let prepared = prepare(Role::Scheduling, &component, "{ \"window\": 10 }").unwrap();
    assert_eq!(prepared.about().config, "{\"window\":10}");
}

#[test]
fn an_import_without_a_grant_is_refused() {
    let Some(component) = plugin("auth-local") else { return };
    let host = host();
    let prepare = |grants: &[String]| {
        let role = Role::Authentication;
        host.prepare(&Request { role, component: &component, config: "", grants, maxima: site_maxima(role) })
    };
    let error = prepare(&[]).err().unwrap();
    assert!(matches!(&error, LoadError::NotGranted { imports, .. } if imports == "ephor:host/directory"), "{error}");
    let prepared = prepare(&["ephor:host/directory".to_owned()]).unwrap();
    assert!(prepared.about().linked.contains(&"ephor:host/directory".to_owned()));
}

/// The component with another manifest in place of its own.
fn with_manifest(component: &[u8], change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let mut out = component[..8].to_vec();
    let mut change = Some(change);
    let mut depth = 0;
    for payload in wasmparser::Parser::new(0).parse_all(component) {
        let payload = payload.unwrap();
        let range = payload.as_section();
        match &payload {
            wasmparser::Payload::CustomSection(s) if depth == 0 && s.name() == MANIFEST_SECTION => {
                let mut json: serde_json::Value = serde_json::from_slice(s.data()).unwrap();
                if let Some(change) = change.take() {
                    change(&mut json);
                }
                let json = json.to_string();
                let mut content = leb(MANIFEST_SECTION.len());
                content.extend_from_slice(MANIFEST_SECTION.as_bytes());
                content.extend_from_slice(json.as_bytes());
                section(&mut out, 0, &content);
            }
            wasmparser::Payload::ModuleSection { unchecked_range, .. }
            | wasmparser::Payload::ComponentSection { unchecked_range, .. } => {
                if depth == 0 {
                    let id = if matches!(payload, wasmparser::Payload::ModuleSection { .. }) { 1 } else { 4 };
                    section(&mut out, id, &component[unchecked_range.clone()]);
                }
                depth += 1;
            }
            wasmparser::Payload::End(_) => depth -= 1,
            _ if depth > 0 => {}
            _ => {
                if let Some((id, range)) = range {
                    section(&mut out, id, &component[range]);
                }
            }
        }
    }
    out
}

fn section(out: &mut Vec<u8>, id: u8, content: &[u8]) {
    out.push(id);
    out.extend(leb(content.len()));
    out.extend_from_slice(content);
}

fn leb(mut n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

#[test]
fn the_manifest_is_held_against_the_component() {
    let Some(component) = plugin("scheduling-fifo") else { return };
    let refused =
        |change: fn(&mut serde_json::Value)| refusal(Role::Scheduling, &with_manifest(&component, change), "{}");
    prepare(Role::Scheduling, &with_manifest(&component, |_| {}), "{}").unwrap();
    let error = refused(|m| m["imports"] = serde_json::json!([]));
    assert!(matches!(&error, LoadError::Undeclared { imports, .. } if imports.contains("ephor:host/")), "{error}");
    let error = refused(|m| m["packages"] = serde_json::json!(["ephor:scheduling@9.0.0"]));
    assert!(matches!(&error, LoadError::Package { package, .. } if package == "ephor:scheduling@9.0.0"), "{error}");
    let error = refused(|m| m["surprise"] = 1.into());
    assert!(error.to_string().contains("surprise"), "{error}");
    let error = refused(|m| m["schema"] = serde_json::json!({"type": 5}));
    assert!(matches!(&error, LoadError::Manifest(text) if text.contains("schema")), "{error}");
    let lying = with_manifest(&component, |m| m["role"] = "priority".into());
    let error = refusal(Role::Priority, &lying, "{}");
    assert!(matches!(error, LoadError::Package { .. } | LoadError::Export { .. }), "{error}");
    let error = refused(|m| m["memory_bytes"] = 65_536.into());
    assert!(matches!(&error, LoadError::Start { why, .. } if why.contains("memory")), "{error}");
}

#[test]
fn the_site_bounds_what_a_manifest_wishes() {
    let Some(component) = hostile("scheduling") else { return };
    let role = Role::Scheduling;
    let maxima = PolicyLimits { fuel_base: 1_000_000, memory_bytes: 8 << 20, ..site_maxima(role) };
    let request = Request { role, component: &component, config: "", grants: &[], maxima };
    let prepared = host().prepare(&request).unwrap();
    assert_eq!(prepared.about().limits, PolicyLimits { fuel_per_job: 0, fuel_per_node: 0, ..maxima });
}

fn cached(folder: &Path, component: &[u8]) -> bool {
    let host = Host::new(Services::default()).unwrap().with_cache(folder).unwrap();
    let role = Role::Scheduling;
    host.prepare(&Request { role, component, config: "", grants: &[], maxima: site_maxima(role) }).unwrap().from_cache
}

fn compiled(folder: &Path) -> std::path::PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut files: Vec<_> = files.filter(|p| p.extension().is_some_and(|x| x == "cwasm")).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn compiled_code_is_kept_and_anything_odd_is_compiled_again() {
    let Some(component) = plugin("scheduling-fifo") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("cache");
    assert!(!cached(&folder, &component), "nothing is there yet");
    assert!(cached(&folder, &component), "it is there now");
    assert_eq!(fs::metadata(folder.join("key")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);

    let file = compiled(&folder);
    let good = fs::read(&file).unwrap();
    for (what, bytes) in [
        ("a flipped bit", good.iter().enumerate().map(|(i, b)| if i == good.len() / 2 { b ^ 1 } else { *b }).collect()),
        ("a flipped bit of the MAC", good.iter().enumerate().map(|(i, b)| b ^ u8::from(i == 0)).collect()),
        ("the end missing", good[..good.len() - 1].to_vec()),
        ("nothing in it", Vec::new()),
    ] {
        fs::write(&file, bytes).unwrap();
        assert!(!cached(&folder, &component), "{what}");
        assert!(cached(&folder, &component), "{what}: repaired");
    }
    // A key of somebody else makes every file foreign.
    fs::write(folder.join("key"), [9; 32]).unwrap();
    assert!(!cached(&folder, &component));
    assert!(cached(&folder, &component));
}

#[test]
fn a_key_that_others_can_read_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    fs::write(&key, [1; 32]).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let open = || Host::new(Services::default()).unwrap().with_cache(folder.path());
    assert!(open().err().unwrap().to_string().contains("others may read it"));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(open().is_ok());
    fs::write(&key, [1; 5]).unwrap();
    assert!(open().err().unwrap().to_string().contains("5 bytes"));
}

#[test]
fn the_built_in_policies_are_embedded_and_load() {
    for name in builtin::names() {
        let component = builtin::find(name).unwrap();
        let role = ephor_policy::Surface::read(component).unwrap().manifest.role;
        let prepared = prepare(role, component, "").unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(prepared.manifest.name, name);
    }
    assert_eq!(builtin::find("no-such-policy"), None);
}
