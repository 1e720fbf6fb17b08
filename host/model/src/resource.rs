//! Countable things with interned ids, and integer amounts of them.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// An interned resource name. The first ids are the same everywhere; sites add more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResourceId(pub u16);

impl ResourceId {
    /// Processor cores, in thousandths (`millicores`).
    pub const CPU: Self = Self(0);
    /// Memory, in MiB.
    pub const MEM: Self = Self(1);
    /// GPUs of any type, in thousandths of a GPU.
    pub const GPU: Self = Self(2);
    /// GPU memory, in MiB.
    pub const GPU_MEM: Self = Self(3);
    /// Whole nodes.
    pub const NODE: Self = Self(4);
    /// First id that a site's own resource, such as a licence, may take.
    pub const FIRST_SITE: u16 = 16;

    /// The name of a well-known resource; a site's own have theirs in the state.
    pub fn well_known_name(self) -> Option<&'static str> {
        Some(match self {
            Self::CPU => "cpu",
            Self::MEM => "mem",
            Self::GPU => "gpu",
            Self::GPU_MEM => "gpu.mem",
            Self::NODE => "node",
            _ => return None,
        })
    }

    /// The well-known resource of that name.
    pub fn from_well_known_name(name: &str) -> Option<Self> {
        (0..Self::FIRST_SITE).map(Self).find(|id| id.well_known_name() == Some(name))
    }
}

/// Amounts of several resources, sorted by id, without zero entries, so that equal amounts are equal values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Amounts(SmallVec<[(ResourceId, i64); 3]>);

impl Amounts {
    /// Nothing at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// How much of one resource; zero where it is not named.
    pub fn get(&self, id: ResourceId) -> i64 {
        self.0.iter().find(|(r, _)| *r == id).map_or(0, |(_, n)| *n)
    }

    /// Sets one amount; zero removes the entry.
    pub fn set(&mut self, id: ResourceId, amount: i64) {
        match (self.0.binary_search_by_key(&id, |(r, _)| *r), amount) {
            (Ok(i), 0) => drop(self.0.remove(i)),
            (Ok(i), n) => self.0[i].1 = n,
            (Err(_), 0) => {}
            (Err(i), n) => self.0.insert(i, (id, n)),
        }
    }

    /// The same with one amount set; for building.
    pub fn with(mut self, id: ResourceId, amount: i64) -> Self {
        self.set(id, amount);
        self
    }

    /// The entries, by ascending id.
    pub fn iter(&self) -> impl Iterator<Item = (ResourceId, i64)> + '_ {
        self.0.iter().copied()
    }

    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds `times` times `other`, saturating.
    pub fn add_scaled(&mut self, other: &Self, times: i64) {
        for (id, n) in other.iter() {
            self.set(id, self.get(id).saturating_add(n.saturating_mul(times)));
        }
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Self) {
        self.add_scaled(other, 1);
    }

    /// Takes `other` away; entries may become negative.
    pub fn sub(&mut self, other: &Self) {
        self.add_scaled(other, -1);
    }

    /// Whether each amount asked for is there.
    pub fn covers(&self, asked: &Self) -> bool {
        asked.iter().all(|(id, n)| self.get(id) >= n)
    }

    /// How many times `each` fits; `None` where it asks for nothing, so that no number is the answer.
    pub fn times(&self, each: &Self) -> Option<i64> {
        each.iter().filter(|(_, n)| *n > 0).map(|(id, n)| (self.get(id) / n).max(0)).min()
    }

    /// Each amount multiplied, saturating.
    pub fn scaled(&self, times: i64) -> Self {
        let mut out = Self::new();
        out.add_scaled(self, times);
        out
    }
}

impl FromIterator<(ResourceId, i64)> for Amounts {
    fn from_iter<T: IntoIterator<Item = (ResourceId, i64)>>(iter: T) -> Self {
        let mut out = Self::new();
        for (id, n) in iter {
            out.set(id, n);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_stay_sorted_and_without_zeros() {
        let mut a = Amounts::new().with(ResourceId::MEM, 5).with(ResourceId::CPU, 2000);
        a.sub(&Amounts::new().with(ResourceId::MEM, 5));
        assert_eq!(a, Amounts::new().with(ResourceId::CPU, 2000));
        assert!(a.covers(&Amounts::new().with(ResourceId::CPU, 2000)));
        assert_eq!(a.times(&Amounts::new().with(ResourceId::CPU, 600)), Some(3));
        assert_eq!(a.times(&Amounts::new()), None);
    }
}
