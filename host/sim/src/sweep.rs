//! What was held and what was waited for over the time of a schedule, as steps.

use crate::metrics::Ran;

/// What was so in `[from, until)`, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Begin.
    pub from: i64,
    /// End.
    pub until: i64,
    /// Jobs that waited.
    pub waiting: i64,
    /// What they asked for together.
    pub asked: i64,
    /// Jobs that ran.
    pub running: i64,
    /// What they held together.
    pub held: i64,
}

/// Calls `each` for every step, in order; steps have a length above 0.
pub fn sweep(jobs: &[Ran], mut each: impl FnMut(&Level)) {
    let mut changes: Vec<(i64, [i64; 4])> = Vec::with_capacity(jobs.len() * 3);
    for job in jobs {
        changes.push((job.submit, [1, job.size, 0, 0]));
        changes.push((job.start, [-1, -job.size, 1, job.size]));
        changes.push((job.start + job.run, [0, 0, -1, -job.size]));
    }
    changes.sort_unstable_by_key(|(at, _)| *at);
    let mut level = Level::default();
    for (at, [waiting, asked, running, held]) in changes {
        level.until = at;
        if level.until > level.from && (level.waiting > 0 || level.running > 0) {
            each(&level);
        }
        level.from = at;
        level.waiting += waiting;
        level.asked += asked;
        level.running += running;
        level.held += held;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_worked_out_by_hand() {
        let ran = |submit, start, run, size| Ran { submit, start, run, size };
        let mut steps = Vec::new();
        sweep(&[ran(0, 0, 10, 2), ran(5, 10, 5, 3), ran(20, 20, 1, 1)], |l| {
            steps.push((l.from, l.until, l.waiting, l.asked, l.running, l.held));
        });
        assert_eq!(steps, [(0, 5, 0, 0, 1, 2), (5, 10, 1, 3, 1, 2), (10, 15, 0, 0, 1, 3), (20, 21, 0, 0, 1, 1)]);
    }
}
