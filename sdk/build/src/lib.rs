//! Turns a core WebAssembly module of a policy into a component with its manifest, in process.
//!
//! [`build_crate`] and [`build_workspace`] run cargo for `wasm32-unknown-unknown` and hand each module to
//! [`componentize`], which needs no tool but this crate. A component that comes out of here imports nothing but
//! `ephor:*` interfaces and carries its manifest as custom section [`MANIFEST_SECTION`] at its top level.

mod cargo;
mod component;
mod error;
mod manifest;

pub use cargo::{TARGET, build_crate, build_workspace, ensure_target};
pub use component::{MANIFEST_SECTION, componentize, manifest_section};
pub use error::BuildError;
pub use manifest::{Fuel, Manifest, Role};
