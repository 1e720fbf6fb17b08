//! Points in time as `--begin` takes them: `now+2hours`, `16:30`, `teatime`, `12/31/30`, `2030-01-20T12:34:00`.

use ephor_model::{Span, Timestamp};

/// Reads a point in time at the caller's offset from UTC.
///
/// # Errors
/// Every other text: Slurm's line about where reading it ended.
pub fn parse(text: &str, now: Timestamp, offset: Span) -> Result<Timestamp, String> {
    let named = match text.to_ascii_lowercase().as_str() {
        "teatime" => Some("16:00"),
        "fika" => Some("15:00"),
        "elevenses" => Some("11:00"),
        _ => None,
    };
    let other = american(text, now, offset).or_else(|| dashed(text));
    let plain = named.or(other.as_deref()).unwrap_or(text);
    Timestamp::parse_when(plain, now, offset)
        .map_err(|_| format!("Invalid time specification (pos={}): {text}", understood(text)))
}

/// `MM/DD[/YY]` or `MMDDYY`, with a time after it or not, as an ISO date.
fn american(text: &str, now: Timestamp, offset: Span) -> Option<String> {
    let (date, clock) = text.split_once(['-', 'T']).map_or((text, None), |(date, clock)| (date, Some(clock)));
    let parts: Vec<u32> = match (date.contains(['/', '.']), date.len()) {
        (true, _) => date.split(['/', '.']).map(|part| part.parse().ok()).collect::<Option<_>>()?,
        (false, 6) if date.bytes().all(|b| b.is_ascii_digit()) => {
            [0, 2, 4].iter().map(|at| date[*at..at + 2].parse().ok()).collect::<Option<_>>()?
        }
        _ => return None,
    };
    let this_year = now.to_iso(offset)[..4].parse().ok()?;
    let (month, day, year) = match parts.as_slice() {
        [month, day] => (month, day, this_year),
        [month, day, year] if *year < 100 => (month, day, 2000 + year),
        [month, day, year] => (month, day, *year),
        _ => return None,
    };
    let clock = clock.map(|clock| format!("T{clock}")).unwrap_or_default();
    Some(format!("{year:04}-{month:02}-{day:02}{clock}"))
}

/// `YYYY-MM-DD-HH:MM[:SS]`, which some programs write, with a `T` before the clock.
fn dashed(text: &str) -> Option<String> {
    let (date, clock) = text.split_at_checked(10)?;
    let clock = clock.strip_prefix('-').filter(|clock| clock.contains(':'))?;
    Some(format!("{date}T{clock}"))
}

/// How many bytes could be understood: after `now` its number and unit, else none.
fn understood(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("now+") else { return 0 };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let units = ["seconds", "second", "minutes", "minute", "hours", "hour", "days", "day", "weeks", "week"];
    let unit = units.iter().find(|unit| rest[digits..].starts_with(**unit)).map_or(0, |unit| unit.len());
    4 + digits + unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use ephor_model::time::days_from_civil;

    #[test]
    fn every_form_is_read() {
        let now = Timestamp(days_from_civil(2026, 11, 30) * 86_400_000 + 23 * 3_600_000);
        let at = |text: &str| parse(text, now, Span(0)).map(|t| t.to_iso(Span(0)));
        for (text, iso) in [
            ("now+60", "2026-11-30T23:01:00"),
            ("now+1hour", "2026-12-01T00:00:00"),
            ("16:00", "2026-12-01T16:00:00"),
            ("teatime", "2026-12-01T16:00:00"),
            ("noon", "2026-12-01T12:00:00"),
            ("tomorrow", "2026-12-01T00:00:00"),
            ("12/31/30", "2030-12-31T00:00:00"),
            ("12/31", "2026-12-31T00:00:00"),
            ("123130", "2030-12-31T00:00:00"),
            ("12/31/30-08:15", "2030-12-31T08:15:00"),
            ("1970-01-01-00:00:01", "1970-01-01T00:00:01"),
            ("2030-01-20T12:34:00", "2030-01-20T12:34:00"),
        ] {
            assert_eq!(at(text).as_deref(), Ok(iso), "{text}");
        }
        assert_eq!(at("zzz").unwrap_err(), "Invalid time specification (pos=0): zzz");
        assert_eq!(at("now+1hourx").unwrap_err(), "Invalid time specification (pos=9): now+1hourx");
        assert!(at("13/31/30").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[now+0-9/:T.é-]{0,20}") {
            let _ = parse(&text, Timestamp(0), Span(0));
        }
    }
}
