//! Users and groups as this machine's name service knows them, for policies that were granted the directory.
//!
//! Answers come from a bounded cache. A thread of its own asks the name service, so that a slow one (LDAP that does not
//! answer) costs a policy call no more than [`PATIENCE`], and only for somebody who was never asked for before.

use ephor_policy::{Directory, DirectoryUser};
use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Answers that are kept; then the cache starts anew.
const ENTRIES: usize = 65_536;
/// Questions that wait for the name service.
const QUESTIONS: usize = 1024;
/// Older answers are used once more while they are asked for again.
const FRESH: Duration = Duration::from_secs(60);
/// The same for "nobody": a user who was just made should not wait.
const FRESH_NOBODY: Duration = Duration::from_secs(5);
/// Longest wait for somebody who is not in the cache.
const PATIENCE: Duration = Duration::from_millis(500);
/// Groups of one user.
const GROUPS: usize = 65_536;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Question {
    Id(u32),
    Name(String),
}

#[derive(Clone)]
struct Answer {
    user: Option<DirectoryUser>,
    at: Instant,
}

impl Answer {
    fn is_fresh(&self) -> bool {
        self.at.elapsed() < if self.user.is_some() { FRESH } else { FRESH_NOBODY }
    }
}

#[derive(Default)]
struct Cache {
    answers: Mutex<HashMap<Question, Answer>>,
    came: Condvar,
}

/// See the module. The thread ends when it is dropped.
pub struct NameService {
    cache: Arc<Cache>,
    questions: SyncSender<Question>,
}

impl NameService {
    /// Starts the thread that asks.
    ///
    /// # Errors
    /// The system has no threads left.
    pub fn start() -> std::io::Result<Self> {
        let cache = Arc::new(Cache::default());
        let (questions, mail) = sync_channel(QUESTIONS);
        let answers = cache.clone();
        std::thread::Builder::new().name("directory".into()).spawn(move || answers.serve(&mail))?;
        Ok(Self { cache, questions })
    }

    fn ask(&self, question: Question) -> Option<DirectoryUser> {
        let known = self.cache.get(&question);
        if let Some(known) = &known
            && known.is_fresh()
        {
            return known.user.clone();
        }
        match self.questions.try_send(question.clone()) {
            Ok(()) => {}
            // The name service is far behind: what is known must do.
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => return known.and_then(|k| k.user),
        }
        match known {
            Some(known) if known.user.is_some() => known.user,
            _ => self.cache.wait_for(&question).and_then(|answer| answer.user),
        }
    }
}

impl Cache {
    fn get(&self, question: &Question) -> Option<Answer> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).get(question).cloned()
    }

    fn wait_for(&self, question: &Question) -> Option<Answer> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = |answers: &mut HashMap<Question, Answer>| !answers.get(question).is_some_and(Answer::is_fresh);
        let waited = self.came.wait_timeout_while(answers, PATIENCE, missing);
        let (answers, _) = waited.unwrap_or_else(PoisonError::into_inner);
        answers.get(question).cloned()
    }

    fn serve(&self, mail: &Receiver<Question>) {
        while let Ok(question) = mail.recv() {
            // Several callers may have asked the same.
            if self.get(&question).is_some_and(|a| a.is_fresh()) {
                continue;
            }
            let found = match &question {
                Question::Id(uid) => User::from_uid(Uid::from_raw(*uid)),
                Question::Name(name) => User::from_name(name),
            };
            let user = match found {
                Ok(user) => user.map(with_groups),
                Err(error) => {
                    tracing::warn!(%error, ?question, "the name service failed");
                    // What was known goes on being true until it answers.
                    self.get(&question).and_then(|a| a.user)
                }
            };
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            if answers.len() >= ENTRIES {
                answers.clear();
            }
            answers.insert(question, Answer { user, at: Instant::now() });
            drop(answers);
            self.came.notify_all();
        }
    }
}

impl Directory for NameService {
    fn user_by_id(&self, uid: u32) -> Option<DirectoryUser> {
        self.ask(Question::Id(uid))
    }

    fn user_by_name(&self, name: &str) -> Option<DirectoryUser> {
        self.ask(Question::Name(name.to_owned()))
    }
}

fn with_groups(user: User) -> DirectoryUser {
    let gids = match CString::new(user.name.as_bytes()) {
        Ok(name) => getgrouplist(&name, user.gid).unwrap_or_else(|_| vec![user.gid]),
        Err(_) => vec![user.gid],
    };
    let name_of = |gid: Gid| Group::from_gid(gid).ok().flatten().map(|g| g.name);
    let groups = gids.into_iter().take(GROUPS).filter_map(name_of).collect();
    DirectoryUser { uid: user.uid.as_raw(), gid: user.gid.as_raw(), name: user.name, groups }
}

/// Login name of a user id, asked directly: for the start of the process.
pub fn login_name(uid: Uid) -> Option<String> {
    User::from_uid(uid).ok().flatten().map(|user| user.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_and_nobody_is_not() {
        let names = NameService::start().unwrap();
        let root = names.user_by_id(0).unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(names.user_by_name(&root.name), Some(root.clone()));
        assert!(!root.groups.is_empty());
        assert_eq!(names.user_by_id(3_999_999_999), None);
        assert_eq!(names.user_by_name("no such user"), None);
    }
}
