//! FNV-1a with 64 bits: the fingerprint of a whole schedule in 16 hex digits.

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Takes in a number as its eight bytes, lowest first.
    pub fn number(&mut self, n: i64) {
        n.to_le_bytes().iter().for_each(|byte| self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }

    /// The fingerprint as 16 hex digits.
    pub fn hex(self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_at_the_offset_basis_and_depends_on_order() {
        assert_eq!(Fnv::default().hex(), "cbf29ce484222325");
        let of = |numbers: &[i64]| {
            let mut fnv = Fnv::default();
            numbers.iter().for_each(|n| fnv.number(*n));
            fnv.hex()
        };
        // Worked out by hand from the definition for eight zero bytes: the basis times the prime to the eighth.
        let zero = (0..8).fold(0xcbf2_9ce4_8422_2325_u64, |h, _| h.wrapping_mul(0x0100_0000_01b3));
        assert_eq!(of(&[0]), format!("{zero:016x}"));
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
    }
}
