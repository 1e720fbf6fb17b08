//! Typed identifiers, so that a job id is never taken for a node id.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $inner:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub $inner);
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// One schedulable job: a single job, or one element of an array. An array of `n` elements takes `n`
    /// consecutive ids; the first of them is the id of the array. Starts at 1.
    JobId, u64
);
id!(
    /// A node, numbered in the order of first registration; never reused.
    NodeId, u32
);
id!(
    /// A queue, numbered in the order of creation; never reused.
    QueueId, u32
);
id!(
    /// An account, numbered in the order of creation; never reused.
    AccountId, u32
);
id!(
    /// A quality of service, numbered in the order of creation; never reused.
    QosId, u32
);
id!(
    /// A reservation of nodes, numbered in the order of creation; never reused.
    ReservationNo, u32
);
id!(
    /// A numeric user id of the operating system.
    Uid, u32
);
id!(
    /// Fencing number of a controller's reign: grows by at least one at every start or take-over.
    Epoch, u64
);

/// One run of a job: the first attempt has number 1, each requeue adds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptKey {
    /// The job that runs.
    pub job: JobId,
    /// Which run of it, from 1.
    pub number: u32,
}

impl fmt::Display for AttemptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.job, self.number)
    }
}

/// One step of one attempt: a parallel launch inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepKey {
    /// The attempt.
    pub attempt: AttemptKey,
    /// Number of the step, from 0.
    pub step: u32,
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.attempt, self.step)
    }
}

/// SHA-256 of a blob (script, environment, component), written as 64 hex digits.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Reads 64 hex digits; anything else is `None`.
    pub fn from_hex(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut out = [0u8; 32];
        for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).ok()?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(Self(out))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_back_what_it_wrote() {
        let digest = Digest(std::array::from_fn(|i| i as u8 * 7));
        assert_eq!(Digest::from_hex(&digest.to_string()), Some(digest));
        assert_eq!(Digest::from_hex("zz"), None);
    }
}
