//! The built-in policies, as they were in `target/plugins` when this crate was built.

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// The component of that name, such as `scheduling-backfill`.
pub fn find(name: &str) -> Option<&'static [u8]> {
    COMPONENTS.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}

/// Names of all built-in policies, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMPONENTS.iter().map(|(name, _)| *name)
}
