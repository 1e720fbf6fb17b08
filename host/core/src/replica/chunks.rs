//! A sorted map in chunks: full where keys come in order, as those of jobs do, so that it takes half of what a tree takes.

use std::collections::BTreeMap;
use std::ops::Bound::{Included, Unbounded};

/// Entries of a full chunk.
const CHUNK: usize = 64;
/// A chunk with fewer entries looks for a neighbour to go to.
const SPARSE: usize = CHUNK / 4;

/// See the module. Keys are small and copied.
#[derive(Debug)]
pub struct Chunks<K, V> {
    /// By a key that none of its entries is below, and every entry of the chunk before is: sorted, never empty.
    chunks: BTreeMap<K, Vec<(K, V)>>,
    len: usize,
}

impl<K, V> Default for Chunks<K, V> {
    fn default() -> Self {
        Self { chunks: BTreeMap::new(), len: 0 }
    }
}

impl<K: Ord + Copy, V> Chunks<K, V> {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let (_, chunk) = self.chunks.range(..=key).next_back()?;
        chunk.binary_search_by(|(k, _)| k.cmp(key)).ok().map(|at| &chunk[at].1)
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (_, chunk) = self.chunks.range_mut(..=key).next_back()?;
        chunk.binary_search_by(|(k, _)| k.cmp(key)).ok().map(|at| &mut chunk[at].1)
    }

    /// Puts a value in place of the one that the key had.
    pub fn insert(&mut self, key: K, value: V) {
        let Some((_, chunk)) = self.chunks.range_mut(..=key).next_back() else { return self.insert_first(key, value) };
        match chunk.binary_search_by(|(k, _)| k.cmp(&key)) {
            Ok(at) => chunk[at].1 = value,
            Err(at) if chunk.len() < CHUNK => {
                chunk.insert(at, (key, value));
                self.len += 1;
            }
            // Behind a full chunk: it stays full.
            Err(at) if at == CHUNK => {
                self.chunks.insert(key, vec![(key, value)]);
                self.len += 1;
            }
            Err(_) => {
                let half = chunk.split_off(CHUNK / 2);
                self.chunks.insert(half[0].0, half);
                self.insert(key, value);
            }
        }
    }

    /// Puts in a key that is below all others.
    fn insert_first(&mut self, key: K, value: V) {
        let mut chunk = match self.chunks.first_key_value() {
            Some((_, first)) if first.len() < CHUNK => {
                self.chunks.pop_first().map(|(_, first)| first).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        chunk.insert(0, (key, value));
        self.chunks.insert(key, chunk);
        self.len += 1;
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (bound, chunk) = self.chunks.range_mut(..=key).next_back()?;
        let at = chunk.binary_search_by(|(k, _)| k.cmp(key)).ok()?;
        let (bound, (_, value)) = (*bound, chunk.remove(at));
        self.len -= 1;
        if chunk.len() < SPARSE {
            self.join(bound);
        }
        Some(value)
    }

    /// Moves the entries of a sparse chunk to the one before, where they leave room there.
    fn join(&mut self, bound: K) {
        let Some(mut sparse) = self.chunks.get_mut(&bound).map(std::mem::take) else { return };
        match self.chunks.range_mut(..bound).next_back() {
            Some((_, before)) if before.len() + sparse.len() <= CHUNK / 2 => before.append(&mut sparse),
            // What it took to be full is given back.
            _ => sparse.shrink_to(SPARSE),
        }
        if sparse.is_empty() {
            self.chunks.remove(&bound);
        } else {
            self.chunks.insert(bound, sparse);
        }
    }

    /// Takes everything out.
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.len = 0;
    }

    /// All keys, ascending.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.after(None).map(|(key, _)| key)
    }

    /// The entries behind that key, ascending; `None`: all.
    pub fn after(&self, key: Option<K>) -> impl Iterator<Item = (&K, &V)> {
        let from = match key.and_then(|key| self.chunks.range(..=key).next_back()) {
            Some((bound, _)) => Included(*bound),
            None => Unbounded,
        };
        let skipped = move |chunk: &[(K, V)]| key.map_or(0, |key| chunk.partition_point(|(k, _)| *k <= key));
        let chunks = self.chunks.range((from, Unbounded));
        chunks.flat_map(move |(_, chunk)| chunk[skipped(chunk)..].iter().map(|(key, value)| (key, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Bound::Excluded;

    /// The same as a tree that has seen the same, for any key.
    fn assert_same(chunks: &Chunks<u32, u32>, tree: &BTreeMap<u32, u32>, probes: impl Iterator<Item = u32>) {
        assert_eq!(chunks.len(), tree.len());
        assert!(chunks.after(None).eq(tree.iter()) && chunks.keys().eq(tree.keys()));
        for probe in probes {
            assert_eq!(chunks.get(&probe), tree.get(&probe));
            assert!(chunks.after(Some(probe)).eq(tree.range((Excluded(probe), Unbounded))), "after {probe}");
        }
        assert!(chunks.chunks.values().all(|chunk| (1..=CHUNK).contains(&chunk.len())));
    }

    #[test]
    fn it_is_a_sorted_map() {
        let (mut chunks, mut tree) = (Chunks::default(), BTreeMap::new());
        let mut seed = 7_u32;
        let mut next = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) % below
        };
        for round in 0..20_000 {
            let key = next(2_000);
            // First it grows, then it shrinks to nothing, then it grows again.
            let grows = next(100) < if (round / 5_000) % 2 == 0 { 80 } else { 10 };
            if grows {
                chunks.insert(key, round);
                tree.insert(key, round);
            } else {
                assert_eq!(chunks.remove(&key), tree.remove(&key));
            }
            if let Some(value) = chunks.get_mut(&key) {
                *value += 1;
                tree.entry(key).and_modify(|value| *value += 1);
            }
            if round % 500 == 0 {
                assert_same(&chunks, &tree, (0..2_001).step_by(17));
            }
        }
        chunks.clear();
        assert_same(&chunks, &BTreeMap::new(), 0..3);
    }

    #[test]
    fn keys_that_come_in_order_fill_their_chunks() {
        let mut chunks = Chunks::default();
        (0..10 * CHUNK as u32).for_each(|key| chunks.insert(key, key));
        assert!(chunks.chunks.values().all(|chunk| chunk.len() == CHUNK));
    }

    #[test]
    fn chunks_that_empty_go() {
        let mut chunks = Chunks::default();
        let all = 100 * CHUNK as u32;
        (0..all).for_each(|key| chunks.insert(key, key));
        (0..all).filter(|key| key % 32 != 0).for_each(|key| assert!(chunks.remove(&key).is_some()));
        assert_eq!(chunks.len(), 2 * 100);
        assert!(chunks.chunks.len() <= 20, "{} chunks for 200 entries", chunks.chunks.len());
    }
}
