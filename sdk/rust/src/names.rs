//! Names behind ids, in batches, since tables hold ids only. By grant only: `ephor:host/names` in the manifest.

use crate::bindings::host::ephor::host::names as host;

pub use host::Kind;

/// Where names are looked up.
pub trait Names {
    /// The name of each id; an empty text where there is none.
    fn names(&self, kind: Kind, ids: &[u32]) -> Vec<String>;
    /// The id of a name.
    fn id(&self, kind: Kind, name: &str) -> Option<u32>;
}

/// The names that the host knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostNames;

impl Names for HostNames {
    fn names(&self, kind: Kind, ids: &[u32]) -> Vec<String> {
        host::names(kind, ids)
    }
    fn id(&self, kind: Kind, name: &str) -> Option<u32> {
        host::id(kind, name)
    }
}
