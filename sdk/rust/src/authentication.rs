//! The authentication role: who is calling, and what they may do.

use serde::de::DeserializeOwned;

pub use crate::bindings::authentication::exports::ephor::authentication::authentication::{
    Action, Credential, Peer, Session, Target,
};
use crate::directory::Directory;
use crate::{Identity, Timestamp};

/// An authentication policy.
pub trait Authentication {
    /// Its configuration. The default stands where the site gave none.
    type Config: DeserializeOwned + Default + Send + Sync + 'static;

    /// Who is calling?
    ///
    /// # Errors
    /// The text that the caller reads.
    fn authenticate<D: Directory>(
        now: Timestamp,
        credential: &Credential,
        peer: &Peer,
        directory: &D,
        config: &Self::Config,
    ) -> Result<Session, String>;

    /// May this identity do that?
    ///
    /// # Errors
    /// The text that the caller reads.
    fn authorize(
        now: Timestamp,
        who: &Identity,
        action: Action,
        target: &Target,
        config: &Self::Config,
    ) -> Result<(), String>;
}
