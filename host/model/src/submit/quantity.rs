//! Counts and amounts of memory as people write them.

use crate::limits;

/// Reads a count of at least `least`. A `k` or `m` behind it multiplies by 1024 or 1024², as in Slurm.
pub fn parse_count(text: &str, least: u32) -> Result<u32, String> {
    let t = text.trim();
    let (digits, factor) = match t.as_bytes().last() {
        Some(b'k' | b'K') => (&t[..t.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&t[..t.len() - 1], 1 << 20),
        _ => (t, 1),
    };
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let number = plain.then(|| digits.parse::<u32>().ok()?.checked_mul(factor)).flatten();
    number.filter(|n| *n >= least).ok_or_else(|| format!("'{text}' is not a whole number of at least {least}"))
}

/// Reads a number with at most three decimals as thousandths.
pub fn parse_milli(text: &str) -> Result<u32, String> {
    let fail = || format!("'{text}' is not a number with at most three decimals");
    let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
    let plain = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(part) || part.len() > 3 {
        return Err(fail());
    }
    let milli: u64 = format!("{whole}{part:0<3}").parse().map_err(|_| fail())?;
    u32::try_from(milli).map_err(|_| fail())
}

/// Reads an amount of memory in MiB: a whole number, optionally with K, M, G or T and a B behind it, in any case.
/// Without a suffix the unit is MiB; a part of a MiB counts as a whole one.
///
/// # Errors
/// Every other text, fractions too, and amounts above [`limits::AMOUNT`].
pub fn parse_mib(text: &str) -> Result<u64, String> {
    let fail = || format!("'{text}' is not an amount of memory; write whole numbers like 2000 (MiB), 512M, 4G or 1T");
    let t = text.trim();
    let digits = t.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = t[..digits].parse().map_err(|_| fail())?;
    let unit = t[digits..].to_ascii_uppercase();
    let mib = match unit.as_str() {
        "K" | "KB" => Some(number.div_ceil(1024)),
        "" | "M" | "MB" => Some(number),
        "G" | "GB" => number.checked_mul(1 << 10),
        "T" | "TB" => number.checked_mul(1 << 20),
        _ => None,
    };
    mib.filter(|n| *n <= limits::AMOUNT.unsigned_abs()).ok_or_else(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_in_every_unit() {
        for (text, mib) in
            [("2000", 2000), ("2048K", 2), ("2049k", 3), ("1kb", 1), ("12g", 12_288), ("64GB", 65_536), ("1T", 1 << 20)]
        {
            assert_eq!(parse_mib(text), Ok(mib), "{text}");
        }
        for bad in ["", "G", "3.5G", "-1", "1P", "1 G", "99999999999T", "4Gi"] {
            assert!(parse_mib(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_count("2k", 1), Ok(2048));
        assert_eq!([parse_milli("0.5"), parse_milli("3.152"), parse_milli("2")], [Ok(500), Ok(3152), Ok(2000)]);
        for bad in ["", ".5", "1.", "0.0001", "-1.5", "1.5.2", "9999999999"] {
            assert!(parse_milli(bad).is_err(), "{bad}");
        }
        assert!(parse_count("0", 1).is_err() && parse_count("+1", 1).is_err() && parse_count("5000m", 1).is_err());
    }
}
