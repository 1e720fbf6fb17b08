//! Users and groups as the controller's host sees them. By grant only: `ephor:host/directory` in the manifest.

use crate::bindings::host::ephor::host::directory as host;

pub use host::User;

/// Where users are looked up.
pub trait Directory {
    /// The user with that id.
    fn user_by_id(&self, uid: u32) -> Option<User>;
    /// The user with that login name.
    fn user_by_name(&self, name: &str) -> Option<User>;
}

/// The directory of the host.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostDirectory;

impl Directory for HostDirectory {
    fn user_by_id(&self, uid: u32) -> Option<User> {
        host::user_by_id(uid)
    }
    fn user_by_name(&self, name: &str) -> Option<User> {
        host::user_by_name(name)
    }
}
