//! The role of priority: which job is worth how much.

use crate::ahead::Start;
use crate::bindings::priority as bindings;
use crate::bindings::priority::ephor::priority::jobs;
use crate::bounds;
use crate::call::{self, Base, Call, Plan, Size};
use crate::check;
use crate::fault::Failure;
use crate::imports;
use crate::loaded::Code;
use ephor_core::Fault;
use ephor_core::roles::{Factor, Priority, PriorityBatch, PriorityRow};
use std::sync::Arc;
use wasmtime::component::{Component, HasSelf, Linker, Resource};
use wasmtime::{Engine, Result as WasmResult, Store};

/// The one batch of a call; its content is in the store.
pub struct BatchHandle;

/// This role's part of a store.
pub(crate) type BatchCall = Arc<PriorityBatch>;

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
    jobs::add_to_linker::<_, HasSelf<Call<BatchCall>>>(&mut linker, |call| call)?;
    bindings::PolicyPre::new(linker.instantiate_pre(component)?)
}

fn plan(batch: Arc<PriorityBatch>) -> Plan<BatchCall> {
    let size = Size { jobs: batch.rows.len() as u64, nodes: 0 };
    Plan { size, state: None, now: Some(batch.now), role: batch }
}

impl Priority for Policy {
    fn prioritize(&self, batch: Arc<PriorityBatch>) -> Result<Vec<i64>, Fault> {
        let rows = batch.rows.len();
        call::run(&self.0, plan(batch), |store, policy| {
            let guest = policy.ephor_priority_priority();
            let values = guest.call_prioritize(store, Resource::new_borrow(0)).map_err(Failure::Call)?;
            check::length("priorities", values.len(), rows)?;
            Ok(values)
        })
        .1
    }

    fn explain(&self, batch: Arc<PriorityBatch>, row: u32) -> Result<Vec<Factor>, Fault> {
        call::run(&self.0, plan(batch), |store, policy| {
            let guest = policy.ephor_priority_priority();
            let factors = guest.call_explain(store, Resource::new_borrow(0), row).map_err(Failure::Call)?;
            check::at_most("factors", factors.len(), bounds::FACTORS)?;
            factors
                .into_iter()
                .map(|f| {
                    let name = check::name("the name of a factor", f.name)?;
                    Ok(Factor { name, value: f.value, how: check::text("the text of a factor", f.how)? })
                })
                .collect()
        })
        .1
    }
}

impl jobs::Host for Call<BatchCall> {}

impl jobs::HostBatch for Call<BatchCall> {
    fn now(&mut self, _: Resource<BatchHandle>) -> WasmResult<i64> {
        Ok(self.role.now.0)
    }

    fn count(&mut self, _: Resource<BatchHandle>) -> WasmResult<u32> {
        Ok(u32::try_from(self.role.rows.len()).unwrap_or(u32::MAX))
    }

    fn column(&mut self, _: Resource<BatchHandle>, name: String) -> WasmResult<Result<Vec<i64>, String>> {
        self.base.handed_over(name.len())?;
        let Some((_, field)) = COLUMNS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<_> = COLUMNS.iter().map(|(name, _)| *name).collect();
            return Ok(Err(format!("there is no such column; there are: {}", known.join(", "))));
        };
        take_column(&mut self.base, self.role.rows.len())?;
        Ok(Ok(self.role.rows.iter().map(field).collect()))
    }

    fn total(&mut self, _: Resource<BatchHandle>, name: String) -> WasmResult<Result<i64, String>> {
        self.base.handed_over(name.len())?;
        let found = self.role.totals.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        Ok(found.ok_or_else(|| {
            let known: Vec<_> = self.role.totals.iter().map(|(name, _)| *name).collect();
            format!("there is no such total; there are: {}", known.join(", "))
        }))
    }

    fn drop(&mut self, _: Resource<BatchHandle>) -> WasmResult<()> {
        Ok(())
    }
}

/// Pays for a column before it is made: one unit a row, and it must fit the guest.
pub(crate) fn take_column(base: &mut Base, rows: usize) -> WasmResult<()> {
    base.work(1 + rows as u64)?;
    base.hand_in(rows as u64 * 8)
}

type Column = (&'static str, fn(&PriorityRow) -> i64);

const COLUMNS: [Column; 15] = [
    ("id", |r| r.job.0 as i64),
    ("submitted", |r| r.submitted.0),
    ("eligible", |r| r.eligible.0),
    ("queue", |r| i64::from(r.queue.0)),
    ("account", |r| i64::from(r.account.0)),
    ("user", |r| i64::from(r.user.0)),
    ("nice", |r| r.nice),
    ("cpus", |r| r.cpus),
    ("mem", |r| r.mem),
    ("gpus", |r| r.gpus),
    ("nodes", |r| r.nodes),
    ("time-limit", |r| r.time_limit),
    ("requeues", |r| r.requeues),
    ("queue-priority", |r| r.queue_priority),
    ("usage", |r| r.usage),
];
