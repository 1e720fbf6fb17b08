//! The policies in force: follows the state, loads generations from the store's blobs, swaps them after commits.
//!
//! A call runs on one generation entirely; a swap waits for nobody. What a generation needs (checks, compiling) is done
//! before its command, off the sequencer. Changes of policies go one after the other.

use crate::handle::{CommandError, Handle};
use crate::scheduling::PolicySource;
use ephor_core::roles::{Accounting, Factor, Priority, PriorityBatch, Scheduling};
use ephor_core::{Command, Fault, FaultKind, Reply, State};
use ephor_model::{Generation, Role, Slot, Timestamp, limits};
use ephor_policy::{Host, LoadError, Loaded, Pick, Prepared, Request, Scheduler, Slots, bounds};
use ephor_store::{Reader, StoreError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Why a change of policies failed; nothing changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The component, its configuration or its grants do not do.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The store could not give the component.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The component is gone.
    #[error("the component of generation {0} is not in the store any more")]
    Gone(u64),
    /// The state does not allow it, or the commit failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The configuration or the component is too large.
    #[error("{0}")]
    TooLarge(String),
}

/// What is to fill a slot.
pub struct Wanted {
    /// Where.
    pub slot: Slot,
    /// The component's bytes.
    pub component: Vec<u8>,
    /// JSON text; empty: `{}`.
    pub config: String,
    /// Imports that the site grants beside those that every policy may have.
    pub grants: Vec<String>,
    /// Who asks.
    pub by: String,
}

type Known = BTreeMap<(Slot, u64), Arc<Loaded>>;

/// See the module.
pub struct Policies {
    host: Host,
    slots: Slots,
    store: Arc<dyn Reader>,
    builtin_on_failure: bool,
    /// Loaded generations: live ones, those that a rollback may bring back, and past ones for their faults.
    known: Mutex<Known>,
    changing: tokio::sync::Mutex<()>,
}

impl Policies {
    /// The policies of that state. A live generation that cannot be loaded leaves its slot failing, with the reason in
    /// its faults; the controller starts all the same, so that root can mend it.
    pub fn load(host: Host, store: Arc<dyn Reader>, state: &State, builtin_on_failure: bool) -> Arc<Self> {
        let policies = Self {
            host,
            slots: Slots::default(),
            store,
            builtin_on_failure,
            known: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
        };
        for (slot, filled) in &state.policies {
            let Some(live) = &filled.live else { continue };
            match policies.ready(slot, live) {
                Ok(loaded) => policies.slots.install(slot.clone(), loaded),
                Err(error) => {
                    tracing::error!(%slot, %error, "a policy cannot be loaded");
                    policies.slots.install_failed(slot.clone(), label(slot, live), error.to_string());
                }
            }
            if let Some(before) = filled.earlier.last().filter(|_| falls_back(slot.role)) {
                match policies.ready(slot, before) {
                    Ok(loaded) => policies.slots.install_last_good(slot, loaded),
                    Err(error) => tracing::warn!(%slot, %error, "the generation before cannot be loaded"),
                }
            }
        }
        Arc::new(policies)
    }

    /// Which generation decides in each slot.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// The authentication policy for local users.
    ///
    /// # Errors
    /// The slot is empty ([`FaultKind::Missing`]), or its generation could not be loaded.
    pub fn authentication(&self) -> Result<Arc<Loaded>, Fault> {
        self.slots.live(&Slot::default_of(Role::Authentication))
    }

    /// The accounting policy.
    ///
    /// # Errors
    /// As [`Policies::authentication`].
    pub fn accounting(&self) -> Result<Arc<Loaded>, Fault> {
        self.slots.live(&Slot::default_of(Role::Accounting))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every generation of a slot that was loaded since the start, oldest first.
    pub fn generations(&self, slot: &Slot) -> Vec<Arc<Loaded>> {
        self.known().range((slot.clone(), 0)..=(slot.clone(), u64::MAX)).map(|(_, loaded)| loaded.clone()).collect()
    }

    /// A generation of the state, ready to be called.
    fn ready(&self, slot: &Slot, generation: &Generation) -> Result<Arc<Loaded>, ChangeError> {
        if let Some(known) = self.known().get(&(slot.clone(), generation.number)) {
            return Ok(known.clone());
        }
        let component = self.store.blob(&generation.component)?.ok_or(ChangeError::Gone(generation.number))?;
        let prepared = self.host.prepare(&Request {
            role: slot.role,
            component: &component,
            config: &generation.config,
            grants: &generation.grants,
            maxima: generation.limits,
        })?;
        Ok(self.keep(slot, prepared.activate(generation.number)))
    }

    fn keep(&self, slot: &Slot, loaded: Arc<Loaded>) -> Arc<Loaded> {
        let mut known = self.known();
        known.insert((slot.clone(), loaded.about().generation), loaded.clone());
        let of_slot: Vec<u64> =
            known.range((slot.clone(), 0)..=(slot.clone(), u64::MAX)).map(|((_, number), _)| *number).collect();
        if of_slot.len() > limits::GENERATIONS_KEPT + 1
            && let Some(oldest) = of_slot.iter().find(|n| **n != loaded.about().generation)
        {
            known.remove(&(slot.clone(), *oldest));
        }
        loaded
    }

    /// Checks and compiles a component, makes it the generation of its slot, and swaps it in.
    ///
    /// # Errors
    /// See [`ChangeError`]; the generation before goes on.
    pub async fn activate(self: &Arc<Self>, handle: &Handle, wanted: Wanted) -> Result<Arc<Generation>, ChangeError> {
        let _alone = self.changing.lock().await;
        let Wanted { slot, component, config, grants, by } = wanted;
        check_sizes(&component, &config)?;
        let this = self.clone();
        let role = slot.role;
        let prepare = move || {
            let maxima = bounds::site_maxima(role);
            let request = Request { role, component: &component, config: &config, grants: &grants, maxima };
            this.host.prepare(&request).map(|prepared| (prepared, component, grants))
        };
        let (prepared, component, grants) = blocking(prepare).await?;
        let generation = generation_of(&prepared, grants, by);
        let blobs = vec![(generation.component, component)];
        let command = Command::Activate { slot: slot.clone(), generation };
        let Reply::Generation(generation) = handle.run_with_blobs(command, blobs).await? else {
            return Err(CommandError::Unavailable("an activation was answered with something else".into()).into());
        };
        let loaded = self.keep(&slot, prepared.activate(generation.number));
        self.take_over(handle, slot, loaded).await;
        Ok(generation)
    }

    /// Goes back to the generation before.
    ///
    /// # Errors
    /// There is none, or it cannot be loaded any more.
    pub async fn roll_back(self: &Arc<Self>, handle: &Handle, slot: Slot) -> Result<Arc<Generation>, ChangeError> {
        let _alone = self.changing.lock().await;
        let before = handle.snapshot().state.policies.get(&slot).and_then(|s| s.earlier.last()).cloned();
        let loaded = match before {
            // The command refuses in its own words.
            None => None,
            Some(before) => {
                let (this, slot) = (self.clone(), slot.clone());
                Some(blocking(move || this.ready(&slot, &before)).await?)
            }
        };
        let reply = handle.run(Command::RollBack { slot: slot.clone() }).await?;
        match (reply, loaded) {
            (Reply::Generation(generation), Some(loaded)) => {
                self.take_over(handle, slot, loaded).await;
                Ok(generation)
            }
            _ => Err(CommandError::Unavailable("a rollback was answered with something else".into()).into()),
        }
    }

    /// Empties a slot.
    ///
    /// # Errors
    /// It is empty already.
    pub async fn disable(&self, handle: &Handle, slot: Slot) -> Result<(), ChangeError> {
        let _alone = self.changing.lock().await;
        handle.run(Command::Disable { slot: slot.clone() }).await?;
        self.slots.disable(&slot);
        handle.wake_scheduler();
        Ok(())
    }

    async fn take_over(&self, handle: &Handle, slot: Slot, loaded: Arc<Loaded>) {
        let role = slot.role;
        tracing::info!(%slot, policy = loaded.about().label, "a policy takes over");
        self.slots.install(slot, loaded.clone());
        match role {
            Role::Priority | Role::Scheduling => handle.wake_scheduler(),
            Role::Accounting => set_fading(handle, loaded).await,
            Role::Authentication | Role::Admission => {}
        }
    }
}

/// Asks a fresh accounting generation how the ledger fades from now on.
async fn set_fading(handle: &Handle, loaded: Arc<Loaded>) {
    let asked = blocking(move || loaded.accounting().and_then(Accounting::decay)).await;
    let outcome = match asked {
        Ok(fading) => handle.run(Command::SetFading(fading)).await.map_err(|e| e.to_string()),
        Err(fault) => Err(fault.to_string()),
    };
    if let Err(error) = outcome {
        tracing::warn!(error, "the ledger fades as before");
    }
}

/// Runs something that takes a while beside the async workers.
async fn blocking<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(call).await {
        Ok(done) => done,
        // The task is never aborted, so that only a panic of the call itself is left.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn check_sizes(component: &[u8], config: &str) -> Result<(), ChangeError> {
    let too_large = |what: &str, size: usize, most: usize| {
        ChangeError::TooLarge(format!("the {what} has {size} bytes; at most {most} are taken"))
    };
    if component.len() > limits::COMPONENT_BYTES {
        return Err(too_large("component", component.len(), limits::COMPONENT_BYTES));
    }
    if config.len() > limits::POLICY_CONFIG_BYTES {
        return Err(too_large("configuration", config.len(), limits::POLICY_CONFIG_BYTES));
    }
    Ok(())
}

fn generation_of(prepared: &Prepared, grants: Vec<String>, by: String) -> Generation {
    let about = prepared.about();
    Generation {
        // Number and time are given by the state.
        number: 0,
        since: Timestamp(0),
        name: about.name.clone(),
        version: about.version.clone(),
        component: about.component,
        config: about.config.clone(),
        limits: about.limits,
        grants,
        by,
    }
}

/// Roles whose last good generation decides when the live one fails.
pub(crate) fn falls_back(role: Role) -> bool {
    matches!(role, Role::Priority | Role::Scheduling)
}

fn label(slot: &Slot, generation: &Generation) -> String {
    format!("{} '{}' generation {}", slot.role, generation.name, generation.number)
}

impl PolicySource for Policies {
    fn priority(&self, now: Timestamp) -> Option<Arc<dyn Priority>> {
        let slot = Slot::default_of(Role::Priority);
        let (first, second) = match self.slots.pick(&slot, now) {
            Pick::Live(live) => (live, self.slots.last_good(&slot)),
            Pick::LastGood(last) => (last, None),
            Pick::Resting | Pick::Empty => return None,
        };
        Some(Arc::new(Prioritizer { first, second }))
    }

    fn scheduling(&self, now: Timestamp) -> Vec<Box<dyn Scheduling>> {
        let slot = Slot::default_of(Role::Scheduling);
        let chosen = match self.slots.pick(&slot, now) {
            Pick::Live(live) => {
                let last_good = self.slots.last_good(&slot).filter(|last| !Arc::ptr_eq(last, &live));
                std::iter::once(live).chain(last_good).collect()
            }
            Pick::LastGood(last) => vec![last],
            Pick::Resting | Pick::Empty => Vec::new(),
        };
        chosen.into_iter().map(|loaded| Box::new(Scheduler(loaded)) as Box<dyn Scheduling>).collect()
    }

    fn builtin_on_failure(&self) -> bool {
        self.builtin_on_failure
    }
}

/// The priority generation that is asked first, and the one that is asked when it fails.
struct Prioritizer {
    first: Arc<Loaded>,
    second: Option<Arc<Loaded>>,
}

impl Prioritizer {
    fn ask<T>(&self, call: impl Fn(&Loaded) -> Result<T, Fault>) -> Result<T, Fault> {
        call(&self.first).or_else(|fault| match &self.second {
            Some(second) => {
                tracing::warn!(%fault, "the last good generation orders");
                call(second)
            }
            None => Err(fault),
        })
    }
}

impl Priority for Prioritizer {
    fn prioritize(&self, batch: Arc<PriorityBatch>) -> Result<Vec<i64>, Fault> {
        self.ask(|loaded| loaded.priority()?.prioritize(batch.clone()))
    }

    fn explain(&self, batch: Arc<PriorityBatch>, row: u32) -> Result<Vec<Factor>, Fault> {
        self.ask(|loaded| loaded.priority()?.explain(batch.clone(), row))
    }
}

/// Whether a fault only says that a slot is empty.
pub(crate) fn is_missing(fault: &Fault) -> bool {
    fault.kind == FaultKind::Missing
}
