//! From a core module to a component with its manifest.

use wasm_encoder::{ComponentSection, CustomSection, Encode, RawSection, Section};
use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

use crate::{BuildError, Manifest};

/// Name of the custom section with the manifest: JSON, at the top level of the component.
pub const MANIFEST_SECTION: &str = "ephor:manifest";
/// Name of the custom section in which the SDK leaves name and version of the crate.
const CRATE_SECTION: &str = "ephor:crate";

/// Makes a component of a core module that was built against the SDK.
///
/// The manifest moves from the module to the top level of the component; debugging information is dropped, names of
/// functions stay for the backtrace of a trap.
///
/// # Errors
/// The bytes are no core module, carry no manifest or a bad one, do not fit their world, or import more than
/// `ephor:*` and what the manifest asks for.
pub fn componentize(module: &[u8]) -> Result<Vec<u8>, BuildError> {
    let Parts { module, manifest: json, krate } = take_apart(module)?;
    let json = json.ok_or(BuildError::NoManifest)?;
    let manifest = Manifest::parse(&json)?;
    if let Some(krate) = krate {
        agree(&manifest, &krate)?;
    }
    let component = ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|why| BuildError::Encode(format!("{why:#}")))?;
    check_surface(&component, &manifest)?;
    Ok(with_manifest(&component, &json))
}

/// The manifest section of a component, as it stands there.
///
/// # Errors
/// [`BuildError::NotWasm`] where the bytes cannot be parsed, [`BuildError::NoManifest`] where there is none.
pub fn manifest_section(component: &[u8]) -> Result<&[u8], BuildError> {
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(not_wasm)? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if depth == 0 && section.name() == MANIFEST_SECTION => {
                return Ok(section.data());
            }
            _ => {}
        }
    }
    Err(BuildError::NoManifest)
}

struct Parts {
    module: Vec<u8>,
    manifest: Option<Vec<u8>>,
    krate: Option<String>,
}

/// Takes the SDK's sections and the debugging information out of a module.
fn take_apart(module: &[u8]) -> Result<Parts, BuildError> {
    if !module.starts_with(b"\0asm") {
        return Err(BuildError::NotWasm("it does not begin with the four bytes of one".to_owned()));
    }
    let mut parts = Parts { module: wasm_encoder::Module::HEADER.to_vec(), manifest: None, krate: None };
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload.map_err(not_wasm)?;
        match &payload {
            Payload::Version { encoding: wasmparser::Encoding::Component, .. } => {
                return Err(BuildError::AlreadyComponent);
            }
            Payload::CustomSection(section) => match section.name() {
                MANIFEST_SECTION => parts.manifest = Some(section.data().to_vec()),
                CRATE_SECTION => parts.krate = Some(String::from_utf8_lossy(section.data()).into_owned()),
                name if name.starts_with(".debug_") => {}
                _ => append(&mut parts.module, &payload, module),
            },
            _ => append(&mut parts.module, &payload, module),
        }
    }
    Ok(parts)
}

fn append(out: &mut Vec<u8>, payload: &Payload<'_>, module: &[u8]) {
    if let Some((id, range)) = payload.as_section() {
        RawSection { id, data: &module[range] }.append_to(out);
    }
}

fn not_wasm(why: wasmparser::BinaryReaderError) -> BuildError {
    BuildError::NotWasm(why.to_string())
}

fn agree(manifest: &Manifest, krate: &str) -> Result<(), BuildError> {
    let (name, version) = krate.split_once(' ').unwrap_or((krate, ""));
    for (field, manifest, krate) in [("name", &manifest.name, name), ("version", &manifest.version, version)] {
        if manifest != krate {
            return Err(BuildError::CrateDiffers { field, manifest: manifest.clone(), krate: krate.to_owned() });
        }
    }
    Ok(())
}

/// Holds what the component imports and exports against its manifest.
fn check_surface(component: &[u8], manifest: &Manifest) -> Result<(), BuildError> {
    let (imports, exports) = surface(component)?;
    let foreign: Vec<String> = imports.iter().filter(|i| !i.starts_with("ephor:")).cloned().collect();
    if !foreign.is_empty() {
        return Err(BuildError::ForeignImports(foreign));
    }
    let undeclared: Vec<String> = imports
        .iter()
        .map(|i| without_version(i))
        .filter(|i| i.starts_with("ephor:host/") && !manifest.imports.iter().any(|asked| asked == i))
        .map(str::to_owned)
        .collect();
    if !undeclared.is_empty() {
        return Err(BuildError::UndeclaredImports(undeclared));
    }
    let wanted = manifest.role.interface();
    if !exports.iter().any(|e| without_version(e) == wanted) {
        return Err(BuildError::RoleDiffers { role: manifest.role.to_string(), wanted, exports });
    }
    Ok(())
}

fn without_version(name: &str) -> &str {
    name.split_once('@').map_or(name, |(name, _)| name)
}

/// Names of the imports and exports at the top level.
fn surface(component: &[u8]) -> Result<(Vec<String>, Vec<String>), BuildError> {
    let (mut imports, mut exports, mut depth) = (Vec::new(), Vec::new(), 0_u32);
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(not_wasm)? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    imports.push(import.map_err(not_wasm)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    exports.push(export.map_err(not_wasm)?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok((imports, exports))
}

/// Puts the manifest first, so that a reader finds it without parsing the rest.
fn with_manifest(component: &[u8], json: &[u8]) -> Vec<u8> {
    let header = wasm_encoder::Component::HEADER.len();
    let mut out = component[..header].to_vec();
    let section = CustomSection { name: MANIFEST_SECTION.into(), data: json.into() };
    out.push(ComponentSection::id(&section));
    section.encode(&mut out);
    out.extend_from_slice(&component[header..]);
    out
}
