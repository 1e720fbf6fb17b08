//! A generation that is ready to be called.

use crate::ahead::{Shelf, Start};
use crate::host::Services;
use crate::manifest::Fuel;
use crate::stats::{Snapshot, Stats};
use crate::{accounting, admission, authentication, priority, scheduling};
use ephor_core::Fault;
use ephor_core::FaultKind;
use ephor_model::{Digest, PolicyLimits, Role};
use std::sync::Arc;
use wasmtime::Engine;

/// What a generation is.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// Role.
    pub role: Role,
    /// Name, from the manifest.
    pub name: String,
    /// Version, from the manifest.
    pub version: String,
    /// Number of the generation; 0 before it has one.
    pub generation: u64,
    /// For texts: `scheduling 'backfill' generation 3`.
    pub label: String,
    /// Digest of the component.
    pub component: Digest,
    /// Configuration as JSON text.
    pub config: String,
    /// Bounds of a call.
    pub limits: PolicyLimits,
    /// Interfaces of the host that are linked.
    pub linked: Vec<String>,
    /// Admission: whether it may change jobs.
    pub mutating: bool,
}

impl About {
    pub(crate) fn label(role: Role, name: &str, generation: u64) -> String {
        match generation {
            0 => format!("{role} '{name}'"),
            number => format!("{role} '{name}' generation {number}"),
        }
    }

    /// Fuel of a call.
    pub(crate) fn fuel(&self) -> Fuel {
        let PolicyLimits { fuel_base: base, fuel_per_job: per_job, fuel_per_node: per_node, .. } = self.limits;
        Fuel { base, per_job, per_node }
    }
}

/// What all roles' generations have.
pub struct Common {
    pub(crate) about: Arc<About>,
    pub(crate) engine: &'static Engine,
    pub(crate) services: Services,
    pub(crate) stats: Stats,
}

/// A generation of one role: its linked component, and instances of it that were made ahead.
pub struct Code<S: Start> {
    pub(crate) common: Arc<Common>,
    pub(crate) linked: S,
    /// `None`: every call makes its own, as the component wants to run code when it starts.
    pub(crate) shelf: Option<Arc<Shelf<S>>>,
}

impl<S: Start> Code<S> {
    pub(crate) fn new(common: Common, linked: S, ahead: bool) -> Self {
        let common = Arc::new(common);
        let shelf = ahead.then(|| Shelf::new(common.clone(), linked.clone()));
        Self { common, linked, shelf }
    }
}

/// A generation of one role, ready to be called from any thread. Each call has an instance of its own.
pub enum Loaded {
    /// Of authentication.
    Authentication(authentication::Policy),
    /// Of admission.
    Admission(admission::Policy),
    /// Of priority.
    Priority(priority::Policy),
    /// Of scheduling.
    Scheduling(scheduling::Policy),
    /// Of accounting.
    Accounting(accounting::Policy),
}

impl Loaded {
    fn common(&self) -> &Common {
        match self {
            Self::Authentication(p) => &p.0.common,
            Self::Admission(p) => &p.0.common,
            Self::Priority(p) => &p.0.common,
            Self::Scheduling(p) => &p.0.common,
            Self::Accounting(p) => &p.0.common,
        }
    }

    /// What it is.
    pub fn about(&self) -> &Arc<About> {
        &self.common().about
    }

    /// Its figures so far.
    pub fn stats(&self) -> Snapshot {
        self.common().stats.snapshot()
    }

    pub(crate) fn health(&self) -> (u64, u32, ephor_model::Timestamp) {
        self.common().stats.health()
    }

    /// It as an authentication policy.
    ///
    /// # Errors
    /// It fills another role.
    pub fn authentication(&self) -> Result<&authentication::Policy, Fault> {
        match self {
            Self::Authentication(policy) => Ok(policy),
            other => Err(other.is_not(Role::Authentication)),
        }
    }

    /// It as an admission policy.
    ///
    /// # Errors
    /// It fills another role.
    pub fn admission(&self) -> Result<&admission::Policy, Fault> {
        match self {
            Self::Admission(policy) => Ok(policy),
            other => Err(other.is_not(Role::Admission)),
        }
    }

    /// It as a priority policy.
    ///
    /// # Errors
    /// It fills another role.
    pub fn priority(&self) -> Result<&priority::Policy, Fault> {
        match self {
            Self::Priority(policy) => Ok(policy),
            other => Err(other.is_not(Role::Priority)),
        }
    }

    /// It as a scheduling policy.
    ///
    /// # Errors
    /// It fills another role.
    pub fn scheduling(&self) -> Result<&scheduling::Policy, Fault> {
        match self {
            Self::Scheduling(policy) => Ok(policy),
            other => Err(other.is_not(Role::Scheduling)),
        }
    }

    /// It as an accounting policy.
    ///
    /// # Errors
    /// It fills another role.
    pub fn accounting(&self) -> Result<&accounting::Policy, Fault> {
        match self {
            Self::Accounting(policy) => Ok(policy),
            other => Err(other.is_not(Role::Accounting)),
        }
    }

    fn is_not(&self, role: Role) -> Fault {
        let about = self.about();
        Fault {
            kind: FaultKind::Missing,
            policy: about.label.clone(),
            message: format!("it fills {}, not {role}", about.role),
        }
    }
}
