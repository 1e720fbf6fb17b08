//! Amounts of memory: whole numbers with K, M, G or T, in binary units.

use ephor_model::submit::parse_mib;

/// Reads an amount in MiB, rounded up; without a unit it is MiB. `None`: it is not one.
pub fn parse(text: &str) -> Option<u64> {
    // Blanks are no part of it.
    text.starts_with(|c: char| c.is_ascii_digit()).then(|| parse_mib(text).ok()).flatten()
}

/// Writes MiB in the largest unit that keeps two decimals exact: `100M`, `1.50G`, `64G`.
pub fn show(mib: u64) -> String {
    // In halves of the unit, so that no fraction is needed: 1.5G divides by 512M, 1.25G does not and stays in M.
    let (mut whole, mut unit) = (mib, 0);
    let mut fraction = false;
    while whole > 0 && !fraction && unit < 3 && whole >= 1024 && whole % 512 == 0 {
        fraction = whole % 1024 != 0;
        whole /= 1024;
        unit += 1;
    }
    let half = if fraction { ".50" } else { "" };
    format!("{whole}{half}{}", ["M", "G", "T", "P"][unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read() {
        for (text, mib) in
            [("2000", 2000), ("2048K", 2), ("1023K", 1), ("12g", 12_288), ("64gb", 65_536), ("1T", 1 << 20), ("0", 0)]
        {
            assert_eq!(parse(text), Some(mib), "{text}");
        }
        for bad in ["", "3.5G", "-1", "1 G", " 1G", "1P", "1GiB", "MaxMemPerNode"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    /// As Slurm 22.05 wrote them.
    #[test]
    fn amounts_are_written() {
        for (mib, shown) in [
            (0, "0M"),
            (100, "100M"),
            (1024, "1G"),
            (1536, "1.50G"),
            (2000, "2000M"),
            (10_000, "10000M"),
            (12_800, "12.50G"),
            (320_000, "312.50G"),
            (512_000, "500G"),
            (988_000, "988000M"),
            (1 << 20, "1T"),
        ] {
            assert_eq!(show(mib), shown);
        }
    }
}
