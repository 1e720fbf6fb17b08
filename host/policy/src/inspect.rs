//! Reads what a component is and what it wants, without compiling or running any of it.

use crate::bounds;
use crate::error::LoadError;
use crate::manifest::Manifest;
use ephor_model::{Role, limits};
use wasmparser::{BinaryReaderError, Encoding, Parser, Payload};

/// Name of the custom section with the manifest.
pub const MANIFEST_SECTION: &str = "ephor:manifest";
/// The version of every package of the contract that this host has.
const VERSION: &str = "0.1.0";
/// Interfaces of `ephor:host` that are granted to every policy that asks.
const GRANTED_TO_ALL: [&str; 4] =
    ["ephor:host/log", "ephor:host/config", "ephor:host/names", "ephor:host/policy-store"];

/// A component as it looks from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Surface {
    /// Its manifest.
    pub manifest: Manifest,
    /// Names of its imports, with versions.
    pub imports: Vec<String>,
    /// Names of its exports, with versions.
    pub exports: Vec<String>,
    /// Whether it runs code of its own when an instance starts, before any call.
    pub runs_at_start: bool,
}

impl Surface {
    /// Reads a component.
    ///
    /// # Errors
    /// It is too large, no component, damaged, or has no manifest or a bad one.
    pub fn read(component: &[u8]) -> Result<Self, LoadError> {
        if component.len() > limits::COMPONENT_BYTES {
            return Err(LoadError::TooLarge(component.len()));
        }
        if !component.starts_with(b"\0asm") {
            return Err(LoadError::NotWasm);
        }
        let (mut manifest, mut imports, mut exports) = (None, Vec::new(), Vec::new());
        let (mut depth, mut runs_at_start) = (0_u32, false);
        for payload in Parser::new(0).parse_all(component) {
            match payload.map_err(damaged)? {
                Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => return Err(LoadError::CoreModule),
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::StartSection { .. } | Payload::ComponentStartSection { .. } => runs_at_start = true,
                Payload::End(_) => depth = depth.saturating_sub(1),
                _ if depth > 0 => {}
                Payload::CustomSection(section) if section.name() == MANIFEST_SECTION => {
                    if manifest.is_some() {
                        return Err(LoadError::Manifest("there is more than one".into()));
                    }
                    manifest = Some(Manifest::parse(section.data())?);
                }
                Payload::ComponentImportSection(section) => {
                    few(section.count())?;
                    for import in section {
                        imports.push(import.map_err(damaged)?.name.name.to_owned());
                    }
                    few(imports.len() as u32)?;
                }
                Payload::ComponentExportSection(section) => {
                    few(section.count())?;
                    for export in section {
                        exports.push(export.map_err(damaged)?.name.name.to_owned());
                    }
                    few(exports.len() as u32)?;
                }
                _ => {}
            }
        }
        Ok(Self { manifest: manifest.ok_or(LoadError::NoManifest)?, imports, exports, runs_at_start })
    }

    /// Whether it may fill a slot of that role with those grants (interfaces such as `ephor:host/directory`): answers
    /// the interfaces of `ephor:host` that are to be linked, without versions.
    ///
    /// # Errors
    /// Another role, unknown packages, or imports beyond manifest and grants.
    pub fn admit(&self, role: Role, grants: &[String]) -> Result<Vec<String>, LoadError> {
        let name = self.manifest.name.clone();
        if self.manifest.role != role {
            return Err(LoadError::Role { name, found: self.manifest.role, wanted: role });
        }
        let own = format!("ephor:{role}");
        let names = self.imports.iter().chain(&self.exports).filter(|i| i.contains(':'));
        let packages = names.filter_map(|i| package_of(i)).chain(self.manifest.packages.iter().cloned());
        for package in packages.filter(|p| p.starts_with("ephor:")) {
            if !known_packages(role).contains(&package) {
                return Err(LoadError::Package { name, package, known: known_packages(role).join(", ") });
            }
        }
        let wanted = format!("{own}/{role}@{VERSION}");
        if !self.exports.contains(&wanted) {
            return Err(LoadError::Export { name, wanted, found: listed(self.exports.iter()) });
        }
        let mut linked = Vec::new();
        let (mut foreign, mut undeclared, mut not_granted) = (Vec::new(), Vec::new(), Vec::new());
        for import in &self.imports {
            let interface = import.split_once('@').map_or(import.as_str(), |(interface, _)| interface);
            let package = interface.split_once('/').map_or(interface, |(package, _)| package);
            match package {
                "ephor:types" => {}
                p if p == own => {}
                "ephor:host" => {
                    let granted = GRANTED_TO_ALL.contains(&interface) || grants.iter().any(|g| g == interface);
                    if !self.manifest.imports.iter().any(|asked| asked == interface) {
                        undeclared.push(interface);
                    } else if !granted {
                        not_granted.push(interface);
                    } else {
                        linked.push(interface.to_owned());
                    }
                }
                _ => foreign.push(import.as_str()),
            }
        }
        if !foreign.is_empty() {
            return Err(LoadError::Foreign { name, imports: listed(foreign.iter()) });
        }
        if !undeclared.is_empty() {
            return Err(LoadError::Undeclared { name, imports: listed(undeclared.iter()) });
        }
        if !not_granted.is_empty() {
            return Err(LoadError::NotGranted { name, imports: listed(not_granted.iter()) });
        }
        Ok(linked)
    }
}

fn damaged(why: BinaryReaderError) -> LoadError {
    LoadError::Damaged(format!("{} (at byte {})", why.message(), why.offset()))
}

fn few(names: u32) -> Result<(), LoadError> {
    if names as usize <= bounds::NAMES {
        return Ok(());
    }
    Err(LoadError::Damaged(format!("it has {names} imports or exports; at most {} are taken", bounds::NAMES)))
}

/// `ephor:host/log@0.1.0` belongs to `ephor:host@0.1.0`.
fn package_of(interface: &str) -> Option<String> {
    let (package, rest) = interface.split_once('/')?;
    match rest.split_once('@') {
        Some((_, version)) => Some(format!("{package}@{version}")),
        None => Some(package.to_owned()),
    }
}

fn known_packages(role: Role) -> [String; 3] {
    ["types", "host", role.name()].map(|name| format!("ephor:{name}@{VERSION}"))
}

/// A few names for a message.
fn listed<S: AsRef<str>>(names: impl Iterator<Item = S>) -> String {
    let mut names: Vec<String> = names.map(|n| n.as_ref().chars().take(120).collect()).collect();
    let more = names.len().saturating_sub(8);
    names.truncate(8);
    match more {
        0 if names.is_empty() => "none".to_owned(),
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
