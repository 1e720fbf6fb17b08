//! Values of a partition: words for yes and no, counts that may be unlimited.

/// Reads yes or no in every way that Slurm's files have.
pub(super) fn yes_or_no(text: &str) -> Result<bool, &'static str> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "up" | "1" => Ok(true),
        "no" | "false" | "down" | "0" => Ok(false),
        _ => Err("write YES or NO"),
    }
}

/// Whether a word means that there is no bound.
pub(super) fn unlimited(text: &str) -> bool {
    ["unlimited", "infinite", "-1"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Reads a whole number.
pub(super) fn count(text: &str) -> Result<u32, &'static str> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten().ok_or("write a whole number")
}
