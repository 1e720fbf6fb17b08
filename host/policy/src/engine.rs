//! The one wasmtime engine of the process: what Wasm may be, and how instances get their memory.

use crate::bounds;
use std::num::NonZeroUsize;
use std::sync::OnceLock;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

/// How instances get their memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// From a pool that was reserved at the start.
    Pooled,
    /// Mapped for each instance: the address space was too small for a pool.
    OnDemand,
}

/// The engine. There is exactly one for each process: types of different engines must never meet.
///
/// # Errors
/// This processor or system is not supported by wasmtime; the text says why.
pub fn engine() -> Result<(&'static Engine, Allocation), String> {
    static ENGINE: OnceLock<Result<(Engine, Allocation), String>> = OnceLock::new();
    match ENGINE.get_or_init(make) {
        Ok((engine, allocation)) => Ok((engine, *allocation)),
        Err(why) => Err(why.clone()),
    }
}

fn make() -> Result<(Engine, Allocation), String> {
    let instances = bounds::CALLS_AT_ONCE + bounds::AHEAD_AT_ONCE;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        .total_core_instances(instances * bounds::CORE_INSTANCES)
        .total_memories(instances * bounds::MEMORIES)
        .total_tables(instances * bounds::TABLES)
        .max_core_instances_per_component(bounds::CORE_INSTANCES)
        .max_memories_per_component(bounds::MEMORIES)
        .max_tables_per_component(bounds::TABLES)
        .max_memories_per_module(bounds::MEMORIES)
        .max_tables_per_module(bounds::TABLES)
        .table_elements(bounds::TABLE_ELEMENTS);
    // Where Linux (6.7 and later) tells which pages a call touched, those are wiped and kept, and the next call has no
    // page faults: a fresh instance then takes 4 us instead of 10. Without that, wiping would cost more than it saves.
    if PoolingAllocationConfig::is_pagemap_scan_available() {
        pool.pagemap_scan(Enabled::Auto)
            .linear_memory_keep_resident(bounds::MEMORY_KEPT)
            .table_keep_resident(bounds::TABLE_KEPT);
    }
    if let Ok(engine) = Engine::new(config().allocation_strategy(InstanceAllocationStrategy::Pooling(pool))) {
        return Ok((engine, Allocation::Pooled));
    }
    // Reserving fails where the address space is limited (`ulimit -v`, some containers).
    let engine = Engine::new(config().allocation_strategy(InstanceAllocationStrategy::OnDemand));
    engine.map(|engine| (engine, Allocation::OnDemand)).map_err(|e| format!("{e:#}"))
}

/// Everything that two machines could see differently, or that nobody needs, is off. Threads, garbage collection,
/// exceptions and component async are not compiled in.
fn config() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_tail_call(false)
        .wasm_wide_arithmetic(false)
        .wasm_custom_page_sizes(false)
        .wasm_component_model(true)
        .concurrency_support(false)
        .max_wasm_stack(bounds::STACK_BYTES)
        .wasm_backtrace_max_frames(NonZeroUsize::new(bounds::FRAMES_READ));
    config
}
