//! Events that mail is asked for.

/// The events, in the order in which they are shown, and whether `ALL` means them.
const EVENTS: [(&str, bool); 11] = [
    ("ARRAY_TASKS", false),
    ("INVALID_DEPEND", true),
    ("BEGIN", true),
    ("END", true),
    ("FAIL", true),
    ("REQUEUE", true),
    ("STAGE_OUT", true),
    ("TIME_LIMIT_50", false),
    ("TIME_LIMIT_80", false),
    ("TIME_LIMIT_90", false),
    ("TIME_LIMIT", false),
];

/// Reads a list of events, in any case, and gives them in their order, as they are shown; none for `NONE`.
/// `None`: there is no such event.
pub fn parse(text: &str) -> Option<String> {
    let mut asked = [false; EVENTS.len()];
    for word in text.split(',') {
        match word.to_ascii_uppercase().as_str() {
            "NONE" => asked = [false; EVENTS.len()],
            "ALL" => asked.iter_mut().zip(EVENTS).for_each(|(asked, (_, all))| *asked |= all),
            event => *asked.get_mut(EVENTS.iter().position(|(name, _)| *name == event)?)? = true,
        }
    }
    let shown: Vec<&str> = EVENTS.iter().zip(asked).filter(|(_, asked)| *asked).map(|((name, _), _)| *name).collect();
    Some(shown.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_ordered() {
        for (text, shown) in [
            ("FAIL,END", "END,FAIL"),
            ("ALL", "INVALID_DEPEND,BEGIN,END,FAIL,REQUEUE,STAGE_OUT"),
            ("NONE", ""),
            ("begin,end", "BEGIN,END"),
            ("INVALID_DEPEND,ARRAY_TASKS", "ARRAY_TASKS,INVALID_DEPEND"),
        ] {
            assert_eq!(parse(text).as_deref(), Some(shown));
        }
        assert_eq!([parse("X"), parse(""), parse("END,")], [None, None, None]);
    }
}
