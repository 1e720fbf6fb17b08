//! What can go wrong between a policy's source and its component, and what would work.

use std::path::PathBuf;

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// What went wrong with one of many policies.
    #[error("{what}: {why}")]
    In {
        /// Which one.
        what: String,
        /// What went wrong.
        why: Box<BuildError>,
    },
    /// The folder holds no crate.
    #[error("{} is not a crate: it has no Cargo.toml; give the folder of a policy crate or a .wasm file", .0.display())]
    NotACrate(PathBuf),
    /// Cargo or rustc could not be started.
    #[error("could not run `{program}`: {why}; install Rust with rustup, or put it on PATH")]
    NoTool {
        /// The program.
        program: String,
        /// What the system said.
        why: std::io::Error,
    },
    /// The standard library for the target is missing and could not be installed.
    #[error(
        "the Rust target wasm32-unknown-unknown is not installed, and `rustup target add wasm32-unknown-unknown` did \
         not bring it ({0}). Run that command where there is a network. Without one, Debian's packages rustc-web, \
         cargo-web and rust-web-src build the same policies: set RUSTC_BOOTSTRAP=1, pass \
         -Zbuild-std=std,panic_abort to cargo, and use rust-lld as linker"
    )]
    NoTarget(String),
    /// Cargo ran and failed; it has printed why.
    #[error("cargo could not build {}; its messages above say why", .0.display())]
    Cargo(PathBuf),
    /// Cargo succeeded, but the crate makes no module.
    #[error(
        "{} makes no WebAssembly module; its Cargo.toml needs `[lib] crate-type = [\"cdylib\", \"rlib\"]`",
        .0.display()
    )]
    NoModule(PathBuf),
    /// More modules than one came out where one was asked for.
    #[error("{} makes {count} modules; build them with --all, or give the folder of one policy", .dir.display())]
    ManyModules {
        /// The folder.
        dir: PathBuf,
        /// How many.
        count: usize,
    },
    /// Two policies of one workspace have the same name, so one file would replace the other.
    #[error("two policies are called {0:?}; give one of them another name in Cargo.toml and manifest.json")]
    SameName(String),
    /// A file could not be read or written.
    #[error("{}: {why}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: std::io::Error,
    },
    /// The bytes are not WebAssembly.
    #[error("not a WebAssembly module: {0}; build the crate for wasm32-unknown-unknown")]
    NotWasm(String),
    /// The bytes are a component already.
    #[error("this is a component already; the builder takes the core module that cargo makes")]
    AlreadyComponent,
    /// The module has no manifest.
    #[error(
        "the module carries no manifest; put one beside the crate and name it in \
         `ephor_sdk::policy!(Role for Policy {{ manifest: include_str!(\"../manifest.json\") }})`"
    )]
    NoManifest,
    /// The manifest does not have the shape that the contract asks for.
    #[error("manifest: {0}")]
    Manifest(String),
    /// Manifest and Cargo.toml disagree.
    #[error("manifest: {field} is {manifest:?}, but Cargo.toml says {krate:?}; make them the same")]
    CrateDiffers {
        /// `name` or `version`.
        field: &'static str,
        /// In the manifest.
        manifest: String,
        /// In Cargo.toml.
        krate: String,
    },
    /// wit-component found that the module does not fit its world.
    #[error("the module does not fit its interface: {0}")]
    Encode(String),
    /// Imports that no host of policies has.
    #[error(
        "the component imports {}, which no policy gets; a policy may import `ephor:*` only: build for \
         wasm32-unknown-unknown and leave out crates that need files, clocks, network or randomness",
        .0.join(", ")
    )]
    ForeignImports(Vec<String>),
    /// The component imports host interfaces that its manifest does not ask for.
    #[error("the component imports {}; add that to `imports` in the manifest, or do not use it", .0.join(", "))]
    UndeclaredImports(Vec<String>),
    /// The manifest names a role that the component does not fill.
    #[error("the manifest says role {role}, but the component exports {}; it would have to export {wanted}",
        if .exports.is_empty() { "nothing".to_owned() } else { .exports.join(", ") })]
    RoleDiffers {
        /// Role in the manifest.
        role: String,
        /// Interface of that role.
        wanted: String,
        /// What the component exports.
        exports: Vec<String>,
    },
}

impl BuildError {
    pub(crate) fn file(path: impl Into<PathBuf>, why: std::io::Error) -> Self {
        Self::File { path: path.into(), why }
    }

    pub(crate) fn within(self, what: impl Into<String>) -> Self {
        Self::In { what: what.into(), why: Box::new(self) }
    }
}
