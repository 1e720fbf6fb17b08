//! Points in time and spans, in whole milliseconds, and the forms in which people write them.

use crate::limits;
use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};

/// Milliseconds since 1970-01-01 UTC (in a simulation: since the start of the trace).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(pub i64);

/// A length of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span(pub i64);

impl Timestamp {
    /// Later than everything.
    pub const NEVER: Self = Self(i64::MAX);
}

impl Span {
    /// A span of whole seconds.
    pub const fn seconds(n: i64) -> Self {
        Self(n.saturating_mul(1000))
    }
    /// A span of whole minutes.
    pub const fn minutes(n: i64) -> Self {
        Self(n.saturating_mul(60_000))
    }
}

impl Add<Span> for Timestamp {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Sub for Timestamp {
    type Output = Span;
    fn sub(self, other: Self) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

/// Why a text is not a time limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a time limit; write minutes, minutes:seconds, hours:minutes:seconds, days-hours, \
     days-hours:minutes or days-hours:minutes:seconds, up to 100 years"
)]
pub struct SpanError(pub String);

impl Span {
    /// Reads a time limit in Slurm's forms. `infinite` and `unlimited` are `Ok(None)`.
    ///
    /// # Errors
    /// Every other text, and limits above [`limits::TIME_LIMIT_MS`].
    pub fn parse_limit(text: &str) -> Result<Option<Self>, SpanError> {
        let fail = || SpanError(text.to_owned());
        let trimmed = text.trim();
        if trimmed.eq_ignore_ascii_case("infinite") || trimmed.eq_ignore_ascii_case("unlimited") || trimmed == "-1" {
            return Ok(None);
        }
        let number = |s: &str| -> Result<i64, SpanError> {
            if s.is_empty() || !s.bytes().all(|b| b.is_ascii_digit()) {
                return Err(fail());
            }
            s.parse().map_err(|_| fail())
        };
        let (days, rest) = match trimmed.split_once('-') {
            Some((days, rest)) => (Some(number(days)?), rest),
            None => (None, trimmed),
        };
        let parts: Vec<i64> = rest.split(':').map(number).collect::<Result<_, _>>()?;
        let (h, m, s) = match (days.is_some(), parts.as_slice()) {
            (true, [h]) => (*h, 0, 0),
            (true, [h, m]) => (*h, *m, 0),
            (false, [m]) => (0, *m, 0),
            (false, [m, s]) => (0, *m, *s),
            (_, [h, m, s]) => (*h, *m, *s),
            _ => return Err(fail()),
        };
        let seconds = days
            .unwrap_or(0)
            .checked_mul(86_400)
            .and_then(|d| d.checked_add(h.checked_mul(3600)?))
            .and_then(|t| t.checked_add(m.checked_mul(60)?))
            .and_then(|t| t.checked_add(s))
            .ok_or_else(fail)?;
        match seconds.checked_mul(1000) {
            Some(ms) if ms <= limits::TIME_LIMIT_MS => Ok(Some(Self(ms))),
            _ => Err(fail()),
        }
    }

    /// Writes `[days-]HH:MM:SS`, rounding up to whole seconds.
    pub fn to_clock(self) -> String {
        let s = self.0.max(0).saturating_add(999) / 1000;
        let (days, h, m, s) = (s / 86_400, s / 3600 % 24, s / 60 % 60, s % 60);
        match days {
            0 => format!("{h:02}:{m:02}:{s:02}"),
            _ => format!("{days}-{h:02}:{m:02}:{s:02}"),
        }
    }
}

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar.
/// Algorithm: Howard Hinnant, "chrono-compatible low-level date algorithms", `days_from_civil`.
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let shifted = i64::from((month + 9) % 12);
    let doy = (153 * shifted + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468
}

/// The date that many days after 1970-01-01; the inverse of [`days_from_civil`], from the same source.
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = (doy - (153 * mp + 2) / 5 + 1) as u32;
    let month = if mp < 10 { mp + 3 } else { mp - 9 } as u32;
    (yoe + era * 400 + i64::from(month <= 2), month, day)
}

impl Timestamp {
    /// Writes `YYYY-MM-DDTHH:MM:SS` at that offset from UTC.
    pub fn to_iso(self, offset: Span) -> String {
        let local = self.0.saturating_add(offset.0).div_euclid(1000);
        let (y, mo, d) = civil_from_days(local.div_euclid(86_400));
        let s = local.rem_euclid(86_400);
        format!("{y:04}-{mo:02}-{d:02}T{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
    }
}

/// Why a text is not a point in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a time; write now, now+1hour, 16:30, tomorrow, 2026-12-01 or 2026-12-01T16:30[:00]")]
pub struct WhenError(pub String);

impl Timestamp {
    /// Reads a begin time in the forms that Slurm users type, relative to `now` and at the caller's offset from UTC.
    ///
    /// # Errors
    /// Texts in no known form, and dates that do not exist.
    pub fn parse_when(text: &str, now: Self, offset: Span) -> Result<Self, WhenError> {
        let fail = || WhenError(text.to_owned());
        let t = text.trim();
        let day_ms = 86_400_000;
        let local_now = now.0.saturating_add(offset.0);
        let midnight = local_now.div_euclid(day_ms) * day_ms;
        let from_local = |ms: i64| Self(ms.saturating_sub(offset.0));
        if let Some(rest) = t.strip_prefix("now") {
            if rest.is_empty() {
                return Ok(now);
            }
            let rest = rest.strip_prefix('+').ok_or_else(fail)?;
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let n: i64 = rest[..digits].parse().map_err(|_| fail())?;
            let unit = match rest[digits..].trim_end_matches('s') {
                "" | "second" | "sec" => 1000,
                "minute" | "min" => 60_000,
                "hour" => 3_600_000,
                "day" => day_ms,
                "week" => 7 * day_ms,
                _ => return Err(fail()),
            };
            return n.checked_mul(unit).map(|ms| now + Span(ms)).ok_or_else(fail);
        }
        match t {
            "today" => return Ok(from_local(midnight)),
            "tomorrow" => return Ok(from_local(midnight + day_ms)),
            "midnight" => return Ok(from_local(midnight + day_ms)),
            "noon" => {
                let noon = midnight + day_ms / 2;
                return Ok(from_local(if noon > local_now { noon } else { noon + day_ms }));
            }
            _ => {}
        }
        if let Some((date, clock)) = t.split_once('T') {
            return Ok(from_local(parse_date(date).ok_or_else(fail)? + parse_clock(clock).ok_or_else(fail)?));
        }
        if let Some(date) = parse_date(t) {
            return Ok(from_local(date));
        }
        let clock = parse_clock(t).ok_or_else(fail)?;
        let today = midnight + clock;
        Ok(from_local(if today > local_now { today } else { today + day_ms }))
    }
}

fn parse_date(text: &str) -> Option<i64> {
    let parts: Vec<&str> = text.split('-').collect();
    let [y, m, d] = parts.as_slice() else { return None };
    if y.len() != 4 {
        return None;
    }
    let (y, m, d): (i64, u32, u32) = (y.parse().ok()?, m.parse().ok()?, d.parse().ok()?);
    let days = days_from_civil(y, m, d);
    (civil_from_days(days) == (y, m, d)).then_some(days * 86_400_000)
}

fn parse_clock(text: &str) -> Option<i64> {
    let parts: Vec<i64> = text.split(':').map(|p| p.parse().ok()).collect::<Option<_>>()?;
    let (h, m, s) = match parts.as_slice() {
        [h, m] => (*h, *m, 0),
        [h, m, s] => (*h, *m, *s),
        _ => return None,
    };
    ((0..24).contains(&h) && (0..60).contains(&m) && (0..60).contains(&s)).then_some(((h * 60 + m) * 60 + s) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_in_every_form() {
        for (text, ms) in [
            ("90", 5_400_000),
            ("1:30", 90_000),
            ("2:00:05", 7_205_000),
            ("1-0", 86_400_000),
            ("1-02:30", 95_400_000),
            ("1-00:00:01", 86_401_000),
        ] {
            assert_eq!(Span::parse_limit(text), Ok(Some(Span(ms))), "{text}");
        }
        assert_eq!(Span::parse_limit("UNLIMITED"), Ok(None));
        for bad in ["", "x", "1:2:3:4", "1-", "-5", "99999999999999999999", "1.5"] {
            assert!(Span::parse_limit(bad).is_err(), "{bad}");
        }
        assert_eq!(Span(95_400_000).to_clock(), "1-02:30:00");
    }

    #[test]
    fn points_in_time_in_every_form() {
        let now = Timestamp(days_from_civil(2026, 11, 30) * 86_400_000 + 12 * 3_600_000);
        let hour = Span::minutes(60);
        let at = |text: &str| Timestamp::parse_when(text, now, hour).map(|t| t.to_iso(hour));
        assert_eq!(at("now+2hours").unwrap(), "2026-11-30T15:00:00");
        assert_eq!(at("14:00").unwrap(), "2026-11-30T14:00:00");
        assert_eq!(at("12:00").unwrap(), "2026-12-01T12:00:00");
        assert_eq!(at("2027-02-28T01:02").unwrap(), "2027-02-28T01:02:00");
        assert!(at("2027-02-29").is_err());
        assert!(at("soon").is_err());
    }
}
