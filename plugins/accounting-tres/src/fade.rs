//! Powers of one half in integers.

/// 1 in parts of 2^32.
pub const ONE: u64 = 1 << 32;

/// `2^(-period / half_life)` in parts of 2^32, rounded to the nearest. A period of 64 half-lives or more leaves 0.
///
/// The exponent is taken bit by bit: the bit worth `2^-k` multiplies by `2^(-2^-k)`, and each of those is the square
/// root of the one before.
pub fn factor(period: u64, half_life: u64) -> u64 {
    let half_life = u128::from(half_life.max(1));
    let exponent = (u128::from(period) << 64) / half_life;
    let (whole, mut bits) = ((exponent >> 64) as u64, exponent as u64);
    if whole >= 64 {
        return 0;
    }
    // In parts of 2^63, so that 1 itself fits into 64 bits and a product into 128.
    let mut result: u128 = 1 << 63;
    let mut root: u128 = 1 << 62;
    while bits != 0 {
        root = (root << 63).isqrt();
        if bits >> 63 == 1 {
            result = (result * root) >> 63;
        }
        bits <<= 1;
    }
    result >>= whole;
    ((result + (1 << 30)) >> 31) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;
    const DAY: u64 = 24 * 60 * MINUTE;

    #[test]
    fn known_values() {
        assert_eq!(factor(0, DAY), ONE);
        assert_eq!(factor(DAY, DAY), ONE / 2);
        assert_eq!(factor(3 * DAY, DAY), ONE / 8);
        // 2^32 / sqrt(2) = 3037000499.98
        assert_eq!(factor(DAY / 2, DAY), 3_037_000_500);
        // 2^32 x 2^(-1/3) = 3408917801.92
        assert_eq!(factor(DAY / 3, DAY), 3_408_917_802);
        assert_eq!(factor(5 * MINUTE, 7 * DAY), 4_293_490_841);
        assert_eq!(factor(5 * MINUTE, 60 * MINUTE), 4_053_909_305);
        assert_eq!(factor(64 * DAY, DAY), 0);
    }

    #[test]
    fn a_half_life_of_periods_halves() {
        let (period, half_life) = (5 * MINUTE, 7 * DAY);
        let each = u128::from(factor(period, half_life));
        let mut left: u128 = 1 << 62;
        for _ in 0..half_life / period {
            left = (left * each) >> 32;
        }
        let off = left.abs_diff(1 << 61);
        assert!(off < 1 << 43, "{off}");
    }

    #[test]
    fn it_falls_as_the_period_grows() {
        let mut last = u64::MAX;
        for minutes in 0..1_000 {
            let now = factor(minutes * MINUTE, DAY);
            assert!(now < last, "{minutes}: {now} after {last}");
            last = now;
        }
    }
}
