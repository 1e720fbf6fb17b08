//! The policy host: from the bytes of a component to a generation that can be called.

use crate::ahead::Start;
use crate::cache::{Cache, CacheError};
use crate::call::{self, Plan, Size};
use crate::engine::{Allocation, engine};
use crate::error::LoadError;
use crate::inspect::Surface;
use crate::loaded::{About, Code, Common, Loaded};
use crate::manifest::Manifest;
use crate::stats::Stats;
use crate::{accounting, admission, authentication, priority, scheduling, schema};
use ephor_core::State;
use ephor_model::{Digest, Generation, PolicyLimits, Role, Timestamp};
use sha2::{Digest as _, Sha256};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use wasmtime::Engine;
use wasmtime::component::Component;

/// A user as the host's name service knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryUser {
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// Login name.
    pub name: String,
    /// Names of the groups the user belongs to.
    pub groups: Vec<String>,
}

/// Users and groups, for policies that were granted `ephor:host/directory`. It answers from a cache: a call of a
/// policy waits for it.
pub trait Directory: Send + Sync {
    /// The user of that id.
    fn user_by_id(&self, uid: u32) -> Option<DirectoryUser>;
    /// The user of that login name.
    fn user_by_name(&self, name: &str) -> Option<DirectoryUser>;
}

/// A directory that knows nobody: for simulations and tools.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDirectory;

impl Directory for NoDirectory {
    fn user_by_id(&self, _: u32) -> Option<DirectoryUser> {
        None
    }
    fn user_by_name(&self, _: &str) -> Option<DirectoryUser> {
        None
    }
}

/// Where `ephor:host/names` looks when a call has no state of its own (authentication, priority, accounting).
pub trait Names: Send + Sync {
    /// The newest state. Called at most once a call, when the policy first asks for a name.
    fn state(&self) -> State;
}

impl<F: Fn() -> State + Send + Sync> Names for F {
    fn state(&self) -> State {
        self()
    }
}

/// What policies reach through the host.
#[derive(Clone)]
pub struct Services {
    /// Users and groups.
    pub directory: Arc<dyn Directory>,
    /// Names behind ids.
    pub names: Arc<dyn Names>,
}

impl Default for Services {
    fn default() -> Self {
        Self { directory: Arc::new(NoDirectory), names: Arc::new(State::default) as Arc<dyn Names> }
    }
}

/// What is asked for when a slot is to be filled.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Role of the slot.
    pub role: Role,
    /// The component's bytes.
    pub component: &'a [u8],
    /// Configuration as JSON text; empty: `{}`.
    pub config: &'a str,
    /// What the site grants besides what every policy may have, such as `ephor:host/directory`.
    pub grants: &'a [String],
    /// The site's maxima; [`crate::bounds::site_maxima`] where it says nothing, and the limits of the generation
    /// when one is loaded again.
    pub maxima: PolicyLimits,
}

/// See the module. One for each process is enough; clones share everything.
#[derive(Clone)]
pub struct Host {
    engine: &'static Engine,
    allocation: Allocation,
    cache: Option<Arc<Cache>>,
    services: Services,
}

/// A component that passed every check and a trial start: only its number is missing.
pub struct Prepared {
    /// Its manifest.
    pub manifest: Manifest,
    /// Whether the compiled code came from the cache.
    pub from_cache: bool,
    about: About,
    engine: &'static Engine,
    services: Services,
    linked: Linked,
    runs_at_start: bool,
}

pub(crate) enum Linked {
    Authentication(authentication::Pre),
    Admission(admission::Pre),
    Priority(priority::Pre),
    Scheduling(scheduling::Pre),
    Accounting(accounting::Pre),
}

impl Host {
    /// A host without a cache of compiled code.
    ///
    /// # Errors
    /// This machine cannot run Wasm.
    pub fn new(services: Services) -> Result<Self, LoadError> {
        let (engine, allocation) = engine().map_err(LoadError::Host)?;
        Ok(Self { engine, allocation, cache: None, services })
    }

    /// The same host with compiled code kept in that folder, which is made if need be and belongs to the host alone.
    ///
    /// # Errors
    /// The folder or its key cannot be used.
    pub fn with_cache(mut self, folder: &Path) -> Result<Self, CacheError> {
        self.cache = Some(Arc::new(Cache::open(folder)?));
        Ok(self)
    }

    /// How instances get their memory.
    pub fn allocation(&self) -> Allocation {
        self.allocation
    }

    /// Does everything that comes before a call: reads, checks, compiles, links, and starts the component once.
    ///
    /// # Errors
    /// The component, its configuration or its grants do not do; nothing was changed.
    pub fn prepare(&self, request: &Request<'_>) -> Result<Prepared, LoadError> {
        // Parser and compiler see hostile bytes here; a panic in them is a refusal.
        let prepared = catch_unwind(AssertUnwindSafe(|| self.try_prepare(request)));
        prepared.unwrap_or_else(|_| Err(LoadError::Damaged("reading it made the host panic".into())))
    }

    fn try_prepare(&self, request: &Request<'_>) -> Result<Prepared, LoadError> {
        let surface = Surface::read(request.component)?;
        let linked = surface.admit(request.role, request.grants)?;
        let Surface { manifest, runs_at_start, .. } = surface;
        let config = schema::check(&manifest, request.config)?;
        let digest = Digest(Sha256::digest(request.component).into());
        let unusable = |e: wasmtime::Error| LoadError::Unusable { name: manifest.name.clone(), why: first_line(&e) };
        let (component, from_cache) = self.compile(digest, request.component).map_err(unusable)?;
        let about = About {
            role: request.role,
            name: manifest.name.clone(),
            version: manifest.version.clone(),
            generation: 0,
            label: About::label(request.role, &manifest.name, 0),
            component: digest,
            config,
            limits: manifest.bounded_by(&request.maxima),
            linked,
            mutating: manifest.mutating,
        };
        let linked = match request.role {
            Role::Authentication => {
                authentication::link(self.engine, &component, &about.linked).map(Linked::Authentication)
            }
            Role::Admission => admission::link(self.engine, &component, &about.linked).map(Linked::Admission),
            Role::Priority => priority::link(self.engine, &component, &about.linked).map(Linked::Priority),
            Role::Scheduling => scheduling::link(self.engine, &component, &about.linked).map(Linked::Scheduling),
            Role::Accounting => accounting::link(self.engine, &component, &about.linked).map(Linked::Accounting),
        };
        let linked = linked.map_err(unusable)?;
        let services = self.services.clone();
        let engine = self.engine;
        let prepared = Prepared { manifest, from_cache, about, engine, services, linked, runs_at_start };
        prepared.try_start()?;
        Ok(prepared)
    }

    fn compile(&self, digest: Digest, bytes: &[u8]) -> wasmtime::Result<(Component, bool)> {
        let Some(cache) = &self.cache else {
            return Component::new(self.engine, bytes).map(|component| (component, false));
        };
        if let Some(component) = cache.load(self.engine, digest) {
            return Ok((component, true));
        }
        let component = Component::new(self.engine, bytes)?;
        // What cannot be kept is compiled again next time: slower, and no reason to refuse.
        if let Err(error) = cache.save(self.engine, digest, &component) {
            tracing::warn!(%error, component = %digest, "compiled policy was not cached");
        }
        Ok((component, false))
    }
}

impl Prepared {
    /// What it will be.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The record of it for the state, still without number and time: the state gives them.
    pub fn generation(&self, grants: Vec<String>, by: String) -> Generation {
        Generation {
            number: 0,
            name: self.about.name.clone(),
            version: self.about.version.clone(),
            component: self.about.component,
            config: self.about.config.clone(),
            limits: self.about.limits,
            grants,
            since: Timestamp::default(),
            by,
        }
    }

    /// The generation, once it has a number.
    pub fn activate(self, generation: u64) -> Arc<Loaded> {
        let mut about = self.about;
        about.generation = generation;
        about.label = About::label(about.role, &about.name, generation);
        let common =
            Common { about: Arc::new(about), engine: self.engine, services: self.services, stats: Stats::default() };
        let ahead = !self.runs_at_start;
        Arc::new(match self.linked {
            Linked::Authentication(linked) => {
                Loaded::Authentication(authentication::Policy(Code::new(common, linked, ahead)))
            }
            Linked::Admission(linked) => Loaded::Admission(admission::Policy(Code::new(common, linked, ahead))),
            Linked::Priority(linked) => Loaded::Priority(priority::Policy(Code::new(common, linked, ahead))),
            Linked::Scheduling(linked) => Loaded::Scheduling(scheduling::Policy(Code::new(common, linked, ahead))),
            Linked::Accounting(linked) => Loaded::Accounting(accounting::Policy(Code::new(common, linked, ahead))),
        })
    }

    /// Starts an instance and drops it: what cannot start is refused before it decides anything.
    fn try_start(&self) -> Result<(), LoadError> {
        let common = Common {
            about: Arc::new(self.about.clone()),
            engine: self.engine,
            services: self.services.clone(),
            stats: Stats::default(),
        };
        let started = match &self.linked {
            Linked::Authentication(linked) => trial(common, linked),
            Linked::Admission(linked) => trial(common, linked),
            Linked::Priority(linked) => trial(common, linked),
            Linked::Scheduling(linked) => trial(common, linked),
            Linked::Accounting(linked) => trial(common, linked),
        };
        started.map_err(|why| LoadError::Start { name: self.manifest.name.clone(), why })
    }
}

fn trial<S: Start>(common: Common, linked: &S) -> Result<(), String> {
    let plan = Plan { role: S::idle(), state: None, size: Size::default(), now: None };
    let (_, started) = call::run(&Code::new(common, linked.clone(), false), plan, |_, _| Ok(()));
    started.map_err(|fault| match fault.message.strip_prefix("it does not start: ") {
        Some(why) => why.to_owned(),
        None => fault.message,
    })
}

/// An error's chain in one short text.
fn first_line(error: &wasmtime::Error) -> String {
    let mut text = format!("{error:#}").replace('\n', " ");
    crate::fault::truncate(&mut text, crate::bounds::FAULT_BYTES);
    text
}
