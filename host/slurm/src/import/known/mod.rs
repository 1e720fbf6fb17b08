//! The parameters of Slurm's files that are known, and what becomes of those that need no code of their own.

mod cgroup;
mod general;
mod gres;
mod node;
mod partition;
mod topology;

pub(super) use cgroup::CGROUP;
pub(super) use general::GENERAL;
pub(super) use gres::{GPUS, GRES};
pub(super) use node::{COUNTED, NODE};
pub(super) use partition::PARTITION;
pub(super) use topology::TOPOLOGY;

use super::pairs::Pair;
use super::report::Outcome;

/// What becomes of a parameter.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    /// The code that asks reads it, and says what it made of it.
    Read,
    /// The same comes about without it.
    ByItself(&'static str),
    /// Something comes near.
    Near(&'static str),
    /// It has no place in what is applied: why, and where it is set where there is such a place.
    Nothing(&'static str),
}

/// Parameters with one fate.
#[derive(Debug)]
pub(super) struct Group {
    fate: Fate,
    /// Values with which Slurm does what Ephor does anyway; in small letters.
    off: &'static [&'static str],
    keys: &'static [&'static str],
}

const fn group(fate: Fate, keys: &'static [&'static str]) -> Group {
    Group { fate, off: &[], keys }
}

const fn unless(off: &'static [&'static str], fate: Fate, keys: &'static [&'static str]) -> Group {
    Group { fate, off, keys }
}

/// Notes what becomes of a parameter; true: the caller reads it.
pub(super) fn note(groups: &[Group], pair: &Pair, outcome: &mut Outcome) -> bool {
    let Some(group) = groups.iter().find(|group| group.keys.iter().any(|key| pair.is(key))) else {
        outcome.unknown(&pair.key);
        return false;
    };
    if group.off.iter().any(|off| pair.value.eq_ignore_ascii_case(off)) {
        outcome.take();
        return false;
    }
    match group.fate {
        Fate::Read => return true,
        Fate::ByItself(why) => outcome.by_itself(&pair.key, why),
        Fate::Near(how) => outcome.near(&pair.key, how),
        Fate::Nothing(why) => outcome.nothing(&pair.key, why),
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_parameter_stands_twice() {
        for table in [GENERAL, NODE, PARTITION, GRES, TOPOLOGY, CGROUP] {
            let mut seen = BTreeSet::new();
            for group in table {
                assert!(group.off.iter().all(|off| *off == off.to_lowercase()), "{:?}", group.off);
                for key in group.keys {
                    assert!(seen.insert(key.to_lowercase()), "{key}");
                }
            }
        }
    }
}
