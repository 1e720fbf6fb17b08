//! Misbehaves in the role authentication as its configuration says.

use ephor_sdk::authentication::{Action, Authentication, Credential, Peer, Session, Target};
use ephor_sdk::directory::Directory;
use ephor_sdk::{Identity, Timestamp};
use hostile_faults::{Config, FLOOD_BYTES, Fault, HUGE_STRING_BYTES, text};

/// The policy.
pub struct Hostile;

impl Authentication for Hostile {
    type Config = Config;

    fn authenticate<D: Directory>(
        _now: Timestamp,
        _credential: &Credential,
        peer: &Peer,
        _directory: &D,
        config: &Config,
    ) -> Result<Session, String> {
        let mut identity =
            Identity { uid: peer.uid, gid: peer.gid, name: format!("uid{}", peer.uid), roles: Vec::new() };
        let mut valid_until = None;
        match config.strike("authenticate", true) {
            Fault::Flood => return Err(text(FLOOD_BYTES)),
            Fault::HugeString => identity.name = text(HUGE_STRING_BYTES),
            Fault::WrongValues => {
                identity.name.clear();
                valid_until = Some(i64::MIN);
            }
            _ => {}
        }
        Ok(Session { identity, valid_until })
    }

    fn authorize(
        _now: Timestamp,
        _who: &Identity,
        _action: Action,
        _target: &Target,
        config: &Config,
    ) -> Result<(), String> {
        match config.strike("authorize", false) {
            Fault::Flood => Err(text(FLOOD_BYTES)),
            Fault::HugeString => Err(text(HUGE_STRING_BYTES)),
            _ => Ok(()),
        }
    }
}

ephor_sdk::policy!(Authentication for Hostile { manifest: include_str!("../manifest.json") });
