//! What lists are shown against, and times in the reader's format.

use ephor_model::time::{civil_from_days, days_from_civil};
use ephor_model::{Span, Timestamp};

/// What a list is shown against.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The time now.
    pub now: Timestamp,
    /// How far the reader's clock is ahead of UTC.
    pub offset: Span,
    /// How times are written.
    pub times: TimeFormat,
}

/// What `SLURM_TIME_FORMAT` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeFormat {
    /// `2026-11-30T23:04:09`.
    Iso,
    /// The clock alone for today, a day in words near it.
    Relative,
    /// As `strftime` writes it.
    Custom(String),
}

impl TimeFormat {
    /// Reads the variable.
    pub fn read(variable: Option<&str>) -> Self {
        match variable {
            None | Some("" | "standard") => Self::Iso,
            Some("relative") => Self::Relative,
            Some(custom) => Self::Custom(custom.to_owned()),
        }
    }
}

const DAY: i64 = 86_400_000;
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEK: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

impl Shown {
    /// A time that may be missing.
    pub fn time(&self, at: Option<Timestamp>, missing: &str) -> String {
        at.map_or_else(|| missing.to_owned(), |at| self.at(at))
    }

    /// A time.
    pub fn at(&self, at: Timestamp) -> String {
        let iso = at.to_iso(self.offset);
        match &self.times {
            TimeFormat::Iso => iso,
            TimeFormat::Relative => self.relative(at, &iso),
            TimeFormat::Custom(format) => self.custom(at, format),
        }
    }

    /// `Mon Nov 30 23:14:36 2026`: above long lists.
    pub fn date_line(&self) -> String {
        self.custom(self.now, "%a %b %e %T %Y")
    }

    fn day(&self, at: Timestamp) -> i64 {
        at.0.saturating_add(self.offset.0).div_euclid(DAY)
    }

    fn relative(&self, at: Timestamp, iso: &str) -> String {
        let clock = &iso[iso.len() - 8..];
        let minutes = &clock[..5];
        match self.day(at) - self.day(self.now) {
            0 => clock.to_owned(),
            -1 => format!("Ystday {minutes}"),
            1 => format!("Tomorr {minutes}"),
            -6..=6 => format!("{} {minutes}", self.custom(at, "%a")),
            -180..=180 => self.custom(at, "%-d %b %H:%M"),
            _ => self.custom(at, "%-d %b %Y"),
        }
    }

    /// The parts of `strftime` that do not hang on a language.
    fn custom(&self, at: Timestamp, format: &str) -> String {
        let days = self.day(at);
        let (year, month, day) = civil_from_days(days);
        let s = at.0.saturating_add(self.offset.0).div_euclid(1000).rem_euclid(86_400);
        let (hour, minute, second) = (s / 3600, s / 60 % 60, s % 60);
        let weekday = days.rem_euclid(7);
        // The first of January was day 1.
        let of_year = days - days_from_civil(year, 1, 1) + 1;
        let month_name = MONTHS[(month as usize).clamp(1, 12) - 1];
        let mut out = String::new();
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let piece = match chars.next() {
                Some('Y') => format!("{year}"),
                Some('y') => format!("{:02}", year.rem_euclid(100)),
                Some('m') => format!("{month:02}"),
                Some('d') => format!("{day:02}"),
                Some('e') => format!("{day:2}"),
                Some('-') => {
                    chars.next();
                    format!("{day}")
                }
                Some('H') => format!("{hour:02}"),
                Some('M') => format!("{minute:02}"),
                Some('S') => format!("{second:02}"),
                Some('s') => format!("{}", at.0.div_euclid(1000)),
                Some('F') => format!("{year:04}-{month:02}-{day:02}"),
                Some('T') => format!("{hour:02}:{minute:02}:{second:02}"),
                Some('R') => format!("{hour:02}:{minute:02}"),
                Some('D') => format!("{month:02}/{day:02}/{:02}", year.rem_euclid(100)),
                Some('j') => format!("{of_year:03}"),
                Some('a') => WEEK[weekday as usize].to_owned(),
                Some('b' | 'h') => month_name.to_owned(),
                Some('%') => "%".to_owned(),
                Some('n') => "\n".to_owned(),
                Some('t') => "\t".to_owned(),
                Some(other) => format!("%{other}"),
                None => "%".to_owned(),
            };
            out.push_str(&piece);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_every_format() {
        let now = Timestamp(1_796_079_849_000);
        let at = |format: &str, ahead: i64| {
            let shown = Shown { now, offset: Span(0), times: TimeFormat::read(Some(format)) };
            shown.at(now + Span(ahead * 3_600_000))
        };
        assert_eq!(at("standard", 0), "2026-11-30T23:04:09");
        assert_eq!(at("relative", 0), "23:04:09");
        assert_eq!([at("relative", 1), at("relative", -24)], ["Tomorr 00:04", "Ystday 23:04"]);
        assert_eq!([at("relative", 48), at("relative", 240)], ["Wed 23:04", "10 Dec 23:04"]);
        assert_eq!(at("relative", 24 * 400), "4 Jan 2028");
        assert_eq!(at("%s", 0), "1796079849");
        assert_eq!(at("%d/%m/%y %j %T %Q%%%", 0), "30/11/26 334 23:04:09 %Q%%");
        let shown = Shown { now, offset: Span(0), times: TimeFormat::Iso };
        assert_eq!(shown.date_line(), "Mon Nov 30 23:04:09 2026");
    }
}
