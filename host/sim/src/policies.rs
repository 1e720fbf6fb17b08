//! Which policies decide in a simulation: built in and chosen by a short name, or a component from a file.

use crate::settings::Settings;
use crate::simulate::Choice;
use ephor_core::cycle::Cycle;
use ephor_core::records::{Fading, Uncharged};
use ephor_core::roles::{Accounting, Allowance, Factor, Fault, Priority, PriorityBatch, Scheduling};
use ephor_core::state::State;
use ephor_model::limits::COMPONENT_BYTES;
use ephor_model::{PolicyLimits, Role, Timestamp};
use ephor_policy::{Host, LoadError, Loaded, Names, Request, Scheduler, Services, bounds, builtin};
use serde_json::Value;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Why a policy cannot decide in a simulation.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// Nothing built in has that name.
    #[error("there is no {role} policy '{name}'; built in are: {known}; or give the path of a component (FILE.wasm)")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The role.
        role: Role,
        /// What there is.
        known: String,
    },
    /// The component's file cannot be read.
    #[error("cannot read the {role} policy '{path}': {why}")]
    Io {
        /// The file.
        path: String,
        /// The role.
        role: Role,
        /// What the system says.
        why: io::Error,
    },
    /// The host does not take it.
    #[error("the {role} policy '{name}' cannot be used: {why}")]
    Load {
        /// As it was named.
        name: String,
        /// The role.
        role: Role,
        /// Why.
        why: LoadError,
    },
}

/// Who decides.
pub struct Policies {
    /// What starts.
    pub scheduling: Box<dyn Scheduling>,
    /// In which order; `None`: in the order of submission.
    pub priority: Option<Box<dyn Priority>>,
    /// What use costs and how it fades; `None`: nothing is charged, and nothing fades.
    pub accounting: Option<Box<dyn Accounting>>,
    /// Work units of a cycle.
    pub work: u64,
    /// Where the policies look up names.
    pub names: Arc<Newest>,
    /// Where the scheduling policy came from; `None`: it is native.
    source: Option<Source>,
}

/// A scheduling policy as it was asked for, so that it can be asked for again with other settings.
struct Source {
    services: Services,
    name: String,
    settings: Settings,
    /// What was set beside them.
    beside: Vec<(String, Value)>,
}

/// What a site that simulates grants every policy: names of queues tell nobody anything new here.
const GRANTS: &[&str] = &["ephor:host/names"];

impl Policies {
    /// This scheduling policy and the usual work units, in submission order.
    pub fn native(scheduling: impl Scheduling + 'static) -> Self {
        let work = bounds::site_maxima(Role::Scheduling).work_units;
        let scheduling = Box::new(scheduling);
        Self { scheduling, priority: None, accounting: None, work, names: Arc::default(), source: None }
    }

    /// Loads the policies that were chosen, with their settings.
    ///
    /// # Errors
    /// See [`PolicyError`].
    pub fn load(choice: &Choice) -> Result<(Self, Chosen), PolicyError> {
        let Choice { scheduling, priority, accounting, settings, .. } = choice;
        let names = Arc::<Newest>::default();
        let services = Services { names: names.clone(), ..Services::default() };
        let load = |role, name: &str| load(&services, role, name, &settings.json(role));
        let name = scheduling.to_owned();
        let (scheduling, work) = load(Role::Scheduling, scheduling)?;
        let beside = |role, name: &Option<String>| name.as_ref().map(|name| load(role, name)).transpose();
        let priority = beside(Role::Priority, priority)?.map(|(loaded, _)| loaded);
        let accounting = beside(Role::Accounting, accounting)?.map(|(loaded, _)| loaded);
        let chosen = Chosen {
            scheduling: title(&scheduling),
            priority: priority.as_ref().map(title),
            accounting: accounting.as_ref().map(title),
        };
        let priority = priority.map(|loaded| Box::new(Prioritizer(loaded)) as Box<dyn Priority>);
        let accounting = accounting.map(|loaded| Box::new(Accountant(loaded)) as Box<dyn Accounting>);
        let source = Source { services, name, settings: settings.clone(), beside: Vec::new() };
        let scheduling = Box::new(Named { policy: Scheduler(scheduling), names: names.clone() });
        Ok((Self { scheduling, priority, accounting, work, names, source: Some(source) }, chosen))
    }

    /// Sets these for the scheduling policy beside what was set at first, which goes before, in place of what was set
    /// like this the last time. False: it is native, or knows no such settings, and decides as at first.
    ///
    /// # Errors
    /// It cannot be loaded again.
    pub fn set_beside(&mut self, beside: &[(&str, Value)]) -> Result<bool, PolicyError> {
        let Some(source) = &mut self.source else { return Ok(beside.is_empty()) };
        let beside: Vec<(String, Value)> =
            beside.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        if beside == source.beside {
            return Ok(true);
        }
        let mut settings = source.settings.clone();
        beside.iter().for_each(|(key, value)| settings.set_if_unset(key, value));
        let first = source.settings.json(Role::Scheduling);
        let load = |json: &str| load(&source.services, Role::Scheduling, &source.name, json);
        let (loaded, known) = match load(&settings.json(Role::Scheduling)) {
            Ok(loaded) => (loaded, true),
            Err(PolicyError::Load { .. }) => (load(&first)?, false),
            Err(error) => return Err(error),
        };
        source.beside = if known { beside } else { Vec::new() };
        self.scheduling = Box::new(Named { policy: Scheduler(loaded.0), names: self.names.clone() });
        Ok(known)
    }
}

/// Names and versions of loaded policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Of the scheduling policy.
    pub scheduling: String,
    /// Of the priority policy.
    pub priority: Option<String>,
    /// Of the accounting policy.
    pub accounting: Option<String>,
}

/// The state that names are looked up in: the one of the cycle under way.
#[derive(Debug, Default)]
pub struct Newest(Mutex<State>);

impl Newest {
    /// Shows that state while `call` runs. It is given up afterwards: a copy that is kept makes every change copy.
    pub fn during<T>(&self, state: &State, call: impl FnOnce() -> T) -> T {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state.clone();
        let result = call();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
        result
    }
}

impl Names for Newest {
    fn state(&self) -> State {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Short names of the built-in policies of a role.
pub fn built_in(role: Role) -> Vec<&'static str> {
    let prefix = format!("{role}-");
    builtin::names().filter_map(|name| name.strip_prefix(prefix.as_str())).collect()
}

fn load(services: &Services, role: Role, name: &str, config: &str) -> Result<(Arc<Loaded>, u64), PolicyError> {
    let failed = |why| PolicyError::Load { name: name.to_owned(), role, why };
    let component = component(role, name)?;
    let maxima: PolicyLimits = bounds::site_maxima(role);
    let grants: Vec<String> = GRANTS.iter().map(|grant| (*grant).to_owned()).collect();
    let request = Request { role, component: &component, config, grants: &grants, maxima };
    let host = Host::new(services.clone()).map_err(failed)?;
    let prepared = host.prepare(&request).map_err(failed)?;
    let work = prepared.about().limits.work_units;
    Ok((prepared.activate(1), work))
}

/// The bytes of a policy: `backfill` and `scheduling-backfill` are built in, whatever looks like a path is a file.
fn component(role: Role, name: &str) -> Result<Cow<'static, [u8]>, PolicyError> {
    if let Some(bytes) = builtin::find(&format!("{role}-{name}")).or_else(|| builtin::find(name)) {
        return Ok(Cow::Borrowed(bytes));
    }
    if !name.contains('/') && !name.ends_with(".wasm") {
        let known = built_in(role).join(", ");
        let known = if known.is_empty() { "none in this build".to_owned() } else { known };
        return Err(PolicyError::Unknown { name: name.to_owned(), role, known });
    }
    let io = |why| PolicyError::Io { path: name.to_owned(), role, why };
    let mut bytes = Vec::new();
    // One byte more than the host takes, so that it refuses what is too large.
    File::open(Path::new(name)).map_err(io)?.take(COMPONENT_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(io)?;
    Ok(Cow::Owned(bytes))
}

fn title(loaded: &Arc<Loaded>) -> String {
    let about = loaded.about();
    format!("{} {}", about.name, about.version)
}

/// A scheduling generation that can look up names while it decides.
struct Named {
    policy: Scheduler,
    names: Arc<Newest>,
}

impl Scheduling for Named {
    fn schedule(&mut self, cycle: Box<Cycle>) -> (Box<Cycle>, Result<(), Fault>) {
        let state = cycle.state().clone();
        self.names.during(&state, || self.policy.schedule(cycle))
    }

    fn label(&self) -> String {
        self.policy.label()
    }
}

/// A priority generation in the form that the core calls.
struct Prioritizer(Arc<Loaded>);

impl Priority for Prioritizer {
    fn prioritize(&self, batch: Arc<PriorityBatch>) -> Result<Vec<i64>, Fault> {
        self.0.priority()?.prioritize(batch)
    }

    fn explain(&self, batch: Arc<PriorityBatch>, row: u32) -> Result<Vec<Factor>, Fault> {
        self.0.priority()?.explain(batch, row)
    }
}

/// An accounting generation in the form that the core calls.
struct Accountant(Arc<Loaded>);

impl Accounting for Accountant {
    fn charge(&self, ended: Arc<Vec<Uncharged>>) -> Result<Vec<i64>, Fault> {
        self.0.accounting()?.charge(ended)
    }

    fn allowances(&self, now: Timestamp) -> Result<Vec<Allowance>, Fault> {
        self.0.accounting()?.allowances(now)
    }

    fn decay(&self) -> Result<Fading, Fault> {
        self.0.accounting()?.decay()
    }
}
