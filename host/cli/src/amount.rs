//! Amounts of resources as people read and write them: cores and GPUs as decimals, memory with a suffix.

use ephor_model::limits;
use ephor_model::submit::parse_mib;
use ephor_proto::v1::Amount;

/// In what a resource is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Counted in thousandths, written in whole ones.
    Thousandths,
    /// Counted in MiB.
    Mib,
    /// Counted and written as it is.
    Plain,
}

fn unit(resource: &str) -> Unit {
    match resource {
        "cpu" | "gpu" => Unit::Thousandths,
        "mem" | "gpu.mem" => Unit::Mib,
        typed if typed.starts_with("gpu:") => Unit::Thousandths,
        _ => Unit::Plain,
    }
}

/// Reads an amount: `2.5` cores, `4G` of memory.
///
/// # Errors
/// Texts that are no such amount, with what would be.
pub fn parse(resource: &str, text: &str) -> Result<i64, String> {
    let value = match unit(resource) {
        Unit::Thousandths => thousandths(text).ok_or_else(|| {
            format!("'{text}' of {resource} is not a number; write one like 8 or 2.5, three places at most")
        }),
        Unit::Mib => parse_mib(text).map(|mib| i64::try_from(mib).unwrap_or(i64::MAX)),
        Unit::Plain => {
            digits(text).ok_or_else(|| format!("'{text}' of {resource} is not a whole number of at least 0"))
        }
    }?;
    match value {
        0..=limits::AMOUNT => Ok(value),
        _ => Err(format!("'{text}' of {resource} is more than can be counted")),
    }
}

/// Writes an amount so that [`parse`] reads it back.
pub fn show(resource: &str, value: i64) -> String {
    match unit(resource) {
        Unit::Thousandths if value % 1000 == 0 => (value / 1000).to_string(),
        Unit::Thousandths => {
            let text = format!("{}.{:03}", value / 1000, value % 1000);
            text.trim_end_matches('0').to_owned()
        }
        Unit::Mib if value > 0 && value % 1024 == 0 => format!("{}G", value / 1024),
        Unit::Mib if value == 0 => "0".into(),
        Unit::Mib => format!("{value}M"),
        Unit::Plain => value.to_string(),
    }
}

/// One amount of a list; 0 where it is not named.
pub fn of(amounts: &[Amount], resource: &str) -> i64 {
    amounts.iter().find(|a| a.resource == resource).map_or(0, |a| a.value)
}

/// A list such as `cpu=2.5,mem=4G`.
pub fn show_list(amounts: &[Amount]) -> String {
    let parts: Vec<String> = amounts.iter().map(|a| format!("{}={}", a.resource, show(&a.resource, a.value))).collect();
    parts.join(",")
}

/// Reads `RESOURCE=AMOUNT,...`; the word `none` is an empty list.
///
/// # Errors
/// As [`parse`], and entries that are not `RESOURCE=AMOUNT`.
pub fn parse_list(text: &str) -> Result<Vec<Amount>, String> {
    if text == "none" {
        return Ok(Vec::new());
    }
    text.split(',')
        .map(|part| match part.split_once('=') {
            Some((resource, value)) if !resource.is_empty() => {
                Ok(Amount { resource: resource.into(), value: parse(resource, value)? })
            }
            _ => Err(format!("'{part}' is not RESOURCE=AMOUNT, such as cpu=64 or mem=4G")),
        })
        .collect()
}

fn digits(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// Reads a decimal number with up to three places as thousandths, without going through a float.
fn thousandths(text: &str) -> Option<i64> {
    let (whole, places) = match text.split_once('.') {
        Some((whole, places)) if (1..=3).contains(&places.len()) => (whole, places),
        Some(_) => return None,
        None => (text, ""),
    };
    let places = digits(&format!("{places:0<3}"))?;
    digits(whole)?.checked_mul(1000)?.checked_add(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for (resource, text, value) in [
            ("cpu", "8", 8000),
            ("cpu", "0.125", 125),
            ("gpu:h100", "2.5", 2500),
            ("mem", "4G", 4096),
            ("mem", "100M", 100),
            ("gpu.mem", "0", 0),
            ("licence", "7", 7),
        ] {
            assert_eq!(parse(resource, text), Ok(value));
            assert_eq!(show(resource, value), text);
        }
        for (resource, bad) in
            [("cpu", "1.2345"), ("cpu", "1."), ("cpu", "-1"), ("mem", "1.5G"), ("x", "2.5"), ("cpu", "")]
        {
            assert!(parse(resource, bad).is_err(), "{resource} {bad}");
        }
        assert!(parse_list("cpu").is_err());
    }
}
