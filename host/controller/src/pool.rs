//! Threads for policy calls: bounded, and fair among users, so that nobody waits for another's hostile policy.
//!
//! Calls of one user are served in order; among users the pool goes round. A call that must wait for more than the
//! pool holds is refused at once.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Calls that wait, over all users.
const WAITING: usize = 16_384;
/// Calls of one user that wait.
const WAITING_PER_USER: usize = 8_192;

/// The pool is full: try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests are waiting; try again in a moment")]
pub struct Busy;

type Task = Box<dyn FnOnce() + Send>;

/// See the module. The threads end when it is dropped.
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    came: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Whose turn is next. Each user with waiting calls stands in it once.
    turns: VecDeque<u32>,
    tasks: HashMap<u32, VecDeque<Task>>,
    waiting: usize,
    closed: bool,
}

impl Queue {
    fn push(&mut self, user: u32, task: Task) -> Result<(), Busy> {
        let own = self.tasks.entry(user).or_default();
        if self.closed || self.waiting >= WAITING || own.len() >= WAITING_PER_USER {
            return Err(Busy);
        }
        if own.is_empty() {
            self.turns.push_back(user);
        }
        own.push_back(task);
        self.waiting += 1;
        Ok(())
    }

    fn pop(&mut self) -> Option<Task> {
        let user = self.turns.pop_front()?;
        let own = self.tasks.get_mut(&user)?;
        let task = own.pop_front();
        if own.is_empty() {
            self.tasks.remove(&user);
        } else {
            self.turns.push_back(user);
        }
        self.waiting -= 1;
        task
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // The queue is consistent after every statement under the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            let mut queue = self.queue();
            let task = loop {
                match queue.pop() {
                    Some(task) => break task,
                    None if queue.closed => return,
                    None => queue = self.came.wait(queue).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(queue);
            // A panic costs its caller the answer, and nobody else a thread.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(task));
        }
    }
}

impl Pool {
    /// Threads as many as the machine has processors, at least two: one hostile call leaves one free.
    pub fn threads() -> usize {
        std::thread::available_parallelism().map_or(2, NonZeroUsize::get).clamp(2, 16)
    }

    /// Starts a pool.
    ///
    /// # Errors
    /// The system has no threads left.
    pub fn start(name: &str, threads: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), came: Condvar::new() });
        let pool = Self { shared: shared.clone() };
        for n in 0..threads.max(1) {
            let shared = shared.clone();
            std::thread::Builder::new().name(format!("{name}-{n}")).spawn(move || shared.work())?;
        }
        Ok(pool)
    }

    /// Runs a call when that user's turn comes.
    ///
    /// # Errors
    /// Too much waits already, or the call panicked.
    pub async fn run<T, F>(&self, user: u32, call: F) -> Result<T, Busy>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let (answer, receiver) = oneshot::channel();
        let task = Box::new(move || {
            if !answer.is_closed() {
                // A caller that went away since needs no answer.
                let _ = answer.send(call());
            }
        });
        self.shared.queue().push(user, task)?;
        self.shared.came.notify_one();
        receiver.await.map_err(|_| Busy)
    }

    /// Calls that wait now.
    pub fn waiting(&self) -> usize {
        self.shared.queue().waiting
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        self.shared.came.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn users_take_turns() {
        let mut queue = Queue::default();
        let (sender, order) = mpsc::channel();
        for (user, n) in [(1, 0), (1, 1), (1, 2), (2, 3), (3, 4)] {
            let sender = sender.clone();
            queue.push(user, Box::new(move || sender.send((user, n)).unwrap())).unwrap();
        }
        while let Some(task) = queue.pop() {
            task();
        }
        drop(sender);
        assert_eq!(order.iter().collect::<Vec<_>>(), [(1, 0), (2, 3), (3, 4), (1, 1), (1, 2)]);
        assert_eq!(queue.waiting, 0);
    }

    #[test]
    fn one_user_cannot_fill_the_pool() {
        let mut queue = Queue::default();
        let fill = (0..WAITING).map(|_| queue.push(1, Box::new(|| {}))).filter(Result::is_ok).count();
        assert_eq!(fill, WAITING_PER_USER);
        assert_eq!(queue.push(2, Box::new(|| {})), Ok(()));
    }

    #[tokio::test]
    async fn answers_come_back_and_a_panic_leaves_the_threads() {
        let pool = Pool::start("test", 1).unwrap();
        let panics = || -> u32 { panic!("as a test") };
        assert_eq!(pool.run(1, panics).await, Err(Busy));
        assert_eq!(pool.run(1, || 7).await, Ok(7));
    }
}
