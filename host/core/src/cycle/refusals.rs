//! What a cycle remembers of classes that it refused, so that a long queue of few kinds of jobs costs little.

use ephor_model::Span;
use ephor_placement::ClassId;
use std::sync::Arc;

/// For each class the shortest limit at which it was refused since capacity last grew: longer ones need no look.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals {
    by_class: Vec<Option<Refused>>,
    /// Refusals of an earlier era do not count.
    era: u32,
}

#[derive(Clone, Debug)]
struct Refused {
    era: u32,
    limit: Span,
    why: Arc<str>,
}

impl Refusals {
    /// Why a class is refused at that limit, where that is known.
    pub fn get(&self, class: ClassId, limit: Span) -> Option<&Arc<str>> {
        let refused = self.by_class.get(class.0 as usize)?.as_ref()?;
        (refused.era == self.era && limit >= refused.limit).then_some(&refused.why)
    }

    /// A class was refused at that limit.
    pub fn insert(&mut self, class: ClassId, limit: Span, why: Arc<str>) {
        let at = class.0 as usize;
        if at >= self.by_class.len() {
            self.by_class.resize(at + 1, None);
        }
        if self.by_class[at].as_ref().is_none_or(|old| old.era != self.era || limit < old.limit) {
            self.by_class[at] = Some(Refused { era: self.era, limit, why });
        }
    }

    /// Capacity grew.
    pub fn clear(&mut self) {
        self.era += 1;
    }
}
