//! What `srun` says of its tasks, in the words that clients match, and the exit code that they add up to.

use super::PROGRAM;

/// What the C library calls the signals, from 1 on.
const SIGNALS: [&str; 31] = [
    "Hangup",
    "Interrupt",
    "Quit",
    "Illegal instruction",
    "Trace/breakpoint trap",
    "Aborted",
    "Bus error",
    "Floating point exception",
    "Killed",
    "User defined signal 1",
    "Segmentation fault",
    "User defined signal 2",
    "Broken pipe",
    "Alarm clock",
    "Terminated",
    "Stack fault",
    "Child exited",
    "Continued",
    "Stopped (signal)",
    "Stopped",
    "Stopped (tty input)",
    "Stopped (tty output)",
    "Urgent I/O condition",
    "CPU time limit exceeded",
    "File size limit exceeded",
    "Virtual timer expired",
    "Profiling timer expired",
    "Window changed",
    "I/O possible",
    "Power failure",
    "Bad system call",
];

/// How tasks of one node ended together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Ranks of the tasks.
    pub tasks: Vec<u32>,
    /// Exit code.
    pub code: i32,
    /// The signal that ended them; 0: none.
    pub signal: i32,
    /// Whether they left a core.
    pub core_dumped: bool,
}

impl Ended {
    /// What they add to the exit code of the command.
    pub fn exit_code(&self) -> u8 {
        let code = if self.signal > 0 { self.signal.saturating_add(128) } else { self.code };
        // What the system gives is in this range.
        code.clamp(0, 255) as u8
    }

    /// The line for standard error; `None`: they ended well.
    pub fn line(&self, node: &str) -> Option<String> {
        let tasks = tasks(&self.tasks);
        match (self.signal, self.code) {
            (0, 0) => None,
            (0, code) => Some(format!("{PROGRAM}: error: {node}: {tasks}: Exited with exit code {code}")),
            (signal, _) => {
                let name = usize::try_from(signal.saturating_sub(1)).ok().and_then(|at| SIGNALS.get(at));
                let name = name.map_or_else(|| format!("Unknown signal {signal}"), |name| (*name).to_owned());
                let core = if self.core_dumped { " (core dumped)" } else { "" };
                Some(format!("{PROGRAM}: error: {node}: {tasks}: {name}{core}"))
            }
        }
    }
}

/// `task 3` or `tasks 0-2,5`.
fn tasks(ranks: &[u32]) -> String {
    format!("task{} {}", if ranks.len() == 1 { "" } else { "s" }, folded(ranks))
}

/// The line on what the tasks of a step are doing.
pub fn status(step: &str, ranks: &[u32], state: &str) -> String {
    format!("{PROGRAM}: StepId={step} {}: {state}", tasks(ranks))
}

/// Numbers as a short list, sorted: `0-2,5`.
pub fn folded(numbers: &[u32]) -> String {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [only] => only.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_in_the_words_that_clients_match() {
        let line = |tasks: &[u32], code, signal, core_dumped| {
            let ended = Ended { tasks: tasks.to_vec(), code, signal, core_dumped };
            (ended.line("n1").unwrap_or_default(), ended.exit_code())
        };
        assert_eq!(line(&[0, 1], 0, 0, false), (String::new(), 0));
        assert_eq!(line(&[3], 7, 0, false), ("srun: error: n1: task 3: Exited with exit code 7".into(), 7));
        assert_eq!(line(&[2, 0, 1, 5], 1, 0, false).0, "srun: error: n1: tasks 0-2,5: Exited with exit code 1");
        assert_eq!(line(&[1], 0, 9, false), ("srun: error: n1: task 1: Killed".into(), 137));
        assert_eq!(line(&[1], 0, 11, true).0, "srun: error: n1: task 1: Segmentation fault (core dumped)");
        assert_eq!(line(&[1], 0, 40, false), ("srun: error: n1: task 1: Unknown signal 40".into(), 168));
        assert_eq!(status("5.0", &[0, 1, 2], "running"), "srun: StepId=5.0 tasks 0-2: running");
    }
}
