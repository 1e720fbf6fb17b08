//! Array indices such as `0-15:4%2`, kept as ranges so that a million elements stay small.

use crate::limits;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One run of indices: `first`, `first + step`, ... up to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IndexRange {
    /// First index.
    pub first: u32,
    /// Last index that may be reached, at least `first`.
    pub last: u32,
    /// Distance between two, at least 1.
    pub step: u32,
}

impl IndexRange {
    fn count(self) -> u32 {
        (self.last - self.first) / self.step + 1
    }
}

/// The indices of an array, ascending and without repeats, and how many may run at once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ArraySpec {
    /// The runs, ascending, not overlapping.
    pub ranges: Vec<IndexRange>,
    /// Most elements that run at once (`%N`).
    pub throttle: Option<u32>,
}

/// Why a text is not an array specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a job array: {why}; write indices like 0-15, 1,3,5 or 0-100:10%4")]
pub struct ArrayError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

impl ArraySpec {
    /// Reads Slurm's array syntax.
    ///
    /// # Errors
    /// Empty lists, non-numbers, falling ranges, zero steps or throttles, and more than
    /// [`limits::ARRAY_ELEMENTS`] elements.
    pub fn parse(text: &str) -> Result<Self, ArrayError> {
        let fail = |why: String| ArrayError { text: text.to_owned(), why };
        let number = |s: &str| s.trim().parse::<u32>().map_err(|_| fail(format!("'{s}' is not a number")));
        let (list, throttle) = match text.split_once('%') {
            Some((list, n)) => (list, Some(number(n)?)),
            None => (text, None),
        };
        if throttle == Some(0) {
            return Err(fail("a throttle of 0 would never run".into()));
        }
        let mut ranges = Vec::new();
        for part in list.split(',') {
            let (span, step) = match part.split_once(':') {
                Some((span, step)) => (span, number(step)?),
                None => (part, 1),
            };
            if step == 0 {
                return Err(fail("the step is 0".into()));
            }
            let (first, last) = match span.split_once('-') {
                Some((a, b)) => (number(a)?, number(b)?),
                None => (number(span)?, number(span)?),
            };
            if last < first {
                return Err(fail(format!("{first}-{last} runs backwards")));
            }
            ranges.push(IndexRange { first, last, step });
        }
        let total: u64 = ranges.iter().map(|r| u64::from(r.count())).sum();
        if total > u64::from(limits::ARRAY_ELEMENTS) {
            return Err(fail(format!("{total} elements are more than {}", limits::ARRAY_ELEMENTS)));
        }
        ranges.sort_by_key(|r| r.first);
        if ranges.windows(2).any(|w| w[1].first <= w[0].last) {
            ranges = unite(&ranges);
        }
        Ok(Self { ranges, throttle })
    }

    /// How many elements there are, at least 1.
    pub fn count(&self) -> u32 {
        self.ranges.iter().map(|r| r.count()).sum()
    }

    /// The index of the element with that ordinal (0 is the first).
    pub fn index(&self, mut ordinal: u32) -> Option<u32> {
        for range in &self.ranges {
            if ordinal < range.count() {
                return Some(range.first + ordinal * range.step);
            }
            ordinal -= range.count();
        }
        None
    }

    /// The ordinal of the element with that index.
    pub fn ordinal(&self, index: u32) -> Option<u32> {
        let mut before = 0;
        for range in &self.ranges {
            if index >= range.first && index <= range.last && (index - range.first).is_multiple_of(range.step) {
                return Some(before + (index - range.first) / range.step);
            }
            before += range.count();
        }
        None
    }

    /// Smallest and largest index.
    pub fn bounds(&self) -> (u32, u32) {
        let first = self.ranges.first().map_or(0, |r| r.first);
        let last = self.ranges.last().map_or(0, |r| r.first + (r.count() - 1) * r.step);
        (first, last)
    }
}

/// Writes overlapping ranges as the sorted set of their indices.
fn unite(ranges: &[IndexRange]) -> Vec<IndexRange> {
    let mut all: Vec<u32> = ranges.iter().flat_map(|r| (r.first..=r.last).step_by(r.step as usize)).collect();
    all.sort_unstable();
    all.dedup();
    let mut out: Vec<IndexRange> = Vec::new();
    for index in all {
        match out.last_mut() {
            Some(r) if r.step == 1 && index == r.last + 1 => r.last = index,
            _ => out.push(IndexRange { first: index, last: index, step: 1 }),
        }
    }
    out
}

impl fmt::Display for ArraySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, r) in self.ranges.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            match (r.first == r.last, r.step) {
                (true, _) => write!(f, "{}", r.first)?,
                (false, 1) => write!(f, "{}-{}", r.first, r.last)?,
                (false, step) => write!(f, "{}-{}:{step}", r.first, r.last)?,
            }
        }
        self.throttle.map_or(Ok(()), |n| write!(f, "%{n}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_and_ordinals_agree() {
        let spec = ArraySpec::parse("7,0-10:5,20-22%2").unwrap();
        let all: Vec<u32> = (0..spec.count()).filter_map(|o| spec.index(o)).collect();
        assert_eq!(all, [0, 5, 7, 10, 20, 21, 22]);
        assert!(all.iter().enumerate().all(|(o, i)| spec.ordinal(*i) == Some(o as u32)));
        assert_eq!(spec.ordinal(6), None);
        assert_eq!(spec.throttle, Some(2));
    }

    #[test]
    fn bad_arrays_say_what_is_wrong() {
        for (text, part) in [
            ("", "not a number"),
            ("5-1", "backwards"),
            ("1-9:0", "step"),
            ("1%0", "throttle"),
            ("0-4000000", "more than"),
            ("a", "not a number"),
        ] {
            let error = ArraySpec::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
