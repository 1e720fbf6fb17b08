//! Lists of node names in brackets, such as `n[1-3,5],g01`: expanding and folding.

use crate::limits;

/// Writes a list out into names, in the order given. Zeros before a number are kept: `n[08-10]` is n08, n09, n10.
///
/// # Errors
/// Open or nested brackets, ranges that are no numbers or run backwards, empty names, and more than
/// [`limits::NODES`] names.
pub fn expand(text: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for part in split(text)? {
        let mut unfinished = vec![String::new()];
        let mut rest = part;
        while let Some((before, inner)) = rest.split_once('[') {
            // `split` has seen that every bracket is closed.
            let (list, after) = inner.split_once(']').unwrap_or((inner, ""));
            let numbers = numbers(list)?;
            if unfinished.len().saturating_mul(numbers.len()) > limits::NODES as usize {
                return Err(format!("'{part}' is more than {} nodes", limits::NODES));
            }
            unfinished =
                unfinished.iter().flat_map(|p| numbers.iter().map(move |n| format!("{p}{before}{n}"))).collect();
            rest = after;
        }
        unfinished.iter_mut().for_each(|name| name.push_str(rest));
        if unfinished.iter().any(|name| name.is_empty() || name.contains(['/', ' '])) {
            return Err(format!("'{text}' is not a list of nodes; write names like n1,n2 or n[1-3,5]"));
        }
        names.append(&mut unfinished);
        if names.len() > limits::NODES as usize {
            return Err(format!("'{text}' is more than {} nodes", limits::NODES));
        }
    }
    Ok(names)
}

/// Splits at the commas outside brackets.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let mut parts = Vec::new();
    let (mut start, mut open) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '[' if !open => open = true,
            ']' if open => open = false,
            '[' | ']' => return Err(format!("the brackets of '{text}' do not match")),
            ',' if !open => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if open {
        return Err(format!("the brackets of '{text}' do not match"));
    }
    parts.push(text[start..].trim());
    Ok(parts)
}

/// Writes `1-3,05` out into its numbers as text.
fn numbers(list: &str) -> Result<Vec<String>, String> {
    let fail = |why: &str| format!("'[{list}]' {why}; write numbers and ranges like [1-3,5]");
    let number = |s: &str| {
        let plain = !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| s.parse::<u64>().ok()).flatten().ok_or_else(|| fail("is not a list of numbers"))
    };
    let mut all = Vec::new();
    for part in list.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (number(first)?, number(last)?);
        if to < from {
            return Err(fail("has a range that runs backwards"));
        }
        if to - from >= u64::from(limits::NODES) || all.len() >= limits::NODES as usize {
            return Err(fail("has more numbers than there can be nodes"));
        }
        let width = if first.starts_with('0') { first.len() } else { 0 };
        all.extend((from..=to).map(|n| format!("{n:0width$}")));
    }
    Ok(all)
}

/// Writes names as a short list, sorted, each once: n1, n2, n3, g1 become `g1,n[1-3]`.
pub fn fold<S: AsRef<str>>(names: &[S]) -> String {
    let mut parts: Vec<(&str, Number<'_>)> = names.iter().map(|n| cut(n.as_ref())).collect();
    parts.sort_unstable_by_key(|(prefix, n)| (*prefix, n.value, n.text.len()));
    parts.dedup_by_key(|(prefix, n)| (*prefix, n.text));
    let mut out = String::new();
    for group in parts.chunk_by(|a, b| a.0 == b.0 && !a.1.text.is_empty() && !b.1.text.is_empty()) {
        if !out.is_empty() {
            out.push(',');
        }
        let runs: Vec<String> = group.chunk_by(|a, b| follows(&a.1, &b.1)).map(run).collect();
        out.push_str(group[0].0);
        match runs.as_slice() {
            [one] if group.len() == 1 => out.push_str(one),
            _ => {
                out.push('[');
                out.push_str(&runs.join(","));
                out.push(']');
            }
        }
    }
    out
}

/// The number that a name ends in; its text is empty where there is none.
struct Number<'a> {
    value: u64,
    text: &'a str,
}

fn cut(name: &str) -> (&str, Number<'_>) {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count().min(18);
    let (prefix, text) = name.split_at(name.len() - digits);
    // At most 18 digits, so that it is always a number, but for a name without any.
    (prefix, Number { value: text.parse().unwrap_or(0), text })
}

/// Whether a range from `a` writes `b` out as it is.
fn follows(a: &Number<'_>, b: &Number<'_>) -> bool {
    let unpadded = !a.text.starts_with('0') && !b.text.starts_with('0');
    b.value == a.value + 1 && (a.text.len() == b.text.len() || unpadded)
}

fn run(numbers: &[(&str, Number<'_>)]) -> String {
    match numbers {
        [(_, first), .., (_, last)] => format!("{}-{}", first.text, last.text),
        [(_, only)] => only.text.to_owned(),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_expand() {
        for (text, names) in [
            ("n1", "n1"),
            ("n[1-3,7]", "n1 n2 n3 n7"),
            ("n[08-10],g1", "n08 n09 n10 g1"),
            ("r[1-2]c[0-1]x", "r1c0x r1c1x r2c0x r2c1x"),
        ] {
            assert_eq!(expand(text).unwrap().join(" "), names);
        }
        for bad in ["", "n[1", "n1]", "n[[1]]", "n[3-1]", "n[a]", "a,,b", "n[1-9999999]", "./file", "n[]"] {
            assert!(expand(bad).is_err(), "{bad}");
        }
        assert!(expand("a[1-1000]b[1-1000]c[1-1000]").unwrap_err().contains("more than"));
    }

    #[test]
    fn names_fold() {
        for (names, text) in [
            (&["n3", "n1", "n2", "g1", "n2"][..], "g1,n[1-3]"),
            (&["n9", "n10", "n12"], "n[9-10,12]"),
            (&["n09", "n10", "n9"], "n[9,09-10]"),
            (&["login", "a", "a1"], "a,a1,login"),
            (&[], ""),
        ] {
            assert_eq!(fold(names), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn folding_loses_nothing(names in proptest::collection::vec("[ab]{0,1}c[0-9]{0,3}", 0..40)) {
            let mut sorted = names.clone();
            sorted.sort();
            sorted.dedup();
            if !sorted.is_empty() {
                let mut back = expand(&fold(&names)).unwrap();
                back.sort();
                proptest::prop_assert_eq!(back, sorted);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[n0-9,\\[\\]\\-é]{0,20}") {
            let _ = expand(&text);
        }
    }
}
