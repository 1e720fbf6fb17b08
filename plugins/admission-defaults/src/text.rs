//! Wording of amounts and lists in refusals.

use ephor_sdk::Duration;
use ephor_sdk::admission::Site;
use ephor_sdk::text::list;

/// A duration as users write time limits: `[days-]hours:minutes:seconds`.
pub fn duration(ms: Duration) -> String {
    // Rounded up, so that a limit of 999 ms does not read as none.
    let s = ms.max(0).unsigned_abs().div_ceil(1_000);
    let (days, hours, minutes, seconds) = (s / 86_400, s / 3_600 % 24, s / 60 % 60, s % 60);
    if days > 0 {
        format!("{days}-{hours:02}:{minutes:02}:{seconds:02}")
    } else {
        format!("{hours:02}:{minutes:02}:{seconds:02}")
    }
}

/// The queues that there are.
pub fn queues(names: &[String]) -> String {
    match names {
        [] => "there are no queues; an operator makes one with `ephor queue create NAME`".to_owned(),
        names => format!("name one of: {}", list(names)),
    }
}

/// The queues that take jobs.
pub fn open_queues<S: Site>(site: &S) -> String {
    let open: Vec<String> =
        site.queues().into_iter().filter(|name| site.queue(name).is_some_and(|info| info.takes)).collect();
    match open.as_slice() {
        [] => "none is open; ask an operator".to_owned(),
        open => format!("open are: {}", list(open)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_they_are_written() {
        assert_eq!(duration(0), "00:00:00");
        assert_eq!(duration(3_600_000), "01:00:00");
        assert_eq!(duration(90_061_000), "1-01:01:01");
        assert_eq!(duration(1), "00:00:01");
    }
}
