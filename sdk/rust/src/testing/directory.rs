//! A directory with the users that a test put there.

use crate::directory::{Directory, User};

/// Users, found by id and by name.
#[derive(Clone, Debug, Default)]
pub struct FakeDirectory(Vec<User>);

impl FakeDirectory {
    /// Adds a user; the group id is the user id.
    #[must_use]
    pub fn user(mut self, uid: u32, name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        self.0.push(User { uid, gid: uid, name: name.to_owned(), groups });
        self
    }
}

impl Directory for FakeDirectory {
    fn user_by_id(&self, uid: u32) -> Option<User> {
        self.0.iter().find(|user| user.uid == uid).cloned()
    }
    fn user_by_name(&self, name: &str) -> Option<User> {
        self.0.iter().find(|user| user.name == name).cloned()
    }
}
