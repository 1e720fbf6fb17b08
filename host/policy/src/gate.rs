//! Lets so many calls run at a time and makes the others wait, so that the pool of instances never runs dry.

use std::sync::{Condvar, Mutex, PoisonError};

/// See the module.
#[derive(Debug)]
pub struct Gate {
    free: Mutex<u32>,
    left: Condvar,
}

/// A place inside; given back when dropped.
#[derive(Debug)]
pub struct Pass<'a>(&'a Gate);

impl Gate {
    /// A gate with so many places.
    pub const fn new(places: u32) -> Self {
        Self { free: Mutex::new(places), left: Condvar::new() }
    }

    /// Waits for a place. Calls are bounded by fuel, so that one always comes free.
    pub fn enter(&self) -> Pass<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.left.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Pass(self)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.left.notify_one();
    }
}
