//! Local users by the uid of their socket: root and operators may do all, users their own.
//!
//! The operating system attests the uid; the directory gives it a name and groups. Users may submit, see the cluster,
//! and change their own jobs. They see the jobs of others too, with their scripts, unless `private_jobs` is set: the
//! contract knows one kind of reading a job. Operators are named in `operators`, or are members of one of
//! `operator_groups`; root always is one. An identity is asked for again after ten minutes, so that somebody who
//! leaves a group loses the role on a connection that stays open.

use ephor_sdk::authentication::{Action, Authentication, Credential, Peer, Session, Target};
use ephor_sdk::directory::Directory;
use ephor_sdk::text::list;
use ephor_sdk::{Identity, Timestamp};
use serde::Deserialize;

/// The role that may do everything.
const OPERATOR: &str = "operator";
/// How long an identity lasts, in milliseconds.
const LASTS: i64 = 10 * 60 * 1_000;

/// What a site may set.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Login names of users who may do everything.
    pub operators: Vec<String>,
    /// Names of groups whose members may do everything.
    pub operator_groups: Vec<String>,
    /// Whether users see their own jobs only.
    pub private_jobs: bool,
    /// Whether a uid that the directory does not know may come in.
    pub allow_unknown: bool,
}

/// The policy.
pub struct AuthLocal;

impl Authentication for AuthLocal {
    type Config = Config;

    fn authenticate<D: Directory>(
        now: Timestamp,
        credential: &Credential,
        peer: &Peer,
        directory: &D,
        config: &Config,
    ) -> Result<Session, String> {
        if *credential != Credential::Local {
            return Err("tokens and certificates are not taken here; connect through the local socket of the \
                        controller or of an agent"
                .to_owned());
        }
        let identity = identify(peer, directory, config)?;
        Ok(Session { identity, valid_until: Some(now.saturating_add(LASTS)) })
    }

    fn authorize(
        _now: Timestamp,
        who: &Identity,
        action: Action,
        target: &Target,
        config: &Config,
    ) -> Result<(), String> {
        if who.uid == 0 || who.roles.iter().any(|role| role == OPERATOR) {
            return Ok(());
        }
        let own = target.owner == Some(who.uid);
        match action {
            Action::Submit | Action::ClusterRead => Ok(()),
            Action::JobRead if own || !config.private_jobs => Ok(()),
            Action::JobRead => Err(denied(who, &format!("see {}", job(target)), "its owner and operators", config)),
            Action::JobWrite if own => Ok(()),
            Action::JobWrite => Err(denied(who, &format!("change {}", job(target)), "its owner and operators", config)),
            Action::ClusterWrite => Err(denied(who, &object("change", target, "the cluster"), "operators", config)),
            Action::PolicyWrite => {
                Err(denied(who, &object("change the policy of", target, "any role"), "operators", config))
            }
            Action::NodeToken => Err(denied(who, "issue join tokens for nodes", "operators", config)),
            Action::Backup => Err(denied(who, "copy the state of the cluster", "operators", config)),
        }
    }
}

/// Name, group and roles of the user at the other end.
fn identify<D: Directory>(peer: &Peer, directory: &D, config: &Config) -> Result<Identity, String> {
    let (gid, name, groups) = match directory.user_by_id(peer.uid) {
        Some(user) => (user.gid, user.name, user.groups),
        None if peer.uid == 0 => (peer.gid, "root".to_owned(), Vec::new()),
        None if config.allow_unknown => (peer.gid, format!("uid{}", peer.uid), Vec::new()),
        None => {
            return Err(format!(
                "the controller's directory knows no user with uid {}; add the user there (passwd, LDAP or AD), or set \
                 allow_unknown in the configuration of auth-local",
                peer.uid
            ));
        }
    };
    let operator = peer.uid == 0
        || config.operators.contains(&name)
        || groups.iter().any(|group| config.operator_groups.contains(group));
    let roles = if operator { vec![OPERATOR.to_owned()] } else { Vec::new() };
    Ok(Identity { uid: peer.uid, gid, name, roles })
}

fn job(target: &Target) -> String {
    match target.owner {
        Some(owner) => format!("job {}, which belongs to uid {owner}", target.name),
        None => format!("job {}", target.name),
    }
}

fn object(verb: &str, target: &Target, otherwise: &str) -> String {
    let name = if target.name.is_empty() { otherwise } else { &target.name };
    format!("{verb} {name}")
}

/// A refusal that says who may.
fn denied(who: &Identity, what: &str, may: &str, config: &Config) -> String {
    let mut operators = vec!["root".to_owned()];
    operators.extend(config.operators.iter().cloned());
    operators.extend(config.operator_groups.iter().map(|group| format!("members of {group}")));
    format!("{} (uid {}) may not {what}; {may} may (operators: {})", who.name, who.uid, list(&operators))
}

ephor_sdk::policy!(Authentication for AuthLocal { manifest: include_str!("../manifest.json") });

#[cfg(test)]
mod tests;
