//! The role of accounting: what use costs, what is left, and how past use fades.

use crate::ahead::Start;
use crate::bindings::accounting as bindings;
use crate::bindings::accounting::ephor::accounting::usage;
use crate::bounds;
use crate::call::{self, Call, Plan, Size};
use crate::check;
use crate::fault::Failure;
use crate::imports;
use crate::loaded::Code;
use crate::priority::take_column;
use ephor_core::Fault;
use ephor_core::records::{Fading, Uncharged};
use ephor_core::roles::{Accounting, Allowance};
use ephor_model::{AccountId, JobState, ResourceId, Span, Timestamp, Uid, limits};
use std::collections::BTreeSet;
use std::sync::Arc;
use wasmtime::component::{Component, HasSelf, Linker, Resource};
use wasmtime::{Engine, Result as WasmResult, Store};

/// The one batch of a call; its content is in the store.
pub struct BatchHandle;

/// This role's part of a store.
pub(crate) type BatchCall = Arc<Vec<Uncharged>>;

/// A linked component of this role.
pub(crate) type Pre = bindings::PolicyPre<Call<BatchCall>>;

impl Start for Pre {
    type Own = BatchCall;
    type Instance = bindings::Policy;

    fn idle() -> BatchCall {
        BatchCall::default()
    }

    fn start(&self, store: &mut Store<Call<BatchCall>>) -> wasmtime::Result<bindings::Policy> {
        self.instantiate(store)
    }
}

/// A generation of this role.
pub struct Policy(pub(crate) Code<Pre>);

pub(crate) fn link(engine: &Engine, component: &Component, granted: &[String]) -> WasmResult<Pre> {
    let mut linker = Linker::new(engine);
    imports::link(&mut linker, granted)?;
    usage::add_to_linker::<_, HasSelf<Call<BatchCall>>>(&mut linker, |call| call)?;
    bindings::PolicyPre::new(linker.instantiate_pre(component)?)
}

fn plan(ended: Arc<Vec<Uncharged>>, now: Option<Timestamp>) -> Plan<BatchCall> {
    let size = Size { jobs: ended.len() as u64, nodes: 0 };
    Plan { size, state: None, now, role: ended }
}

impl Accounting for Policy {
    fn charge(&self, ended: Arc<Vec<Uncharged>>) -> Result<Vec<i64>, Fault> {
        let rows = ended.len();
        let newest = ended.iter().map(|u| u.ended).max();
        call::run(&self.0, plan(ended, newest), |store, policy| {
            let guest = policy.ephor_accounting_accounting();
            let charges = guest.call_charge(store, Resource::new_borrow(0)).map_err(Failure::Call)?;
            check::length("charges", charges.len(), rows)?;
            if let Some(bad) = charges.iter().find(|c| !(0..=bounds::CHARGE).contains(*c)) {
                return Err(check::bad(format!("it charged {bad}; a charge is 0 to {}", bounds::CHARGE)));
            }
            Ok(charges)
        })
        .1
    }

    fn allowances(&self, now: Timestamp) -> Result<Vec<Allowance>, Fault> {
        call::run(&self.0, plan(Arc::default(), Some(now)), |store, policy| {
            let guest = policy.ephor_accounting_accounting();
            let rows = guest.call_allowances(store, now.0).map_err(Failure::Call)?;
            check::at_most("allowances", rows.len(), bounds::ALLOWANCES)?;
            let mut seen = BTreeSet::new();
            rows.into_iter()
                .map(|row| {
                    if !seen.insert((row.account, row.user, row.id)) {
                        return Err(check::bad("it returned two allowances for the same scope and resource"));
                    }
                    Ok(Allowance {
                        account: row.account.map(AccountId),
                        user: row.user.map(Uid),
                        resource: ResourceId(row.id),
                        // Already over what is allowed: nothing more may start.
                        remaining: row.remaining.max(0),
                    })
                })
                .collect()
        })
        .1
    }

    fn decay(&self) -> Result<Fading, Fault> {
        call::run(&self.0, plan(Arc::default(), None), |store, policy| {
            let fading = policy.ephor_accounting_accounting().call_decay(store).map_err(Failure::Call)?;
            let periods = Span::minutes(1).0..=limits::TIME_LIMIT_MS;
            if fading.period != 0 && !periods.contains(&fading.period) {
                let text = format!("it fades every {} ms; a period is 0, or one minute to 100 years", fading.period);
                return Err(check::bad(text));
            }
            if fading.factor > 1 << 32 {
                return Err(check::bad(format!("its factor {} is above 2^32: use does not grow", fading.factor)));
            }
            Ok(Fading { period: Span(fading.period), factor: fading.factor })
        })
        .1
    }
}

impl usage::Host for Call<BatchCall> {}

impl usage::HostBatch for Call<BatchCall> {
    fn count(&mut self, _: Resource<BatchHandle>) -> WasmResult<u32> {
        Ok(u32::try_from(self.role.len()).unwrap_or(u32::MAX))
    }

    fn column(&mut self, _: Resource<BatchHandle>, name: String) -> WasmResult<Result<Vec<i64>, String>> {
        self.base.handed_over(name.len())?;
        let Some((_, field)) = COLUMNS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<_> = COLUMNS.iter().map(|(name, _)| *name).collect();
            return Ok(Err(format!("there is no such column; there are: {}", known.join(", "))));
        };
        take_column(&mut self.base, self.role.len())?;
        Ok(Ok(self.role.iter().map(field).collect()))
    }

    fn drop(&mut self, _: Resource<BatchHandle>) -> WasmResult<()> {
        Ok(())
    }
}

type Column = (&'static str, fn(&Uncharged) -> i64);

const COLUMNS: [Column; 15] = [
    ("job", |u| u.key.job.0 as i64),
    ("attempt", |u| i64::from(u.key.number)),
    ("account", |u| i64::from(u.account.0)),
    ("user", |u| i64::from(u.user.0)),
    ("queue", |u| i64::from(u.queue.0)),
    ("started", |u| u.started.0),
    ("ended", |u| u.ended.0),
    ("elapsed", |u| (u.ended - u.started).0),
    ("cpu-time", |u| u.usage.cpu_ms),
    ("peak-mem", |u| u.usage.peak_mem_mib),
    ("state", |u| state_number(u.state)),
    ("held.cpu", |u| u.held.get(ResourceId::CPU)),
    ("held.mem", |u| u.held.get(ResourceId::MEM)),
    ("held.gpu", |u| u.held.get(ResourceId::GPU)),
    ("held.node", |u| u.held.get(ResourceId::NODE)),
];

/// How the attempt ended, by the contract's numbers.
fn state_number(state: JobState) -> i64 {
    match state {
        JobState::Completed => 0,
        JobState::Cancelled => 1,
        JobState::Timeout => 3,
        JobState::NodeFail => 4,
        JobState::Preempted => 5,
        JobState::OutOfMemory => 6,
        // An attempt that ended is in none of the other states.
        _ => 2,
    }
}
