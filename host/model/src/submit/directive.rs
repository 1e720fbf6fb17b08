//! The directive lines of a script: `#SBATCH` and `#EPHOR` before the first command.

use super::error::{Place, SubmitError};
use super::option::{self, Dialect, Given};
use crate::limits;

/// What begins a directive line, in the first column.
const MARKERS: [(&[u8], Dialect); 2] = [(b"#SBATCH", Dialect::Slurm), (b"#EPHOR", Dialect::Ephor)];

/// Checks that a text can be a script at all.
///
/// # Errors
/// An empty or too large text, no `#!`, a NUL byte, CR LF line ends.
pub fn check_script(text: &[u8]) -> Result<(), SubmitError> {
    if text.is_empty() {
        return Err(SubmitError::new("the script is empty; it must begin with a line like #!/bin/sh"));
    }
    if text.len() > limits::SCRIPT_BYTES {
        let size = text.len();
        let most = limits::SCRIPT_BYTES;
        return Err(SubmitError::new(format!(
            "the script has {size} bytes and at most {most} are taken; keep data in files of their own"
        )));
    }
    let line_of = |at: usize| Place::Line(1 + text[..at].iter().filter(|b| **b == b'\n').count());
    if let Some(at) = text.iter().position(|b| *b == 0) {
        return Err(SubmitError::at(
            line_of(at),
            "a NUL byte: this is no script; to run a program as it is, write it after --",
        ));
    }
    if let Some(at) = text.windows(2).position(|w| w == b"\r\n") {
        return Err(SubmitError::at(
            line_of(at),
            "DOS line breaks (CR LF) where UNIX line breaks (LF) are needed; sed -i 's/\\r$//' FILE puts them right",
        ));
    }
    if !text.starts_with(b"#!") {
        return Err(SubmitError::at(
            Place::Line(1),
            "a script begins with #! and the path of an interpreter, such as #!/bin/sh",
        ));
    }
    Ok(())
}

/// The options in the directive lines of a script, in their order.
///
/// # Errors
/// Open quotes, words that are no options, unknown options, missing values, lines that are not UTF-8.
pub fn options(text: &[u8]) -> Result<Vec<Given>, SubmitError> {
    let mut all = Vec::new();
    for (index, line) in text.split(|b| *b == b'\n').enumerate() {
        let Some(first) = line.trim_ascii_start().first() else { continue };
        if *first != b'#' {
            break;
        }
        let Some((rest, dialect)) = MARKERS.iter().find_map(|(m, d)| Some((line.strip_prefix(*m)?, *d))) else {
            continue;
        };
        let place = Place::Line(index + 1);
        let rest = std::str::from_utf8(rest).map_err(|_| SubmitError::at(place, "the directive is not UTF-8 text"))?;
        let words = split(rest).map_err(|message| SubmitError::at(place, message))?;
        all.extend(option::read_words(&words, place, dialect)?);
    }
    Ok(all)
}

/// Splits a directive into words. Quotes of both kinds group and a backslash keeps the next character as it is, inside
/// quotes too; an unquoted `#` ends the line, even in the middle of a word. There is no expansion of any kind.
///
/// # Errors
/// A quote that is not closed.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    // `None` between words, so that `""` is a word of its own.
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', _) => word.get_or_insert_default().extend(chars.next()),
            (_, Some(open)) if c == open => quote = None,
            (_, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('#', None) => break,
            (_, None) if c.is_ascii_whitespace() => words.extend(word.take()),
            (_, None) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(open) = quote {
        return Err(format!("the quote {open} is not closed in [{}]", line.trim()));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_quotes_and_escapes() {
        for (line, words) in [
            ("  -J\ttabbed  ", &["-J", "tabbed"][..]),
            (r#"--job-name="my job" --comment='a # b'"#, &["--job-name=my job", "--comment=a # b"]),
            (r"--job-name=foo\#bar # rest", &["--job-name=foo#bar"]),
            ("-t 8:00#x", &["-t", "8:00"]),
            (r#"--comment "" -H"#, &["--comment", "", "-H"]),
            (r#"-J "a\"b""#, &["-J", "a\"b"]),
            ("", &[]),
        ] {
            assert_eq!(split(line).unwrap(), words, "{line}");
        }
        assert!(split("-J 'x").unwrap_err().contains("not closed"));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let mut script = b"#!/bin/sh\n#SBATCH ".to_vec();
            script.extend(text);
            let _ = check_script(&script).and_then(|()| options(&script));
        }
    }
}
