//! A quantity over time in equal pieces: the mean and the largest value of each.

/// See the module. Times in seconds.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    from: i64,
    until: i64,
    sums: Vec<f64>,
    most: Vec<f64>,
}

impl Steps {
    /// Nothing so far, in that many pieces of `[from, until)`.
    pub fn new(from: i64, until: i64, pieces: usize) -> Self {
        Self { from, until: until.max(from + 1), sums: vec![0.0; pieces], most: vec![0.0; pieces] }
    }

    /// Length of a piece.
    pub fn length(&self) -> f64 {
        (self.until - self.from) as f64 / self.sums.len() as f64
    }

    /// The quantity was `value` in `[from, until)`, and had no value there before.
    pub fn add(&mut self, from: i64, until: i64, value: f64) {
        let place = |at: i64| (at.clamp(self.from, self.until) - self.from) as f64 / self.length();
        let (begin, end) = (place(from), place(until));
        let last = (end.ceil() as usize).min(self.sums.len());
        for piece in begin as usize..last {
            let part = end.min(piece as f64 + 1.0) - begin.max(piece as f64);
            if part > 0.0 {
                self.sums[piece] += part * value;
                self.most[piece] = self.most[piece].max(value);
            }
        }
    }

    /// The mean of each piece.
    pub fn means(&self) -> Vec<f64> {
        self.sums.clone()
    }

    /// The largest value of each piece.
    pub fn most(&self) -> Vec<f64> {
        self.most.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shared_out_over_the_pieces() {
        let mut steps = Steps::new(0, 100, 4);
        steps.add(0, 50, 2.0);
        steps.add(50, 60, 10.0);
        let close = |(a, b): (f64, f64)| (a - b).abs() < 1e-9;
        assert!(steps.means().into_iter().zip([2.0, 2.0, 4.0, 0.0]).all(close), "{:?}", steps.means());
        assert_eq!(steps.most(), [2.0, 2.0, 10.0, 0.0]);
    }
}
