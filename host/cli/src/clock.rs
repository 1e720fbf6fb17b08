//! The wall clock and the caller's time zone.
#![allow(unsafe_code, reason = "the C library's localtime_r is the only way to the time zone")]

use ephor_model::{Span, Timestamp};
use std::time::{SystemTime, UNIX_EPOCH};

/// The time now; before 1970 it is 1970.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// How far local time is ahead of UTC at that time.
pub fn offset(at: Timestamp) -> Span {
    let seconds: libc::time_t = at.0.div_euclid(1000);
    // SAFETY: all-zero bytes are a valid `tm`: numbers, and a null pointer for the name of the zone.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of this frame, and the second is not shared.
    let filled = unsafe { libc::localtime_r(&raw const seconds, &raw mut parts) };
    if filled.is_null() { Span(0) } else { Span::seconds(parts.tm_gmtoff) }
}

/// A time as people here read it.
pub fn show(ms: i64) -> String {
    let at = Timestamp(ms);
    at.to_iso(offset(at))
}

/// A time that may be missing.
pub fn show_optional(ms: Option<i64>) -> String {
    ms.map(show).unwrap_or_default()
}

/// Reads a time that lies behind: what begin times look like, `now-2days`, `yesterday`; a bare clock time is the last
/// one.
///
/// # Errors
/// Every other text.
pub fn parse_past(text: &str) -> Result<i64, String> {
    let now = now();
    past(text, now, offset(now)).map(|at| at.0)
}

fn past(text: &str, now: Timestamp, offset: Span) -> Result<Timestamp, String> {
    let read = |t: &str| Timestamp::parse_when(t, now, offset);
    let day = Span(86_400_000);
    let fail = |_| format!("'{text}' is not a time; write now-2days, 16:30, yesterday, 2026-12-01 or 2026-12-01T16:30");
    if let Some(back) = text.strip_prefix("now-") {
        let ahead = read(&format!("now+{back}")).map_err(fail)?;
        return Ok(Timestamp(now.0.saturating_sub((ahead - now).0)));
    }
    if text == "yesterday" {
        return read("today").map(|t| Timestamp(t.0 - day.0)).map_err(fail);
    }
    let at = read(text).map_err(fail)?;
    let clock_only = text.contains(':') && !text.contains('-') && at > now;
    Ok(if clock_only { Timestamp(at.0 - day.0) } else { at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ephor_model::time::days_from_civil;

    #[test]
    fn times_behind() {
        let now = Timestamp(days_from_civil(2026, 11, 30) * 86_400_000 + 12 * 3_600_000);
        let at = |text: &str| past(text, now, Span(0)).map(|t| t.to_iso(Span(0)));
        assert_eq!(at("now-2hours").unwrap(), "2026-11-30T10:00:00");
        assert_eq!(at("yesterday").unwrap(), "2026-11-29T00:00:00");
        assert_eq!(at("13:00").unwrap(), "2026-11-29T13:00:00");
        assert_eq!(at("11:00").unwrap(), "2026-11-30T11:00:00");
        assert_eq!(at("2027-01-01").unwrap(), "2027-01-01T00:00:00");
        assert!(at("now-").is_err());
    }
}
