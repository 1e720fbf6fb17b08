//! Why a component cannot fill a slot: what is wrong with it, where, and what would work.

use ephor_model::{Role, limits};

/// A component, its configuration or its grants were refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// It is above the size limit.
    #[error("the component has {0} bytes; at most {max} are taken", max = limits::COMPONENT_BYTES)]
    TooLarge(usize),
    /// The bytes are no WebAssembly at all.
    #[error(
        "this is not a WebAssembly component: it does not begin with \\0asm; give the .wasm file of a built policy"
    )]
    NotWasm,
    /// A core module.
    #[error(
        "this is a core WebAssembly module, not a component; build it with ephor-policy-build, which makes one of it"
    )]
    CoreModule,
    /// It breaks off, or a part of it cannot be read.
    #[error("the component is damaged or incomplete: {0}; copy it or build it again")]
    Damaged(String),
    /// No manifest section.
    #[error(
        "the component has no manifest (custom section `ephor:manifest`), so it is no Ephor policy; build it with ephor-policy-build"
    )]
    NoManifest,
    /// The manifest cannot be used.
    #[error("the manifest of the component cannot be used: {0}")]
    Manifest(String),
    /// It fills another role.
    #[error("'{name}' is a policy for {found}; this slot takes one for {wanted}")]
    Role {
        /// Its name.
        name: String,
        /// What it is.
        found: Role,
        /// What the slot needs.
        wanted: Role,
    },
    /// It was built against packages that are not here.
    #[error("'{name}' was built against {package}; this host has {known}")]
    Package {
        /// Its name.
        name: String,
        /// What it wants.
        package: String,
        /// What there is.
        known: String,
    },
    /// It does not export its role's interface.
    #[error("'{name}' does not export {wanted}; its exports are: {found}")]
    Export {
        /// Its name.
        name: String,
        /// The interface.
        wanted: String,
        /// What it exports.
        found: String,
    },
    /// It imports what its manifest does not name.
    #[error("'{name}' imports {imports}, which its manifest does not ask for; add it to `imports` there")]
    Undeclared {
        /// Its name.
        name: String,
        /// The imports.
        imports: String,
    },
    /// It imports what no policy can have.
    #[error("'{name}' imports {imports}; a policy can import ephor:host and its own role's interfaces only (no WASI)")]
    Foreign {
        /// Its name.
        name: String,
        /// The imports.
        imports: String,
    },
    /// It asks for what the site did not grant.
    #[error(
        "'{name}' imports {imports}, which was not granted; grant it when you activate the policy, if you trust it with that"
    )]
    NotGranted {
        /// Its name.
        name: String,
        /// The imports.
        imports: String,
    },
    /// The configuration is no JSON, or too long.
    #[error("the configuration cannot be read: {0}")]
    ConfigText(String),
    /// The configuration does not fit the schema.
    #[error("the configuration does not fit the schema of '{name}':{}", lines(violations))]
    Config {
        /// The policy's name.
        name: String,
        /// Each with its path.
        violations: Vec<String>,
    },
    /// It does not compile or link.
    #[error("'{name}' cannot be used by this host: {why}")]
    Unusable {
        /// Its name.
        name: String,
        /// In words.
        why: String,
    },
    /// The trial start failed.
    #[error("'{name}' does not start: {why}")]
    Start {
        /// Its name.
        name: String,
        /// In words.
        why: String,
    },
    /// The host itself could not do its part.
    #[error("the policy host failed: {0}")]
    Host(String),
}

fn lines(violations: &[String]) -> String {
    violations.iter().map(|v| format!("\n  {v}")).collect()
}
