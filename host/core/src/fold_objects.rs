//! How events about queues, accounts, users, QOS, licences and reservations change the state.

use crate::event::Event;
use crate::pools::Scope;
use crate::rows::RowKey;
use crate::state::State;
use ephor_model::{Account, Queue, ResourceId, Uid};
use std::collections::BTreeSet;
use std::sync::Arc;

impl State {
    /// Applies an event of these kinds, and counts anew what it bounds. False where it names something that is not
    /// there.
    pub(crate) fn object_changed(&mut self, event: &Event, touched: &mut BTreeSet<RowKey>) -> bool {
        match event {
            Event::QueueSet { queue, is } => {
                self.meta.next_queue = self.meta.next_queue.max(queue.0 + 1);
                touched.insert(RowKey::Queue(*queue));
                // A new one has no jobs yet; one that bounds what it did before leaves the counters as they are.
                let before = self.queues.insert(*queue, Arc::new(is.clone()));
                let bounds = |q: &Queue| (q.parent, q.limit.clone(), q.limits.clone(), q.per_user.clone());
                if before.is_some_and(|b| bounds(&b) != bounds(is)) {
                    self.recount(|s| matches!(s, Scope::Queue(_) | Scope::QueueUser(..)));
                }
            }
            Event::QueueDeleted { queue } => {
                touched.insert(RowKey::Queue(*queue));
                touched.insert(RowKey::PastUse(*queue));
                self.past_use.remove(queue);
                return self.queues.remove(queue).is_some();
            }
            Event::AccountSet { account, is } => {
                self.meta.next_account = self.meta.next_account.max(account.0 + 1);
                touched.insert(RowKey::Account(*account));
                self.derived.account_names.insert(is.name.clone(), *account);
                let before = self.accounts.insert(*account, Arc::new(is.clone()));
                let bounds = |a: &Account| (a.parent.clone(), a.limits.clone(), a.per_user.clone());
                if before.is_some_and(|b| bounds(&b) != bounds(is)) {
                    self.recount(|s| matches!(s, Scope::Account(_) | Scope::AccountUser(..)));
                }
            }
            Event::AccountDeleted { account } => {
                touched.insert(RowKey::Account(*account));
                let Some(gone) = self.accounts.remove(account) else { return false };
                self.derived.account_names.remove(&gone.name);
            }
            Event::UserSet { is } => {
                touched.insert(RowKey::User(is.uid));
                self.users.insert(is.uid, Arc::new(is.clone()));
                self.recount_user(is.uid);
            }
            Event::UserDeleted { uid } => {
                touched.insert(RowKey::User(*uid));
                if self.users.remove(uid).is_none() {
                    return false;
                }
                self.recount_user(*uid);
            }
            Event::QosSet { qos, is } => {
                self.meta.next_qos = self.meta.next_qos.max(qos.0 + 1);
                touched.insert(RowKey::Qos(*qos));
                self.qos.insert(*qos, Arc::new(is.clone()));
                self.recount(|scope| match scope {
                    Scope::Qos(id) | Scope::QosUser(id, _) | Scope::QosAccount(id, _) => id == *qos,
                    _ => false,
                });
            }
            Event::QosDeleted { qos } => {
                touched.insert(RowKey::Qos(*qos));
                return self.qos.remove(qos).is_some();
            }
            Event::LicenceSet { licence, is } => {
                self.meta.licences_made = self.meta.licences_made.max(licence.0 + 1 - ResourceId::FIRST_SITE);
                touched.insert(RowKey::Licence(*licence));
                self.licences.insert(*licence, Arc::new(is.clone()));
                self.recount(|s| s == Scope::Licence(*licence));
            }
            Event::LicenceDeleted { licence } => {
                touched.insert(RowKey::Licence(*licence));
                return self.licences.remove(licence).is_some();
            }
            Event::ReservationSet { reservation, is } => {
                self.meta.next_reservation = self.meta.next_reservation.max(reservation.0 + 1);
                touched.insert(RowKey::Reservation(*reservation));
                self.reservations.insert(*reservation, is.clone());
            }
            Event::ReservationDeleted { reservation } => {
                touched.insert(RowKey::Reservation(*reservation));
                return self.reservations.remove(reservation).is_some();
            }
            _ => return false,
        }
        true
    }

    /// A user without live jobs counts in no pool, so that thousands of users are made at little cost.
    fn recount_user(&mut self, uid: Uid) {
        if self.derived.live_by_user.get(&uid).is_some_and(|live| *live > 0) {
            self.recount(|s| matches!(s, Scope::User(id) | Scope::AccountUser(_, id) if id == uid));
        }
    }
}
