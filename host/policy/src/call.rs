//! One call of a policy: a fresh store and instance with their bounds, and what is left of them afterwards.

use crate::ahead::{Start, Taken};
use crate::bounds;
use crate::fault::{Failure, fault_of};
use crate::gate::Gate;
use crate::host::{Directory, Names};
use crate::limiter::Limiter;
use crate::loaded::{About, Code, Common};
use crate::stats::Cost;
use ephor_core::{Fault, FaultKind, State};
use ephor_model::Timestamp;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;
use wasmtime::component::ResourceTable;
use wasmtime::{Error, Result, Store};

static GATE: Gate = Gate::new(bounds::CALLS_AT_ONCE);

/// Data of a store: what every role has, and what its own call is about.
pub struct Call<R> {
    pub base: Base,
    pub role: R,
}

/// What every call has: who calls, and how much of each thing is left to it.
pub struct Base {
    pub about: Arc<About>,
    pub table: ResourceTable,
    pub log: LogBudget,
    pub directory: Arc<dyn Directory>,
    names: Arc<dyn Names>,
    state: Option<State>,
    limiter: Limiter,
    work_left: u64,
    output_left: u64,
    ended: Option<(FaultKind, String)>,
}

/// What a call may still write to the log.
#[derive(Debug)]
pub struct LogBudget {
    pub lines_left: u32,
    pub bytes_left: usize,
    pub dropped: u64,
    /// The last line that was an error, for the message of a fault: a guest's panic writes one.
    pub last_error: Option<String>,
}

/// How much a call is about.
#[derive(Clone, Copy, Debug, Default)]
pub struct Size {
    pub jobs: u64,
    pub nodes: u64,
}

impl Base {
    fn new(common: &Common, state: Option<State>) -> Self {
        let limits = &common.about.limits;
        let mut table = ResourceTable::new();
        table.set_max_capacity(bounds::RESOURCES);
        Self {
            about: common.about.clone(),
            table,
            log: LogBudget {
                lines_left: bounds::LOG_LINES,
                bytes_left: bounds::LOG_BYTES,
                dropped: 0,
                last_error: None,
            },
            directory: common.services.directory.clone(),
            names: common.services.names.clone(),
            state,
            limiter: Limiter::new(limits.memory_bytes),
            work_left: limits.work_units,
            output_left: limits.output_bytes,
            ended: None,
        }
    }

    /// Ends the call: the error goes to the guest as a trap, the reason into the fault.
    pub fn end(&mut self, kind: FaultKind, text: String) -> Error {
        let error = Error::msg(text.clone());
        self.ended.get_or_insert((kind, text));
        error
    }

    /// Takes host work units, or ends the call: for operations that cannot answer `budget`.
    pub fn work(&mut self, units: u64) -> Result<()> {
        match self.work_left.checked_sub(units) {
            Some(left) => self.work_left = left,
            None => {
                let limit = self.about.limits.work_units;
                return Err(self.end(FaultKind::Fuel, format!("it used up the {limit} work units of the call")));
            }
        }
        Ok(())
    }

    /// Counts bytes that the guest handed over: wasmtime bounds those of each operation, this those of the call.
    pub fn handed_over(&mut self, bytes: usize) -> Result<()> {
        match self.output_left.checked_sub(bytes as u64) {
            Some(left) => self.output_left = left,
            None => {
                let limit = self.about.limits.output_bytes;
                return Err(self.end(FaultKind::Output, format!("it handed over more than {limit} bytes")));
            }
        }
        Ok(())
    }

    /// Checks that so many bytes fit into the guest, before the host makes them.
    pub fn hand_in(&mut self, bytes: u64) -> Result<()> {
        let limit = self.about.limits.memory_bytes;
        if bytes <= limit {
            return Ok(());
        }
        Err(self.end(FaultKind::Memory, format!("it asked for {bytes} bytes at once; {limit} are its limit of memory")))
    }

    /// Bytes of linear memory that the instance has.
    pub fn memory_bytes(&self) -> usize {
        self.limiter.memory_bytes()
    }

    /// The state that names come from: the call's own, else the newest.
    pub fn state(&mut self) -> &State {
        self.state.get_or_insert_with(|| self.names.state())
    }
}

/// What a call is, besides the code that makes it.
pub struct Plan<R> {
    /// The role's own part of the store's data.
    pub role: R,
    /// The state that names come from; `None`: the newest.
    pub state: Option<State>,
    /// For the fuel.
    pub size: Size,
    /// The caller's time, where it has one.
    pub now: Option<Timestamp>,
}

/// A store for one call of that generation, with nothing of the call in it yet.
pub fn store<S: Start>(common: &Common) -> Store<Call<S::Own>> {
    let limits = &common.about.limits;
    let mut store = Store::new(common.engine, Call { base: Base::new(common, None), role: S::idle() });
    store.limiter(|call| &mut call.base.limiter);
    store.set_hostcall_fuel(usize::try_from(limits.output_bytes).unwrap_or(usize::MAX));
    store.set_max_component_handles(bounds::HANDLES);
    store
}

/// Runs one call and accounts for it. The role's part comes back whatever happened.
pub fn run<S: Start, T>(
    code: &Code<S>,
    plan: Plan<S::Own>,
    call: impl FnOnce(&mut Store<Call<S::Own>>, &S::Instance) -> Result<T, Failure>,
) -> (S::Own, Result<T, Fault>) {
    let _pass = GATE.enter();
    let began = Instant::now();
    let common = &code.common;
    let budget = common.about.fuel().of(plan.size.jobs, plan.size.nodes);
    // One whose start costs more than the call may is not used: a start within the call says so.
    let taken = code.shelf.as_ref().and_then(|shelf| shelf.take()).filter(|taken| taken.fuel < budget);
    let (mut store, made, paid) = match taken {
        Some(Taken { store, instance, fuel }) => (store, Some(instance), fuel),
        None => (store::<S>(common), None, 0),
    };
    let ahead = made.is_some();
    let mut role = plan.role;
    std::mem::swap(&mut store.data_mut().role, &mut role);
    store.data_mut().base.state = plan.state;
    // A panic of ours or of wasmtime's must not take the controller with it: the store is not used again, and nothing
    // else was touched.
    let answer = catch_unwind(AssertUnwindSafe(|| {
        store.set_fuel(budget - paid).map_err(Failure::Start)?;
        let instance = match made {
            Some(instance) => instance,
            None => code.linked.start(&mut store).map_err(Failure::Start)?,
        };
        call(&mut store, &instance)
    }));
    let fuel = budget.saturating_sub(store.get_fuel().unwrap_or(0));
    let Call { base, role: own } = store.data_mut();
    std::mem::swap(own, &mut role);
    base.state = None;
    let answer = match answer {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(failure)) => Err(fault_of(base, failure, budget)),
        Err(panic) => Err(fault_of(base, Failure::Panic(panic), budget)),
    };
    let lines_dropped = base.log.dropped;
    if let Some(shelf) = &code.shelf {
        shelf.give_back(store);
    }
    let cost = Cost { took: began.elapsed(), fuel, budget, lines_dropped, ahead };
    common.stats.record(plan.now, cost, answer.as_ref().err());
    (role, answer)
}

impl Base {
    /// Why a host function ended the call, or what the limiter refused.
    pub fn verdict(&self) -> Option<(FaultKind, &str)> {
        match &self.ended {
            Some((kind, text)) => Some((*kind, text)),
            None => self.limiter.denied().map(|text| (FaultKind::Memory, text)),
        }
    }
}

#[cfg(test)]
pub mod testing {
    //! A call without a component, for tests of what the host answers.

    use super::*;
    use crate::engine::engine;
    use crate::host::Services;
    use crate::stats::Stats;
    use ephor_core::Command;
    use ephor_core::command::{NodeReport, Objects};
    use ephor_core::decide::{Batch, execute};
    use ephor_model::{
        Account, Amounts, Digest, JobSpec, NodeSpec, Payload, PolicyLimits, Queue, ResourceId, Role, Span, Uid, User,
    };

    /// What every call has, within those limits, over that state.
    pub fn base(limits: PolicyLimits, state: State) -> Base {
        let about = About {
            role: Role::Scheduling,
            name: "test".into(),
            version: "1".into(),
            generation: 1,
            label: "scheduling 'test' generation 1".into(),
            component: Digest::default(),
            config: "{}".into(),
            limits,
            linked: Vec::new(),
            mutating: false,
        };
        let (engine, _) = engine().unwrap();
        let services = Services::default();
        Base::new(&Common { about: Arc::new(about), engine, services, stats: Stats::default() }, Some(state))
    }

    /// Queue `main`, account `default`, user 1000 `alice`, nodes `n1` and `n2` of four cores, and so many jobs of one.
    pub fn cluster(jobs: u32) -> State {
        let mut state = State::default();
        let mut run = |command| execute(&mut state, Timestamp(1_000), command, &mut Batch::default()).unwrap();
        run(Command::BeginEpoch { at_least: 1 });
        run(Command::Apply(Objects {
            queues: vec![(Queue { name: "main".into(), default: true, ..Queue::default() }, None)],
            accounts: vec![Account { name: "default".into(), ..Account::default() }],
            users: vec![User { uid: Uid(1000), name: "alice".into(), ..User::default() }],
            ..Objects::default()
        }));
        for name in ["n1", "n2"] {
            let capacity = Amounts::new().with(ResourceId::CPU, 4_000);
            let spec = NodeSpec { name: name.into(), capacity, boot_id: "boot".into(), ..NodeSpec::default() };
            run(Command::NodeReport(NodeReport::Register { spec, holds: Vec::new(), faults: Default::default() }));
        }
        for _ in 0..jobs {
            let mut spec = JobSpec::new("job", Payload::Argv(vec!["true".into()]));
            (spec.queue, spec.account) = ("main".into(), "default".into());
            spec.time_limit = Some(Span::minutes(10));
            let environment = Digest::default();
            run(Command::Submit { spec: Arc::new(spec), script: None, environment, known_ends: Vec::new() });
        }
        state
    }
}
