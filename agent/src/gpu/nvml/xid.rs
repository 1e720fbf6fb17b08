//! NVIDIA's numbers for errors, in words, and which of them mean that a GPU can no longer be relied on.

/// Errors after which a GPU is taken out of service, where the configuration does not name others. Not among them: those
/// that a faulty program can cause by itself (such as 13, 31, 43, 45), and errors of memory that were contained (94).
pub const FATAL: [u64; 13] = [48, 61, 62, 64, 74, 79, 95, 110, 119, 120, 140, 143, 154];

/// An error in words.
pub fn words(number: u64) -> &'static str {
    match number {
        13 => "a program did something that the graphics engine refused",
        31 => "a program used memory that it does not have",
        43 => "a program's work was stopped",
        45 => "a program's work was cleared away",
        48 => "a memory error could not be corrected",
        61 | 62 => "an internal controller stopped",
        63 => "a row of memory was, or will be, replaced",
        64 => "a row of memory could not be replaced",
        74 => "an NVLink failed",
        79 => "the GPU fell off the bus",
        92 => "many memory errors were corrected",
        94 => "an uncorrectable memory error was contained",
        95 => "an uncorrectable memory error was not contained",
        110 => "a security fault",
        119 | 120 => "the GPU's system processor does not answer",
        140 => "a memory error was not recovered from",
        143 => "the GPU could not be initialised",
        154 => "the driver asks for a reset of the GPU or a reboot",
        _ => "see NVIDIA's list of XID errors",
    }
}
