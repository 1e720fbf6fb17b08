//! A value that equal owners share: read like the value itself, copied when one of them changes it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// See the module. What is written or compared is the value, so that nobody can tell who shares it.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// Whether both are one allocation.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether somebody else holds this allocation.
    pub fn is_held_elsewhere(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_changes_a_shared_value_changes_only_their_own() {
        let one = Shared::from(vec![1]);
        let mut other = one.clone();
        assert!(one.is_same(&other) && one.is_held_elsewhere());
        other.push(2);
        assert_eq!((&*one, &*other), (&vec![1], &vec![1, 2]));
        assert!(!one.is_same(&other) && !one.is_held_elsewhere());
        assert_eq!(one, Shared::from(vec![1]));
        assert_eq!(format!("{one:?}"), "[1]");
    }
}
