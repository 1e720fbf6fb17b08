//! Turns what went wrong in a call into a fault that a person can use.

use crate::bounds;
use crate::call::Base;
use ephor_core::{Fault, FaultKind};
use std::any::Any;
use wasmtime::{Error, Trap, WasmBacktrace};

/// What went wrong, before it has a name.
pub enum Failure {
    /// The instance did not start.
    Start(Error),
    /// The call trapped.
    Call(Error),
    /// What it returned makes no sense.
    Value(String),
    /// The host panicked.
    Panic(Box<dyn Any + Send>),
}

/// Names a failure. `budget` is the fuel that the call had.
pub fn fault_of(base: &Base, failure: Failure, budget: u64) -> Fault {
    let (kind, mut message) = match failure {
        Failure::Start(error) => (FaultKind::Start, format!("it does not start: {}", cause(base, &error, budget).1)),
        Failure::Call(error) => cause(base, &error, budget),
        Failure::Value(text) => (FaultKind::BadValue, text),
        Failure::Panic(panic) => (FaultKind::Trap, format!("the host panicked while it ran: {}", panic_text(&*panic))),
    };
    if let Some(line) = &base.log.last_error {
        message.push_str(&format!("; its last error in the log: {line}"));
    }
    truncate(&mut message, bounds::FAULT_BYTES);
    Fault { kind, policy: base.about.label.clone(), message }
}

fn cause(base: &Base, error: &Error, budget: u64) -> (FaultKind, String) {
    let (kind, what) = if let Some((kind, text)) = base.verdict() {
        (kind, text.to_owned())
    } else if let Some(trap) = error.downcast_ref::<Trap>() {
        match trap {
            Trap::OutOfFuel => (FaultKind::Fuel, format!("it used up the {budget} units of fuel of the call")),
            Trap::StackOverflow => (FaultKind::Trap, "its call stack is exhausted: it recurses too deeply".to_owned()),
            Trap::UnreachableCodeReached => {
                (FaultKind::Trap, "it gave up (a panic, or an unreachable instruction)".to_owned())
            }
            Trap::MemoryOutOfBounds => (
                FaultKind::Trap,
                "it reached outside its memory (a wrong pointer, or its own stack ran out)".to_owned(),
            ),
            other => (FaultKind::Trap, other.to_string()),
        }
    } else {
        let root = error.root_cause().to_string();
        // wasmtime keeps the type of this error to itself; a test holds the text.
        if root.contains("allocated for hostcalls") {
            let limit = base.about.limits.output_bytes;
            (FaultKind::Output, format!("it handed over more than {limit} bytes at once"))
        } else {
            (FaultKind::Trap, root)
        }
    };
    match frames(error) {
        Some(frames) => (kind, format!("{what}; in {frames}")),
        None => (kind, what),
    }
}

/// The guest's own frames, innermost first.
fn frames(error: &Error) -> Option<String> {
    let backtrace = error.downcast_ref::<WasmBacktrace>()?;
    let mut names: Vec<String> = Vec::new();
    for frame in backtrace.frames() {
        let name = match frame.func_name() {
            Some(name) => format!("{:#}", rustc_demangle::demangle(name)),
            None => format!("function {}", frame.func_index()),
        };
        if is_panic_machinery(&name) || names.last() == Some(&name) {
            continue;
        }
        let mut name = name;
        truncate(&mut name, 120);
        names.push(name);
        if names.len() == bounds::FRAMES {
            break;
        }
    }
    (!names.is_empty()).then(|| names.join(" < "))
}

fn is_panic_machinery(name: &str) -> bool {
    const PREFIXES: [&str; 6] =
        ["std::panicking::", "core::panicking::", "__rust", "_rust", "std::sys::backtrace::", "std::process::abort"];
    PREFIXES.iter().any(|p| name.starts_with(p)) || name.contains("rust_begin_unwind") || name == "rust_panic"
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}

/// Cuts a text to at most so many bytes, at a character.
pub fn truncate(text: &mut String, bytes: usize) {
    if text.len() > bytes {
        let end = (0..=bytes.saturating_sub(3)).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
}
