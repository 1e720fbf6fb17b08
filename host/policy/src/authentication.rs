//! The role of authentication: who a caller is, and what that identity may do.

use crate::ahead::Start;
use crate::bindings::authentication as bindings;
use crate::bindings::authentication::exports::ephor::authentication::authentication as wit;
use crate::bindings::host::ephor::types::types;
use crate::bounds;
use crate::call::{self, Call, Plan, Size};
use crate::check;
use crate::fault::Failure;
use crate::imports;
use crate::loaded::Code;
use ephor_core::Fault;
use ephor_core::roles::{Authentication, Credential, Peer, Permission, Session, Target};
use ephor_model::{Identity, Timestamp, Uid};
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

/// A linked component of this role.
pub(crate) type Pre = bindings::PolicyPre<Call<()>>;

impl Start for Pre {
    type Own = ();
    type Instance = bindings::Policy;

    fn idle() {}

    fn start(&self, store: &mut Store<Call<()>>) -> wasmtime::Result<bindings::Policy> {
        self.instantiate(store)
    }
}

/// A generation of this role.
pub struct Policy(pub(crate) Code<Pre>);

pub(crate) fn link(engine: &Engine, component: &Component, granted: &[String]) -> wasmtime::Result<Pre> {
    let mut linker = Linker::new(engine);
    imports::link(&mut linker, granted)?;
    bindings::PolicyPre::new(linker.instantiate_pre(component)?)
}

impl Policy {
    fn plan(now: Timestamp) -> Plan<()> {
        Plan { role: (), state: None, size: Size::default(), now: Some(now) }
    }
}

impl Authentication for Policy {
    fn authenticate(
        &self,
        now: Timestamp,
        credential: &Credential,
        peer: &Peer,
    ) -> Result<Result<Session, String>, Fault> {
        let credential = match credential {
            Credential::Local => wit::Credential::Local,
            Credential::Bearer(token) => wit::Credential::Bearer(token.clone()),
        };
        let peer = wit::Peer { uid: peer.uid.0, gid: peer.gid, node: peer.node.clone() };
        call::run(&self.0, Self::plan(now), |store, policy| {
            let guest = policy.ephor_authentication_authentication();
            let answer = guest.call_authenticate(store, now.0, &credential, &peer).map_err(Failure::Call)?;
            match answer {
                Ok(session) => self::session(session, now).map(Ok),
                Err(text) => check::text("the denial", text).map(Err),
            }
        })
        .1
    }

    fn authorize(
        &self,
        now: Timestamp,
        who: &Identity,
        what: Permission,
        target: &Target,
    ) -> Result<Result<(), String>, Fault> {
        let who = identity(who);
        let target = wit::Target { owner: target.owner.map(|u| u.0), name: target.name.clone() };
        call::run(&self.0, Self::plan(now), |store, policy| {
            let guest = policy.ephor_authentication_authentication();
            let answer = guest.call_authorize(store, now.0, &who, action(what), &target).map_err(Failure::Call)?;
            match answer {
                Ok(()) => Ok(Ok(())),
                Err(text) => check::text("the denial", text).map(Err),
            }
        })
        .1
    }
}

/// An identity as the contract has it.
pub(crate) fn identity(who: &Identity) -> types::Identity {
    types::Identity { uid: who.uid.0, gid: who.gid, name: who.name.clone(), roles: who.roles.clone() }
}

fn action(what: Permission) -> wit::Action {
    match what {
        Permission::Submit => wit::Action::Submit,
        Permission::JobRead => wit::Action::JobRead,
        Permission::JobWrite => wit::Action::JobWrite,
        Permission::ClusterRead => wit::Action::ClusterRead,
        Permission::ClusterWrite => wit::Action::ClusterWrite,
        Permission::PolicyWrite => wit::Action::PolicyWrite,
        Permission::NodeToken => wit::Action::NodeToken,
        Permission::Backup => wit::Action::Backup,
    }
}

fn session(session: wit::Session, now: Timestamp) -> Result<Session, Failure> {
    let types::Identity { uid, gid, name, roles } = session.identity;
    check::at_most("roles", roles.len(), bounds::ROLES)?;
    let roles = roles.into_iter().map(|r| check::name("a role", r)).collect::<Result<Vec<_>, _>>()?;
    if (1..roles.len()).any(|i| roles[..i].contains(&roles[i])) {
        return Err(check::bad("it returned a role twice"));
    }
    // An id that the operating system uses for "none" must not become somebody's.
    if uid == u32::MAX || gid == u32::MAX {
        return Err(check::bad("it returned 4294967295 as a user or group id, which stands for none"));
    }
    let valid_until = session.valid_until.map(Timestamp);
    if valid_until.is_some_and(|until| until < now) {
        return Err(check::bad("the identity that it returned is valid until a time that is past"));
    }
    let identity = Identity { uid: Uid(uid), gid, name: check::name("the login name", name)?, roles };
    Ok(Session { identity, valid_until })
}
