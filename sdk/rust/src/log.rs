//! Lines for the controller's log. In a native test they go to standard error.

#[cfg(target_arch = "wasm32")]
use crate::bindings::host::ephor::host::log as host;

/// How much a line matters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Level {
    /// The policy cannot do its work.
    Error,
    /// Something is not as it should be.
    Warn,
    /// What an administrator wants to know.
    Info,
    /// What the author of the policy wants to know.
    Debug,
}

/// Writes one line. A call may write 64 lines and 16 KiB; the host drops and counts what goes beyond.
pub fn write(level: Level, text: &str) {
    #[cfg(target_arch = "wasm32")]
    host::write(
        match level {
            Level::Error => host::Level::Error,
            Level::Warn => host::Level::Warn,
            Level::Info => host::Level::Info,
            Level::Debug => host::Level::Debug,
        },
        text,
    );
    #[cfg(not(target_arch = "wasm32"))]
    eprintln!("{level:?}: {text}");
}

/// Writes one line at level error.
pub fn error(text: &str) {
    write(Level::Error, text);
}

/// Writes one line at level warn.
pub fn warn(text: &str) {
    write(Level::Warn, text);
}

/// Writes one line at level info.
pub fn info(text: &str) {
    write(Level::Info, text);
}

/// Writes one line at level debug.
pub fn debug(text: &str) {
    write(Level::Debug, text);
}
