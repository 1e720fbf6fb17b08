//! Pools: limits of queues, accounts, users and QOS, and licences. A job draws on each of its pools while it runs.
//!
//! Limits are mechanism: the sequencer checks them at submit and when a plan is committed, whatever a policy decided,
//! and a cycle checks them before it looks for nodes. Counters are kept with the state, event by event.

mod book;
mod ceiling;
mod tally;
mod words;

pub use book::{Book, BookMark, Pool, Who};
pub use ceiling::{Draw, Metric};
pub use tally::Use;
pub(crate) use tally::granted;

use crate::records::Job;
use crate::state::State;
use ephor_model::{AccountId, JobId, QosId, QueueId, ReasonCode, ReservationNo, ResourceId, Uid, UseLimits};
use std::collections::{BTreeMap, BTreeSet};

/// Whose jobs count together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Jobs in a queue and those below it.
    Queue(QueueId),
    /// Of these, one user's.
    QueueUser(QueueId, Uid),
    /// Jobs in an account and those below it.
    Account(AccountId),
    /// Of these, one user's.
    AccountUser(AccountId, Uid),
    /// A user's jobs.
    User(Uid),
    /// Jobs of a QOS.
    Qos(QosId),
    /// Of these, one user's.
    QosUser(QosId, Uid),
    /// Of these, one account's.
    QosAccount(QosId, AccountId),
    /// Jobs that hold a licence.
    Licence(ResourceId),
    /// Jobs on the nodes of a reservation. Jobs wait for it, but draw nothing from it: placement knows what is free.
    Reservation(ReservationNo),
}

impl Scope {
    /// The record that bounds this scope, where its object has one.
    pub fn limits(self, state: &State) -> Option<&UseLimits> {
        Some(match self {
            Self::Queue(id) => &state.queues.get(&id)?.limits,
            Self::QueueUser(id, _) => &state.queues.get(&id)?.per_user,
            Self::Account(id) => &state.accounts.get(&id)?.limits,
            Self::AccountUser(id, uid) => {
                let account = state.accounts.get(&id)?;
                let user = state.users.get(&uid);
                let own = user.and_then(|u| u.associations.iter().find(|a| a.account == account.name));
                own.map_or(&account.per_user, |a| &a.limits)
            }
            Self::User(uid) => &state.users.get(&uid)?.limits,
            Self::Qos(id) => &state.qos.get(&id)?.limits,
            Self::QosUser(id, _) => &state.qos.get(&id)?.per_user,
            Self::QosAccount(id, _) => &state.qos.get(&id)?.per_account,
            Self::Licence(_) | Self::Reservation(_) => return None,
        })
    }

    /// Whether anything bounds this scope.
    pub fn is_bounded(self, state: &State) -> bool {
        match self {
            Self::Licence(id) => state.licences.contains_key(&id),
            Self::Queue(id) if state.queues.get(&id).is_some_and(|q| !q.limit.is_empty()) => true,
            _ => self.limits(state).is_some_and(|l| !l.is_empty()),
        }
    }
}

/// The scopes that a job counts in and that something bounds, without its licences.
fn scopes_of_who(state: &State, who: Who) -> Vec<Scope> {
    let mut found = Vec::new();
    let mut put = |scope: Scope| {
        if scope.is_bounded(state) {
            found.push(scope);
        }
    };
    for queue in chain(Some(who.queue), state.queues.len(), |id| state.queues.get(&id)?.parent) {
        put(Scope::Queue(queue));
        put(Scope::QueueUser(queue, who.user));
    }
    for account in accounts_up(state, who.account) {
        put(Scope::Account(account));
        put(Scope::AccountUser(account, who.user));
    }
    put(Scope::User(who.user));
    if let Some(qos) = who.qos {
        put(Scope::Qos(qos));
        put(Scope::QosUser(qos, who.user));
        put(Scope::QosAccount(qos, who.account));
    }
    found
}

/// The scopes that a job counts in and that something bounds.
pub fn scopes(state: &State, job: &Job) -> Vec<Scope> {
    let mut found = scopes_of_who(state, Who::of(job));
    found.extend(job.licences.iter().map(|(id, _)| Scope::Licence(*id)).filter(|s| s.is_bounded(state)));
    found
}

/// An account and those above it, upwards.
pub fn accounts_up(state: &State, account: AccountId) -> Vec<AccountId> {
    let above = |id| state.derived.account_names.get(state.accounts.get(&id)?.parent.as_ref()?).copied();
    chain(Some(account), state.accounts.len(), above)
}

/// A path upwards in a tree; a tree of n is at most n deep, so that a ring that should not be there ends too.
fn chain<T: Copy>(from: Option<T>, most: usize, above: impl Fn(T) -> Option<T>) -> Vec<T> {
    let mut path = Vec::with_capacity(2);
    let mut at = from;
    while let Some(id) = at.filter(|_| path.len() < most.max(1)) {
        path.push(id);
        at = above(id);
    }
    path
}

/// Number of a resource by the name that limits use.
pub fn resource_by_name(state: &State, name: &str) -> Option<ResourceId> {
    match name.strip_prefix(LICENCE_PREFIX) {
        Some(licence) => state.licence_by_name(licence).map(|(id, _)| id),
        None => ResourceId::from_well_known_name(name),
    }
}

/// Name of a resource as limits use it.
pub fn name_of_resource(state: &State, id: ResourceId) -> String {
    match (id.well_known_name(), state.licences.get(&id)) {
        (Some(name), _) => name.into(),
        (None, Some(licence)) => format!("{LICENCE_PREFIX}{}", licence.name),
        (None, None) => format!("resource-{}", id.0),
    }
}

/// What stands before the name of a licence where resources are named.
pub const LICENCE_PREFIX: &str = "licence:";

/// Why so many more jobs like this one may not be submitted: the limit, its value, and what counts towards it. Where a job
/// changes, it counts already wherever it counted as it `was`.
pub fn refuse_submit(state: &State, job: &Job, more: u32, was: Option<&Job>) -> Option<String> {
    let counted = was.map_or_else(Vec::new, |was| scopes(state, was));
    for scope in scopes(state, job) {
        for (metric, ceiling) in ceiling::ceilings(state, scope) {
            let used = state.derived.pools.get(&scope).map_or(0, |u| u.of(metric));
            match metric {
                Metric::Submitted if used + i64::from(more) > ceiling && !counted.contains(&scope) => {
                    return Some(words::submitted(state, job, scope, used, ceiling, more));
                }
                Metric::Wall if Draw::asked(job).of(Metric::Wall) > ceiling => {
                    return Some(words::wall(state, job, scope, ceiling));
                }
                _ => {}
            }
        }
    }
    None
}

/// Which limit keeps a waiting job from starting now, as things are: the first that has too little left.
pub fn waits_for(state: &State, id: JobId) -> Option<(ReasonCode, String)> {
    let (entry, _) = state.element(id)?;
    let mut book = Book::default();
    let rows = book.rows_of_job(state, &entry.job);
    let row = book.lacking(&rows, &Draw::asked(&entry.job))?;
    Some(book.pools().get(row as usize)?.why(state, &entry.job))
}

/// Every licence, every bound of a queue, account, user or QOS, and those per user or account that are in use.
pub fn list(state: &State) -> Vec<Pool> {
    let objects = (state.queues.keys().map(|id| Scope::Queue(*id)))
        .chain(state.accounts.keys().map(|id| Scope::Account(*id)))
        .chain(state.users.keys().map(|id| Scope::User(*id)))
        .chain(state.qos.keys().map(|id| Scope::Qos(*id)))
        .chain(state.licences.keys().map(|id| Scope::Licence(*id)));
    let scopes: BTreeSet<Scope> = objects.chain(state.derived.pools.keys().copied()).collect();
    let mut found = Vec::new();
    for scope in scopes {
        let counted = state.derived.pools.get(&scope).cloned().unwrap_or_default();
        let pool = |(metric, ceiling)| Pool { scope, metric, used: counted.of(metric), ceiling };
        found.extend(ceiling::ceilings(state, scope).into_iter().map(pool));
    }
    found
}

/// Counters of the pools of every live job, counted from nothing: what the kept ones must equal.
pub fn count_anew(state: &State) -> BTreeMap<Scope, Use> {
    tally::count(state, |_| true).into_iter().collect()
}
