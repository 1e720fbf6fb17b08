//! Makes instances before they are needed, and takes used ones down, on a thread of its own, so that a call waits for
//! neither: both together cost more than a small call does.
//!
//! Only components that run no code when they start are made ahead (see [`crate::Surface::runs_at_start`]): such an
//! instance is the same whenever it was made, so that answers and fuel do not hang on who was faster.

use crate::bounds;
use crate::call::{self, Call};
use crate::loaded::Common;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use wasmtime::Store;

/// A linked component of one role: what instances are made of.
pub trait Start: Clone + Send + Sync + 'static {
    /// The role's own part of a store.
    type Own: Send + 'static;
    /// A started instance.
    type Instance: Send + 'static;

    /// The own part while no call runs.
    fn idle() -> Self::Own;

    /// Starts an instance.
    ///
    /// # Errors
    /// It does not start.
    fn start(&self, store: &mut Store<Call<Self::Own>>) -> wasmtime::Result<Self::Instance>;
}

/// Fuel for the start of an instance, more than any takes that runs no code.
const ENOUGH: u64 = 1 << 40;

/// An instance that nobody called yet. The place is given back after the store.
struct Ready<S: Start> {
    store: Store<Call<S::Own>>,
    instance: S::Instance,
    fuel: u64,
    _place: Place,
}

/// An instance for one call, and what its start cost.
pub struct Taken<S: Start> {
    pub store: Store<Call<S::Own>>,
    pub instance: S::Instance,
    /// Fuel of the start, which the call pays for.
    pub fuel: u64,
}

/// A store after its call.
struct Used<S: Start> {
    _store: Store<Call<S::Own>>,
    _place: Place,
}

/// The instances of one generation that wait for a call, or to be taken down.
pub struct Shelf<S: Start> {
    common: Arc<Common>,
    linked: S,
    inner: Mutex<Inner<S>>,
}

struct Inner<S: Start> {
    ready: Vec<Ready<S>>,
    used: Vec<Used<S>>,
    /// The thread was told to come, and has not come yet.
    told: bool,
}

impl<S: Start> Shelf<S> {
    /// An empty shelf: it is filled after the first call.
    pub fn new(common: Arc<Common>, linked: S) -> Arc<Self> {
        let inner = Mutex::new(Inner { ready: Vec::new(), used: Vec::new(), told: false });
        Arc::new(Self { common, linked, inner })
    }

    fn lock(&self) -> MutexGuard<'_, Inner<S>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An instance that was made ahead, if there is one. Its place is free again: the call has one of its own.
    pub fn take(&self) -> Option<Taken<S>> {
        let Ready { store, instance, fuel, _place } = self.lock().ready.pop()?;
        Some(Taken { store, instance, fuel })
    }

    /// Takes a store after its call, to be taken down; here and now when too much waits for that already.
    pub fn give_back(self: &Arc<Self>, store: Store<Call<S::Own>>) {
        let bytes = store.data().base.memory_bytes();
        let Some(place) = Place::take(bytes) else { return };
        let mut inner = self.lock();
        inner.used.push(Used { _store: store, _place: place });
        // Not for each call: waking a thread costs as much as half an instance.
        let worth_it = inner.ready.len() <= bounds::AHEAD / 2 || bytes > bounds::MEMORY_KEPT;
        if worth_it && !inner.told && maker().is_some_and(|maker| maker.send(self.clone()).is_ok()) {
            inner.told = true;
        }
        if !inner.told && inner.used.len() > bounds::AHEAD {
            // Nobody comes (the thread could not be started).
            drop(std::mem::take(&mut inner.used));
        }
    }

    fn make(&self) -> Option<Ready<S>> {
        let place = Place::take(0)?;
        let mut store = call::store::<S>(&self.common);
        // What cannot be made is left to the next call, which says why.
        store.set_fuel(ENOUGH).ok()?;
        let instance = self.linked.start(&mut store).ok()?;
        let fuel = ENOUGH - store.get_fuel().ok()?.min(ENOUGH);
        Some(Ready { store, instance, fuel, _place: place })
    }
}

/// What the thread does for any role.
trait Tend: Send + Sync {
    /// Takes down what was used and makes what is missing.
    fn tend(&self);
}

impl<S: Start> Tend for Shelf<S> {
    fn tend(&self) {
        self.lock().told = false;
        loop {
            let (used, full) = {
                let mut inner = self.lock();
                (inner.used.pop(), inner.ready.len() >= bounds::AHEAD)
            };
            // By turns: what was just taken down leaves a warm slot of the pool to the next, and a call finds one soon.
            let none_used = used.is_none();
            drop(used);
            match (!full).then(|| self.make()).flatten() {
                Some(ready) => self.lock().ready.push(ready),
                None if none_used => return,
                None => {}
            }
        }
    }
}

/// The thread; `None` where it could not be started: every call then makes its own instance.
fn maker() -> Option<&'static Sender<Arc<dyn Tend>>> {
    static MAKER: OnceLock<Option<Sender<Arc<dyn Tend>>>> = OnceLock::new();
    let start = || {
        let (told, shelves) = channel::<Arc<dyn Tend>>();
        let work = move || {
            while let Ok(shelf) = shelves.recv() {
                // A panic of wasmtime's costs what was on the shelf, and nothing else.
                let _ = catch_unwind(AssertUnwindSafe(|| shelf.tend()));
            }
        };
        std::thread::Builder::new().name("policy-ahead".into()).spawn(work).ok().map(|_| told)
    };
    MAKER.get_or_init(start).as_ref()
}

/// A place among all instances of the process that no call is using, with the memory that it holds.
struct Place {
    bytes: usize,
}

static PLACES: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

impl Place {
    fn take(bytes: usize) -> Option<Self> {
        let one = |held| (held < bounds::AHEAD_AT_ONCE as usize).then_some(held + 1);
        PLACES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one).ok()?;
        // From here on dropping it gives back what it took.
        let mut place = Self { bytes: 0 };
        let all = |held: usize| held.checked_add(bytes).filter(|all| *all <= bounds::AHEAD_BYTES);
        BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, all).ok()?;
        place.bytes = bytes;
        Some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        PLACES.fetch_sub(1, Ordering::Relaxed);
        BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
