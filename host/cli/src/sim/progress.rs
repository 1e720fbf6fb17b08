//! A bar on standard error while a simulation runs, where that is a terminal: how far, how fast, how long still.

use ephor_sim::driver::Observer;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the bar is drawn anew.
const REFRESH: Duration = Duration::from_millis(100);
/// Instants between two looks at the clock.
const LOOK_EVERY: u32 = 256;
/// Characters of the bar.
const WIDTH: usize = 30;

/// See the module.
pub struct Progress {
    terminal: bool,
    shown: bool,
    instants: u32,
    label: String,
    began: Instant,
    last: Instant,
}

impl Default for Progress {
    fn default() -> Self {
        let now = Instant::now();
        let terminal = io::stderr().is_terminal();
        Self { terminal, shown: false, instants: 0, label: String::new(), began: now, last: now }
    }
}

impl Progress {
    /// Another simulation begins.
    pub fn next(&mut self, label: &str) {
        self.label = format!("{} ", crate::output::clean(label));
        self.began = Instant::now();
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Observer for Progress {
    fn instant(&mut self, ended: usize, all: usize) {
        self.instants += 1;
        if !self.terminal || self.instants < LOOK_EVERY {
            return;
        }
        self.instants = 0;
        if self.last.elapsed() < REFRESH {
            return;
        }
        self.last = Instant::now();
        self.shown = true;
        let text = bar(&self.label, ended, all, self.began.elapsed());
        // A terminal that is gone needs no bar.
        let _ = write!(io::stderr(), "\r\x1b[K{text}");
    }
}

fn bar(label: &str, ended: usize, all: usize, elapsed: Duration) -> String {
    let done = (ended * WIDTH).checked_div(all).unwrap_or(WIDTH).min(WIDTH);
    let rate = ended as f64 / elapsed.as_secs_f64().max(1e-3);
    let left = all.saturating_sub(ended) as f64 / rate.max(1e-3);
    let left = if ended == 0 { "?".to_owned() } else { format!("{left:.0} s") };
    format!("{label}[{}{}] {ended} of {all} jobs, {rate:.0}/s, {left} left", "#".repeat(done), "-".repeat(WIDTH - done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_says_how_far_how_fast_and_how_long() {
        assert_eq!(
            bar("fifo ", 50, 200, Duration::from_secs(5)),
            "fifo [#######-----------------------] 50 of 200 jobs, 10/s, 15 s left"
        );
        assert_eq!(bar("", 0, 0, Duration::ZERO), format!("[{}] 0 of 0 jobs, 0/s, ? left", "#".repeat(WIDTH)));
    }
}
