//! Lets equal jobs share what is equal in them: a queue of a hundred thousand is made of few kinds of jobs.

use ephor_model::{JobCommon, JobSpec, Request, Shared};
use imbl::OrdSet;
use std::fmt;
use std::sync::Arc;

/// Values that are kept before it is looked whether somebody still uses them.
const BEFORE_SWEEP: usize = 4_096;

/// See the module. It holds what jobs of the state hold, or held not long ago; which allocation a job has changes no
/// answer, so that all of them are equal.
#[derive(Clone, Default)]
pub struct Alike {
    requests: Known<Request>,
    commons: Known<JobCommon>,
}

impl Alike {
    /// Gives a specification the parts that are known already and equal to its own. One that somebody else holds stays as
    /// it is: then there is nothing to save.
    pub fn share(&mut self, spec: &mut Arc<JobSpec>) {
        if let Some(spec) = Arc::get_mut(spec) {
            self.requests.share(&mut spec.request);
            self.commons.share(&mut spec.common);
        }
    }
}

impl PartialEq for Alike {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Alike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

/// Values of one kind.
#[derive(Clone)]
struct Known<T> {
    values: OrdSet<Shared<T>>,
    sweep_at: usize,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self { values: OrdSet::new(), sweep_at: BEFORE_SWEEP }
    }
}

impl<T: Ord + Clone> Known<T> {
    fn share(&mut self, value: &mut Shared<T>) {
        if let Some(known) = self.values.get(value) {
            *value = known.clone();
            return;
        }
        if self.values.len() >= self.sweep_at {
            // What only this set holds belongs to no job any more.
            self.values = self.values.iter().filter(|value| value.is_held_elsewhere()).cloned().collect();
            self.sweep_at = BEFORE_SWEEP.max(2 * self.values.len());
        }
        self.values.insert(value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ephor_model::Payload;

    fn spec(nodes: u32, queue: &str) -> Arc<JobSpec> {
        let mut spec = JobSpec::new("x", Payload::Argv(vec!["true".into()]));
        spec.request.nodes_min = nodes;
        spec.queue = queue.into();
        Arc::new(spec)
    }

    #[test]
    fn equal_parts_are_shared_and_others_are_not() {
        let mut alike = Alike::default();
        let [mut first, mut second, mut third] = [spec(2, "a"), spec(2, "b"), spec(3, "a")];
        let held = second.clone();
        alike.share(&mut first);
        alike.share(&mut second);
        assert!(!first.request.is_same(&second.request), "somebody holds the second one");
        drop(held);
        alike.share(&mut second);
        alike.share(&mut third);
        assert!(first.request.is_same(&second.request) && !first.common.is_same(&second.common));
        assert!(first.common.is_same(&third.common) && !first.request.is_same(&third.request));
        assert_eq!((second.request.nodes_min, second.queue.as_str()), (2, "b"));
    }

    #[test]
    fn what_nobody_has_any_more_is_forgotten() {
        let mut alike = Alike::default();
        let mut kept = spec(u32::MAX, "kept");
        alike.share(&mut kept);
        for nodes in 0..3 * BEFORE_SWEEP as u32 {
            alike.share(&mut spec(nodes, "a"));
        }
        assert!(alike.requests.values.len() <= BEFORE_SWEEP);
        let mut same = spec(u32::MAX, "kept");
        alike.share(&mut same);
        assert!(kept.request.is_same(&same.request) && kept.common.is_same(&same.common));
    }
}
