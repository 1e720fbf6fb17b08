//! From hand-made core modules to components: what is taken, and what is refused with which words.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::PathBuf;

use ephor_policy_build::{BuildError, componentize, manifest_section};
use wasm_encoder::{
    CodeSection, CustomSection, EntityType, ExportKind, ExportSection, Function, FunctionSection, ImportSection,
    MemorySection, MemoryType, Module, TypeSection, ValType,
};
use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

const SCHEDULE: &str = "ephor:scheduling/scheduling@0.1.0#schedule";
const MANIFEST: &str = r#"{
    "name": "tiny", "version": "1.2.3", "role": "scheduling", "summary": "Does nothing.",
    "packages": ["ephor:scheduling@0.1.0"], "imports": ["ephor:host/names"], "schema": {},
    "fuel": {"base": 1000, "per_job": 0, "per_node": 0}, "memory_bytes": 65536
}"#;

/// A scheduling policy that does nothing, in the making.
struct Tiny {
    manifest: Option<String>,
    krate: Option<&'static str>,
    /// Interface and function that are imported; the function takes so many integers and returns nothing.
    import: Option<(&'static str, &'static str, usize)>,
    world: &'static str,
}

impl Tiny {
    fn new() -> Self {
        let world = "package t:t; world w { include ephor:scheduling/policy@0.1.0; }";
        Self { manifest: Some(MANIFEST.to_owned()), krate: Some("tiny 1.2.3"), import: None, world }
    }

    fn with_manifest(change: impl FnOnce(&mut serde_json::Value)) -> Self {
        let mut json: serde_json::Value = serde_json::from_str(MANIFEST).unwrap();
        change(&mut json);
        Self { manifest: Some(json.to_string()), ..Self::new() }
    }

    fn module(&self) -> Vec<u8> {
        let mut types = TypeSection::new();
        types.ty().function([ValType::I32], []);
        let mut imports = ImportSection::new();
        if let Some((interface, function, parameters)) = self.import {
            types.ty().function(vec![ValType::I32; parameters], []);
            imports.import(interface, function, EntityType::Function(1));
        }
        let mut functions = FunctionSection::new();
        functions.function(0);
        let mut memories = MemorySection::new();
        memories.memory(MemoryType { minimum: 1, maximum: None, memory64: false, shared: false, page_size_log2: None });
        let mut exports = ExportSection::new();
        exports.export("memory", ExportKind::Memory, 0);
        exports.export(SCHEDULE, ExportKind::Func, u32::from(self.import.is_some()));
        let mut code = CodeSection::new();
        let mut body = Function::new([]);
        body.instructions().end();
        code.function(&body);
        let mut module = Module::new();
        module
            .section(&types)
            .section(&imports)
            .section(&functions)
            .section(&memories)
            .section(&exports)
            .section(&code);
        let custom =
            [("ephor:manifest", self.manifest.as_deref()), ("ephor:crate", self.krate), (".debug_info", Some("x"))];
        for (name, data) in custom {
            if let Some(data) = data {
                module.section(&CustomSection { name: name.into(), data: data.as_bytes().into() });
            }
        }
        self.embed(module.finish())
    }

    fn embed(&self, mut module: Vec<u8>) -> Vec<u8> {
        let wit = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        let mut resolve = Resolve::default();
        for package in ["types", "host", "scheduling"] {
            resolve.push_dir(wit.join(package)).unwrap();
        }
        let package = resolve.push_str("world.wit", self.world).unwrap();
        let world = resolve.select_world(&[package], None).unwrap();
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
        module
    }

    fn build(&self) -> Result<Vec<u8>, BuildError> {
        componentize(&self.module())
    }

    fn refusal(&self) -> String {
        self.build().unwrap_err().to_string()
    }
}

#[test]
fn the_manifest_moves_to_the_top_level_and_debugging_information_goes() {
    let component = Tiny::new().build().unwrap();
    assert_eq!(manifest_section(&component).unwrap(), MANIFEST.as_bytes());
    let all = String::from_utf8_lossy(&component);
    assert_eq!(all.matches("Does nothing.").count(), 1, "the module keeps no copy");
    assert!(!all.contains(".debug_info") && !all.contains("ephor:crate"));
    wasmparser::Validator::new().validate_all(&component).unwrap();
}

#[test]
fn the_same_module_gives_the_same_bytes() {
    assert_eq!(Tiny::new().build().unwrap(), Tiny::new().build().unwrap());
}

#[test]
fn a_module_without_manifest_is_told_how_to_have_one() {
    let why = Tiny { manifest: None, ..Tiny::new() }.refusal();
    assert!(why.contains("ephor_sdk::policy!"), "{why}");
}

#[test]
fn manifest_and_crate_must_agree() {
    assert!(Tiny { krate: Some("other 1.2.3"), ..Tiny::new() }.refusal().contains("name is \"tiny\""));
    assert!(Tiny { krate: Some("tiny 1.2.4"), ..Tiny::new() }.refusal().contains("version is \"1.2.3\""));
    assert!(Tiny { krate: None, ..Tiny::new() }.build().is_ok(), "other toolchains leave no such section");
}

#[test]
fn a_bad_manifest_is_named_with_its_field() {
    assert!(Tiny::with_manifest(|m| m["fuel"]["base"] = 0.into()).refusal().contains("fuel.base"));
    assert!(Tiny { manifest: Some("{".to_owned()), ..Tiny::new() }.refusal().contains("EOF"));
}

#[test]
fn imports_must_be_declared_and_ours() {
    let world = "package t:t; interface here { f: func(); } \
                 world w { include ephor:scheduling/policy@0.1.0; import here; }";
    let foreign = Tiny { world, import: Some(("t:t/here", "f", 0)), ..Tiny::new() };
    assert!(matches!(foreign.build(), Err(BuildError::ForeignImports(names)) if names == ["t:t/here"]));
    let unknown = Tiny { import: Some(("env", "clock", 0)), ..Tiny::new() };
    assert!(matches!(unknown.build(), Err(BuildError::Encode(_))));
}

#[test]
fn host_interfaces_must_be_asked_for() {
    let log = Some(("ephor:host/log@0.1.0", "write", 3));
    let silent = Tiny { import: log, ..Tiny::new() };
    assert!(matches!(silent.build(), Err(BuildError::UndeclaredImports(names)) if names == ["ephor:host/log"]));
    let asking = Tiny::with_manifest(|m| m["imports"] = serde_json::json!(["ephor:host/log"]));
    assert!(Tiny { import: log, ..asking }.build().is_ok());
}

#[test]
fn the_role_must_be_filled() {
    let why = Tiny::with_manifest(|m| {
        m["role"] = "priority".into();
        m["packages"] = serde_json::json!(["ephor:priority@0.1.0"]);
    })
    .refusal();
    assert!(why.contains("ephor:priority/priority") && why.contains("ephor:scheduling/scheduling@0.1.0"), "{why}");
}

#[test]
fn components_and_other_bytes_are_refused() {
    let component = Tiny::new().build().unwrap();
    assert!(matches!(componentize(&component), Err(BuildError::AlreadyComponent)));
    assert!(componentize(b"[package]").unwrap_err().to_string().contains("wasm32-unknown-unknown"));
    assert!(componentize(b"").is_err());
    let module = Tiny::new().module();
    assert!(componentize(&module[..module.len() / 2]).is_err(), "cut short");
}
