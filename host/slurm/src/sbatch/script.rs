//! The directive lines of a batch script: which lines count, and their words.
//!
//! All directives of a script are one list of words, so that a value may stand on the line after its option.

use super::PROGRAM;
use crate::failure::Failure;
use ephor_model::limits;

/// What the directives of a script say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// Words of the `#SBATCH` (and `#SLURM`) lines.
    pub words: Vec<String>,
    /// Words of the `#PBS` lines.
    pub pbs: Vec<String>,
    /// Lines for standard error that stop nothing.
    pub warnings: Vec<String>,
}

/// Checks that a text can be a script at all.
///
/// # Errors
/// An empty or too large text, no `#!`, a NUL byte, CR LF line ends.
pub fn check(text: &[u8]) -> Result<(), Failure> {
    let fail = |lines: &[&str]| Failure {
        lines: lines.iter().map(|line| format!("{PROGRAM}: error: {line}")).collect(),
        code: 1,
    };
    if text.is_empty() {
        return Err(fail(&["Batch script is empty!"]));
    }
    if text.len() > limits::SCRIPT_BYTES {
        let size = format!("Batch script is larger than the {} bytes that are taken", limits::SCRIPT_BYTES);
        return Err(fail(&[&size]));
    }
    if text.trim_ascii().is_empty() {
        return Err(fail(&["Batch script contains only whitespace!"]));
    }
    if !text.starts_with(b"#!") {
        return Err(fail(&[
            "This does not look like a batch script.  The first",
            "line must start with #! followed by the path to an interpreter.",
            "For instance: #!/bin/sh",
        ]));
    }
    if text.contains(&0) {
        return Err(fail(&["The Slurm controller does not allow scripts that", "contain a NULL character '\\0'."]));
    }
    if text.windows(2).any(|pair| pair == b"\r\n") {
        return Err(fail(&[
            "Batch script contains DOS line breaks (\\r\\n)",
            "instead of expected UNIX line breaks (\\n).",
        ]));
    }
    Ok(())
}

/// Reads the directives before the first command. `name` is the script's name in messages.
///
/// # Errors
/// Open quotes, a `:` between components, lines that are not UTF-8.
pub fn directives(text: &[u8], name: &str) -> Result<Directives, Failure> {
    let mut found = Directives::default();
    for (index, line) in text.split(|b| *b == b'\n').enumerate() {
        match line.trim_ascii_start().first() {
            None => continue,
            Some(b'#') => {}
            Some(_) => break,
        }
        let marked = |mark: &str| line.strip_prefix(mark.as_bytes());
        let (rest, words) = if let Some(rest) = marked("#SBATCH") {
            (rest, &mut found.words)
        } else if let Some(rest) = marked("#SLURM") {
            let warning = "Change from #SLURM to #SBATCH in your script and verify the options are valid in sbatch";
            found.warnings.push(format!("{PROGRAM}: error: {warning}"));
            (rest, &mut found.words)
        } else if let Some(rest) = marked("#PBS") {
            (rest, &mut found.pbs)
        } else {
            continue;
        };
        let fail = |what: String| Failure::fatal(PROGRAM, format!("{name}: line {}: {what}", index + 1));
        let rest = std::str::from_utf8(rest).map_err(|_| fail("this is not UTF-8 text".into()))?;
        words.extend(split(rest).map_err(fail)?);
    }
    Ok(found)
}

/// Splits a directive into words. Quotes of both kinds group and a backslash keeps the next character as it is; an
/// unquoted `#` ends the line, even in the middle of a word. There is no expansion of any kind.
///
/// # Errors
/// A quote that is not closed; a word that begins with `:`.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    loop {
        let word_start = rest.trim_start();
        match word_start.chars().next() {
            None | Some('#') => return Ok(words),
            Some(':') => return Err(format!("Unexpected `:` in [{}]", rest.trim_end())),
            Some(_) => {}
        }
        let (word, after) =
            word(word_start).map_err(|quote| format!("Unmatched `{quote}` in [{}]", rest.trim_end()))?;
        // Slurm drops words that are empty, quoted or not.
        words.extend(Some(word).filter(|word| !word.is_empty()));
        rest = after;
    }
}

/// The first word and what follows it, or the quote that is left open.
fn word(text: &str) -> Result<(String, &str), char> {
    let mut out = String::new();
    let mut quote: Option<char> = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (c, quote) {
            ('\\', _) => out.extend(chars.next().map(|(_, c)| c)),
            (_, Some(open)) if c == open => quote = None,
            (_, Some(_)) => out.push(c),
            ('"' | '\'', None) => quote = Some(c),
            ('#', None) => return Ok((out, "")),
            (_, None) if c.is_ascii_whitespace() => return Ok((out, &text[at..])),
            (_, None) => out.push(c),
        }
    }
    quote.map_or(Ok((out, "")), Err)
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
            ("-t 8:00#x y", &["-t", "8:00"]),
            (r#"-t "" -H"#, &["-t", "-H"]),
            (r#"-J "a\"b" -J a"b c"d"#, &["-J", "a\"b", "-J", "ab cd"]),
            (r"-J a\", &["-J", "a"]),
            ("", &[]),
        ] {
            assert_eq!(split(line).unwrap(), words, "{line}");
        }
        for (line, error) in [
            (" -J 'a", "Unmatched `'` in [ 'a]"),
            (r#" --comment="abc"#, "Unmatched `\"` in [--comment=\"abc]"),
            (" -t :5", "Unexpected `:` in [ :5]"),
            (" : -n 2", "Unexpected `:` in [: -n 2]"),
        ] {
            assert_eq!(split(line).unwrap_err(), error, "{line}");
        }
    }

    #[test]
    fn lines_count_until_the_first_command() {
        let text = "#!/bin/sh\n#SBATCH -t\n\n \t\n# x\n##SBATCH -a\n#SBATCH\n #SBATCH -b\n#SBATCH 5\n#PBS -N x\n#SLURM -H\necho\n\
                    #SBATCH -c 9\n";
        let found = directives(text.as_bytes(), "x").unwrap();
        assert_eq!(found.words, ["-t", "5", "-H"]);
        assert_eq!(found.pbs, ["-N", "x"]);
        assert_eq!(found.warnings.len(), 1);
        let open = directives(b"#!/bin/sh\n#SBATCH --comment=\"abc\n", "s.sh").unwrap_err();
        assert_eq!(open.lines, ["sbatch: fatal: s.sh: line 2: Unmatched `\"` in [--comment=\"abc]"]);
    }

    #[test]
    fn what_is_no_script_is_told() {
        for (text, part) in [
            (&b""[..], "Batch script is empty!"),
            (b" \n", "only whitespace"),
            (b"echo\n", "does not look like a batch script"),
            (b"#!/bin/sh\r\n", "DOS line breaks"),
            (b"#!/bin/sh\n\0", "does not allow scripts that"),
        ] {
            let failure = check(text).unwrap_err();
            assert!(failure.lines[0].contains(part), "{failure}");
            assert_eq!(failure.code, 1);
        }
        assert_eq!(check(b"#!/bin/sh\n"), Ok(()));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let mut script = b"#!/bin/sh\n#SBATCH ".to_vec();
            script.extend(text);
            let _ = check(&script).and_then(|()| directives(&script, "x"));
        }
    }
}
