//! Output by whole lines: what is not one yet is held back, up to a bound.

use ephor_model::limits::STEP_LINE_BYTES;

/// What one stream of a task has said since its last whole line.
#[derive(Debug, Default)]
pub struct Lines {
    held: Vec<u8>,
}

impl Lines {
    /// Takes what came, and gives what is to be passed on now: whole lines, or a line that is too long to be held.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let end = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let (whole, rest) = bytes.split_at(end);
        let mut out = Vec::new();
        if !whole.is_empty() {
            out.append(&mut self.held);
            out.extend_from_slice(whole);
        }
        self.held.extend_from_slice(rest);
        if self.held.len() > STEP_LINE_BYTES {
            out.append(&mut self.held);
        }
        out
    }

    /// What is left at the end of the stream.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_given_whole() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(b"one\ntw"), b"one\n");
        assert_eq!(lines.push(b"o"), b"");
        assert_eq!(lines.push(b"\nthree\nfo"), b"two\nthree\n");
        assert_eq!(lines.rest(), b"fo");
        assert_eq!(lines.rest(), b"");
        let long = vec![b'x'; STEP_LINE_BYTES];
        assert_eq!(lines.push(&long), b"");
        assert_eq!(lines.push(b"y").len(), STEP_LINE_BYTES + 1);
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost_or_held_beyond_the_bound(
            pieces in proptest::collection::vec(proptest::collection::vec(9u8..12, 0..9000), 0..12)
        ) {
            let mut lines = Lines::default();
            let mut out = Vec::new();
            for piece in &pieces {
                let given = lines.push(piece);
                proptest::prop_assert!(lines.held.len() <= STEP_LINE_BYTES);
                proptest::prop_assert!(!lines.held.contains(&b'\n'));
                out.extend(given);
            }
            out.extend(lines.rest());
            proptest::prop_assert_eq!(out, pieces.concat());
        }
    }
}
