//! A set of nodes as one bit each.

use ephor_model::id::NodeId;

/// A set of nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits(Vec<u64>);

impl FromIterator<bool> for Bits {
    /// Whether each node is in, by id.
    fn from_iter<T: IntoIterator<Item = bool>>(nodes: T) -> Self {
        let mut words = Vec::new();
        for (i, member) in nodes.into_iter().enumerate() {
            match words.last_mut() {
                Some(word) if i % 64 > 0 => *word |= u64::from(member) << (i % 64),
                _ => words.push(u64::from(member)),
            }
        }
        Self(words)
    }
}

impl Bits {
    /// Puts a node in or takes it out.
    pub fn set(&mut self, id: NodeId, member: bool) {
        let (word, bit) = (id.0 as usize / 64, id.0 % 64);
        if word >= self.0.len() {
            if !member {
                return;
            }
            self.0.resize(word + 1, 0);
        }
        self.0[word] = self.0[word] & !(1 << bit) | u64::from(member) << bit;
    }

    /// Whether a node is in.
    pub fn has(&self, id: NodeId) -> bool {
        self.0.get(id.0 as usize / 64).is_some_and(|word| word >> (id.0 % 64) & 1 == 1)
    }

    /// Sixty-four of its nodes at once, the lowest bit for the first.
    pub fn word(&self, index: usize) -> u64 {
        self.0.get(index).copied().unwrap_or(0)
    }

    /// How many are in.
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Its nodes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.0.iter().enumerate().flat_map(|(i, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(NodeId(i as u32 * 64 + bit))
            })
        })
    }
}
