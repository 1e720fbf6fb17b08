//! What a cycle remembers of classes that it refused, so that a long queue of few kinds of jobs costs little.

use crate::replica::{Kind, Whose};
use ephor_model::{JobId, Span};
use ephor_placement::ClassId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// For each class the shortest limit at which it was refused since capacity last grew: longer ones need no look.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals {
    by_class: Vec<Option<Refused>>,
    /// What limits stood against, by whose they are.
    by_limits: BTreeMap<(Whose, ClassId), Barred>,
    /// Refusals of an earlier era do not count.
    era: u32,
}

#[derive(Clone, Debug)]
struct Refused {
    era: u32,
    limit: Span,
    why: Arc<str>,
}

/// Limits stood against jobs that ask for the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Barred {
    era: u32,
    limit: Span,
    /// The first that was refused.
    pub job: JobId,
    /// Row of the pool.
    pub pool: u32,
}

impl Refusals {
    /// What stands against a job of that kind, where that is known. Longer ones ask for no less.
    pub fn barred(&self, kind: Kind) -> Option<Barred> {
        let barred = self.by_limits.get(&(kind.whose, kind.class))?;
        (barred.era == self.era && kind.limit >= barred.limit).then_some(*barred)
    }

    /// A limit stood against a job.
    pub fn bar(&mut self, kind: Kind, job: JobId, pool: u32) {
        if kind.whose != Whose::OWN && self.barred(kind).is_none() {
            let Kind { class, whose, limit } = kind;
            self.by_limits.insert((whose, class), Barred { era: self.era, limit, job, pool });
        }
    }

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
