//! Who is calling and what that identity may do: asks the authentication policy, remembers identities for a while.
//!
//! No policy means no access (law 9). A policy that fails refuses (law 6), and is not asked again by the same caller for
//! [`BRIEF`], so that a looping policy burns little. uid 0 on the controller's own socket, and the user that the
//! controller runs as, may always manage policies: that is decided here and asks no policy.

use crate::handle::Handle;
use crate::peer::peer_of;
use crate::policies::{Policies, is_missing};
use crate::pool::Pool;
use ephor_core::Fault;
use ephor_core::roles::{Authentication, Credential, Peer, Permission, Target};
use ephor_model::{Identity, Timestamp};
use ephor_policy::Loaded;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tonic::{Request, Status};

/// Identities that are remembered; then the memory starts anew.
const REMEMBERED: usize = 16_384;
/// Longest time that an identity is used without asking again, so that a change of groups is seen.
const LASTING: Duration = Duration::from_secs(30);
/// How long a denial or a failure is repeated without asking again.
const BRIEF: Duration = Duration::from_secs(1);

/// A caller whose identity is known.
#[derive(Clone, Debug)]
pub struct Caller {
    /// What the operating system attested.
    pub peer: Peer,
    /// Who it is.
    pub identity: Arc<Identity>,
    /// Whether it may manage policies whatever the policies say.
    pub rescuer: bool,
}

#[derive(Clone)]
enum Known {
    As(Arc<Identity>, Option<Timestamp>),
    Refused(Status),
}

type Memory = HashMap<(Peer, u64), (Known, Instant)>;

/// See the module.
pub struct Access {
    policies: Arc<Policies>,
    pool: Pool,
    handle: Handle,
    memory: Mutex<Memory>,
    own_uid: u32,
}

impl Access {
    /// With its own threads: a login never waits behind an admission.
    ///
    /// # Errors
    /// The system has no threads left.
    pub fn start(policies: Arc<Policies>, handle: Handle) -> std::io::Result<Arc<Self>> {
        let pool = Pool::start("access", Pool::threads())?;
        let own_uid = nix::unistd::geteuid().as_raw();
        Ok(Arc::new(Self { policies, pool, handle, memory: Mutex::default(), own_uid }))
    }

    /// Whether a peer may manage policies whatever the policies say. The controller's own user could change its data
    /// folder anyway.
    fn is_rescuer(&self, peer: &Peer) -> bool {
        peer.node.is_none() && (peer.uid.0 == 0 || peer.uid.0 == self.own_uid)
    }

    /// The caller of a request.
    ///
    /// # Errors
    /// The connection proves nobody, the policy denies, fails, or is not there.
    pub async fn caller<T>(&self, request: &Request<T>) -> Result<Caller, Status> {
        let peer = peer_of(request)?;
        let policy = self.policies.authentication().map_err(|fault| no_policy(&fault))?;
        let rescuer = self.is_rescuer(&peer);
        let key = (peer.clone(), policy.about().generation);
        let now = self.handle.now();
        if let Some(known) = self.recall(&key, now) {
            return known.map(|identity| Caller { peer, identity, rescuer });
        }
        let asked = peer.clone();
        let answer = self.pool.run(peer.uid.0, move || authenticate(&policy, now, &asked)).await.map_err(busy)?;
        self.remember(key, answer.clone());
        match answer {
            Known::As(identity, _) => Ok(Caller { peer, identity, rescuer }),
            Known::Refused(status) => Err(status),
        }
    }

    /// The caller of a request about policies: a rescuer is let in without asking any.
    ///
    /// # Errors
    /// As [`Access::caller`].
    pub async fn policy_caller<T>(&self, request: &Request<T>) -> Result<Caller, Status> {
        let peer = peer_of(request)?;
        if !self.is_rescuer(&peer) {
            return self.caller(request).await;
        }
        let name = if peer.uid.0 == 0 { "root".to_owned() } else { format!("uid {}", peer.uid) };
        let identity = Identity { uid: peer.uid, gid: peer.gid, name, roles: Vec::new() };
        Ok(Caller { peer, identity: Arc::new(identity), rescuer: true })
    }

    fn recall(&self, key: &(Peer, u64), now: Timestamp) -> Option<Result<Arc<Identity>, Status>> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, since) = memory.get(key)?;
        match known {
            Known::As(identity, until) => {
                let lasts = since.elapsed() < LASTING && until.is_none_or(|until| now < until);
                lasts.then(|| Ok(identity.clone()))
            }
            Known::Refused(status) => (since.elapsed() < BRIEF).then(|| Err(status.clone())),
        }
    }

    fn remember(&self, key: (Peer, u64), known: Known) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.len() >= REMEMBERED {
            memory.clear();
        }
        memory.insert(key, (known, Instant::now()));
    }

    /// Calls that wait for a thread.
    pub fn waiting(&self) -> usize {
        self.pool.waiting()
    }

    /// Whether a caller may do that.
    ///
    /// # Errors
    /// The policy denies, fails, or is not there.
    pub async fn allow(self: &Arc<Self>, caller: &Caller, what: Permission, target: Target) -> Result<(), Status> {
        let (access, caller, uid) = (self.clone(), caller.clone(), caller.peer.uid.0);
        self.pool.run(uid, move || access.allow_here(&caller, what, &target)).await.map_err(busy)?
    }

    /// The same for many targets in one go: each with its own answer.
    ///
    /// # Errors
    /// Too much waits already.
    pub async fn allow_each(
        self: &Arc<Self>,
        caller: &Caller,
        what: Permission,
        targets: Vec<Target>,
    ) -> Result<Vec<Result<(), Status>>, Status> {
        let (access, caller, uid) = (self.clone(), caller.clone(), caller.peer.uid.0);
        let all = move || targets.iter().map(|target| access.allow_here(&caller, what, target)).collect();
        self.pool.run(uid, all).await.map_err(busy)
    }

    /// The same on this thread, which a hostile policy may keep busy for as long as its fuel lasts.
    ///
    /// # Errors
    /// As [`Access::allow`].
    pub fn allow_here(&self, caller: &Caller, what: Permission, target: &Target) -> Result<(), Status> {
        if caller.rescuer && what == Permission::PolicyWrite {
            return Ok(());
        }
        let policy = self.policies.authentication().map_err(|fault| no_policy(&fault))?;
        let now = self.handle.now();
        let verdict = policy.authentication().and_then(|p| p.authorize(now, &caller.identity, what, target));
        match verdict {
            Ok(Ok(())) => Ok(()),
            Ok(Err(text)) => Err(Status::permission_denied(text)),
            Err(fault) => Err(failed(&fault)),
        }
    }
}

fn authenticate(policy: &Loaded, now: Timestamp, peer: &Peer) -> Known {
    let answer = policy.authentication().and_then(|p| p.authenticate(now, &Credential::Local, peer));
    match answer {
        Ok(Ok(session)) => Known::As(Arc::new(session.identity), session.valid_until),
        Ok(Err(text)) => Known::Refused(Status::permission_denied(text)),
        Err(fault) => Known::Refused(failed(&fault)),
    }
}

fn busy(busy: crate::pool::Busy) -> Status {
    Status::resource_exhausted(busy.to_string())
}

fn no_policy(fault: &Fault) -> Status {
    if !is_missing(fault) {
        return failed(fault);
    }
    Status::permission_denied(
        "no authentication policy is active, so nobody has access; root on the controller's machine can activate one \
         with 'ephor policy activate authentication/local FILE'",
    )
}

fn failed(fault: &Fault) -> Status {
    Status::unavailable(format!("refused: {fault}"))
}
