//! Bounds the memory and tables of one instance, all of them together, and remembers what it refused.

use crate::bounds;
use wasmtime::{Error, ResourceLimiter, Result};

/// See the module.
#[derive(Debug)]
pub struct Limiter {
    limit: usize,
    memory_left: usize,
    table_left: usize,
    denied: Option<String>,
}

impl Limiter {
    /// A limit of so many bytes of linear memory.
    pub fn new(memory_bytes: u64) -> Self {
        let limit = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
        Self { limit, memory_left: limit, table_left: bounds::TABLE_ELEMENTS, denied: None }
    }

    /// Bytes of linear memory that the instance has.
    pub fn memory_bytes(&self) -> usize {
        self.limit - self.memory_left
    }

    /// What was refused, in words.
    pub fn denied(&self) -> Option<&str> {
        self.denied.as_deref()
    }

    /// A refusal is a trap: what a guest would make of a failed growth must not become a decision.
    fn deny(&mut self, text: String) -> Result<bool> {
        let error = Error::msg(text.clone());
        self.denied.get_or_insert(text);
        Err(error)
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        let more = desired.saturating_sub(current);
        if more > self.memory_left {
            let limit = self.limit;
            return self.deny(format!("it asked for {desired} bytes of memory; {limit} are its limit"));
        }
        if let Some(maximum) = maximum.filter(|m| desired > *m) {
            return self.deny(format!("it asked for {desired} bytes of memory; it declares {maximum} as its most"));
        }
        self.memory_left -= more;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: Error) -> Result<()> {
        self.deny(format!("the machine had no memory for it: {error:#}")).map(drop)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        let more = desired.saturating_sub(current);
        if more > self.table_left || maximum.is_some_and(|m| desired > m) {
            return self.deny(format!("it asked for a table of {desired} entries"));
        }
        self.table_left -= more;
        Ok(true)
    }

    fn table_grow_failed(&mut self, error: Error) -> Result<()> {
        self.deny(format!("the machine had no memory for a table: {error:#}")).map(drop)
    }

    fn instances(&self) -> usize {
        bounds::CORE_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        bounds::TABLES as usize
    }

    fn memories(&self) -> usize {
        bounds::MEMORIES as usize
    }
}
