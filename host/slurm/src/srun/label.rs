//! Output of tasks with the rank of its task before each line.

/// Writes labels as wide as the largest rank.
#[derive(Clone, Debug)]
pub struct Labels {
    width: usize,
}

impl Labels {
    /// For so many tasks.
    pub fn new(tasks: u32) -> Self {
        Self { width: tasks.saturating_sub(1).to_string().len() }
    }

    /// Puts the label before each line. `inside` says whether the stream is inside a line, and is kept true to it.
    pub fn put(&self, rank: u32, data: &[u8], inside: &mut bool) -> Vec<u8> {
        let label = format!("{rank:width$}: ", width = self.width);
        let mut out = Vec::with_capacity(data.len() + label.len() * 2);
        for line in data.split_inclusive(|b| *b == b'\n') {
            if !*inside {
                out.extend_from_slice(label.as_bytes());
            }
            out.extend_from_slice(line);
            *inside = !line.ends_with(b"\n");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_rank() {
        let put = |tasks, rank, data: &str, inside: &mut bool| {
            String::from_utf8(Labels::new(tasks).put(rank, data.as_bytes(), inside)).unwrap()
        };
        assert_eq!(put(2, 1, "a\nb\n", &mut false), "1: a\n1: b\n");
        assert_eq!(put(10, 9, "a\n", &mut false), "9: a\n");
        assert_eq!(put(11, 9, "a\n", &mut false), " 9: a\n");
        let mut inside = false;
        assert_eq!(put(1, 0, "half", &mut inside), "0: half");
        assert!(inside);
        assert_eq!(put(1, 0, " whole\nx", &mut inside), " whole\n0: x");
        assert_eq!(put(1, 0, "", &mut inside), "");
    }
}
