//! The lines of a configuration file: comments taken off, lines that go on with a backslash put together.

/// A line with the number of the first line of the file that it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub number: usize,
    pub text: String,
}

/// The lines that say something.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let mut out = Vec::new();
    let mut open: Option<Line> = None;
    for (at, raw) in text.lines().enumerate() {
        let (said, goes_on) = continued(without_comment(raw));
        let line = open.get_or_insert_with(|| Line { number: at + 1, text: String::new() });
        // Nothing is put between the two: a list may be broken behind a comma.
        line.text.push_str(&said.replace("\\#", "#"));
        if !goes_on {
            out.extend(open.take());
        }
    }
    out.extend(open);
    out.retain(|line| !line.text.trim().is_empty());
    out
}

/// Cuts at the first `#` that has no backslash before it.
fn without_comment(line: &str) -> &str {
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match c {
            '#' if !escaped => return &line[..at],
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    line
}

/// Whether a line goes on: it ends with an odd number of backslashes, whatever blanks follow.
fn continued(line: &str) -> (&str, bool) {
    let trimmed = line.trim_end();
    let backslashes = trimmed.bytes().rev().take_while(|b| *b == b'\\').count();
    if backslashes % 2 == 1 { (&trimmed[..trimmed.len() - 1], true) } else { (line, false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_lines_go_on() {
        let text = "# all of it\nA=1 # rest\nB=x\\#y\nC=1,\\\n2 \\  \n D=3\n\n E=\\\\\nF=1 \\ # gone\nG=2 \\";
        let read: Vec<(usize, String)> = lines(text).into_iter().map(|l| (l.number, l.text)).collect();
        let texts: Vec<(usize, &str)> = read.iter().map(|(n, t)| (*n, t.as_str())).collect();
        assert_eq!(texts, [(2, "A=1 "), (3, "B=x#y"), (4, "C=1,2  D=3"), (8, " E=\\\\"), (9, "F=1 G=2 ")]);
    }
}
