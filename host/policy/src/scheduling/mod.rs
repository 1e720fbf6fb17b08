//! The role of scheduling: what starts where, and who gives way.

mod cycle;
mod placing;
mod words;

use crate::ahead::Start;
use crate::bindings::scheduling as bindings;
use crate::bindings::scheduling::ephor::scheduling::cycles;
use crate::call::{self, Call, Plan, Size};
use crate::fault::Failure;
use crate::imports;
use crate::loaded::{Code, Loaded};
use ephor_core::cycle::Cycle;
use ephor_core::roles::Scheduling;
use ephor_core::{Fault, State};
use ephor_model::Timestamp;
use std::sync::Arc;
use wasmtime::component::{Component, HasSelf, Linker, Resource};
use wasmtime::{Engine, Result as WasmResult, Store};

/// The one cycle of a call; its content is in the store.
pub struct CycleHandle;

/// This role's part of a store.
pub(crate) struct CycleCall {
    cycle: Box<Cycle>,
    /// Nodes in all slots that the call holds.
    nodes_in_slots: usize,
}

impl CycleCall {
    fn new(cycle: Box<Cycle>) -> Self {
        Self { cycle, nodes_in_slots: 0 }
    }

    /// For a trial start: a cycle without jobs, nodes or work.
    pub(crate) fn empty() -> Self {
        Self::new(Cycle::begin(Box::default(), State::default(), Timestamp(0), 0, Vec::new(), Vec::new()))
    }
}

/// A linked component of this role.
pub(crate) type Pre = bindings::PolicyPre<Call<CycleCall>>;

impl Start for Pre {
    type Own = CycleCall;
    type Instance = bindings::Policy;

    fn idle() -> CycleCall {
        CycleCall::empty()
    }

    fn start(&self, store: &mut Store<Call<CycleCall>>) -> wasmtime::Result<bindings::Policy> {
        self.instantiate(store)
    }
}

/// A generation of this role.
pub struct Policy(pub(crate) Code<Pre>);

pub(crate) fn link(engine: &Engine, component: &Component, granted: &[String]) -> WasmResult<Pre> {
    let mut linker = Linker::new(engine);
    imports::link(&mut linker, granted)?;
    cycles::add_to_linker::<_, HasSelf<Call<CycleCall>>>(&mut linker, |call| call)?;
    bindings::PolicyPre::new(linker.instantiate_pre(component)?)
}

impl Policy {
    /// Makes a plan. The cycle comes back whatever happened.
    pub fn schedule(&self, cycle: Box<Cycle>) -> (Box<Cycle>, Result<(), Fault>) {
        let plan = Plan {
            size: Size { jobs: cycle.pending_count(), nodes: cycle.node_count() },
            state: Some(cycle.state().clone()),
            now: Some(cycle.now()),
            role: CycleCall::new(cycle),
        };
        let (role, answer) = call::run(&self.0, plan, |store, policy| {
            let guest = policy.ephor_scheduling_scheduling();
            guest.call_schedule(store, Resource::new_borrow(0)).map_err(Failure::Call)
        });
        (role.cycle, answer)
    }
}

/// A scheduling generation in the form that the core calls.
pub struct Scheduler(pub Arc<Loaded>);

impl Scheduling for Scheduler {
    fn schedule(&mut self, cycle: Box<Cycle>) -> (Box<Cycle>, Result<(), Fault>) {
        match self.0.scheduling() {
            Ok(policy) => policy.schedule(cycle),
            Err(fault) => (cycle, Err(fault)),
        }
    }

    fn label(&self) -> String {
        self.0.about().label.clone()
    }
}

#[cfg(test)]
mod testing {
    use super::*;
    use crate::call::testing::{base, cluster};
    use ephor_core::replica::Replica;
    use ephor_model::PolicyLimits;

    /// A call in the middle of a cycle over so many pending jobs.
    pub fn call(limits: PolicyLimits, jobs: u32) -> Call<CycleCall> {
        let state = cluster(jobs);
        let replica = Box::new(Replica::of(&state));
        let cycle = Cycle::begin(replica, state.clone(), Timestamp(2_000), limits.work_units, Vec::new(), Vec::new());
        Call { base: base(limits, state), role: CycleCall::new(cycle) }
    }
}
