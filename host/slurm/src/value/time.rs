//! Time limits: `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`, and the words for none.

use ephor_model::{Span, limits};

/// Reads a time limit and rounds it up to a whole minute; `Some(None)`: no limit. `None`: it is not one.
#[allow(clippy::option_option, reason = "the outer says whether it is a time limit, the inner whether there is one")]
pub fn parse(text: &str) -> Option<Option<Span>> {
    if ["-1", "infinite", "unlimited"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return Some(None);
    }
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (Some(number(days)?), clock),
        None => (None, text),
    };
    let parts: Vec<i64> = match (days, clock) {
        // Nothing after the days is no hours.
        (Some(_), "") => vec![0],
        _ => clock.split(':').map(number).collect::<Option<_>>()?,
    };
    let (h, m, s) = match (days.is_some(), parts.as_slice()) {
        (true, [h]) => (*h, 0, 0),
        (true, [h, m]) => (*h, *m, 0),
        (false, [m]) => (0, *m, 0),
        (false, [m, s]) => (0, *m, *s),
        (_, [h, m, s]) => (*h, *m, *s),
        _ => return None,
    };
    let seconds = days.unwrap_or(0).saturating_mul(86_400).saturating_add(h.saturating_mul(3600));
    let seconds = seconds.saturating_add(m.saturating_mul(60)).saturating_add(s);
    let ms = seconds.saturating_add(59) / 60 * 60_000;
    // Longer than anything here: as good as none.
    Some(Some(Span(ms)).filter(|span| (1..limits::TIME_LIMIT_MS).contains(&span.0)))
}

fn number(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.len() < 16 && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// Writes a time limit as `scontrol` and `sacct` do: `[D-]HH:MM:SS`, or `UNLIMITED`.
pub fn long(limit: Option<Span>) -> String {
    match limit {
        Some(span) if span.0 < limits::TIME_LIMIT_MS => span.to_clock(),
        _ => "UNLIMITED".into(),
    }
}

/// Writes a length of time as `squeue` does: `[D-][H:]MM:SS`, without the parts that are zero in front.
pub fn short(span: Span) -> String {
    let s = span.0.max(0) / 1000;
    let (days, h, m, s) = (s / 86_400, s / 3600 % 24, s / 60 % 60, s % 60);
    match (days, h) {
        (0, 0) => format!("{m}:{s:02}"),
        (0, _) => format!("{h}:{m:02}:{s:02}"),
        _ => format!("{days}-{h:02}:{m:02}:{s:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_as_slurm_reads_them() {
        for (text, shown) in [
            ("1", "00:01:00"),
            ("3:00", "00:03:00"),
            ("0:30", "00:01:00"),
            ("90:61", "01:32:00"),
            ("100:00:00", "4-04:00:00"),
            ("1-02:03:04", "1-02:04:00"),
            ("1-25", "2-01:00:00"),
            ("1-", "1-00:00:00"),
            ("0-00:20", "00:20:00"),
            ("0", "UNLIMITED"),
            ("0:0", "UNLIMITED"),
            ("-1", "UNLIMITED"),
            ("Unlimited", "UNLIMITED"),
            ("5000000000", "UNLIMITED"),
        ] {
            assert_eq!(parse(text).map(long).as_deref(), Some(shown), "{text}");
        }
        for bad in ["", "2h", "1.5", "1:2:3:4", "1-2:3:4:5", "5:", ":5", " 5", "+5", "-5", "99999999999999999999"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn lengths_as_squeue_writes_them() {
        for (seconds, shown) in [(0, "0:00"), (75, "1:15"), (3600, "1:00:00"), (90_061, "1-01:01:01"), (-5, "0:00")] {
            assert_eq!(short(Span::seconds(seconds)), shown);
        }
    }
}
