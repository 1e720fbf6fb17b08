//! Holds the one unsafe call of this crate: turning stored machine code into something that runs.
#![allow(
    unsafe_code,
    reason = "wasmtime cannot check that stored code is what it compiled; a MAC under our own key does"
)]

use wasmtime::Engine;
use wasmtime::component::Component;

/// Makes a component of code whose MAC was found right; `None` where this engine did not make it.
pub fn deserialize(engine: &Engine, code: &[u8]) -> Option<Component> {
    // SAFETY: the bytes must be what `Component::serialize` gave, unchanged. The caller has checked an HMAC over exactly
    // these bytes, under a key that only this user can read and with which nothing but the output of `serialize` is
    // ever sealed; they were copied to memory first, so that nobody changes them between check and use. wasmtime
    // itself refuses code of another version, target or configuration.
    unsafe { Component::deserialize(engine, code) }.ok()
}
