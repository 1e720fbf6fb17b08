//! `KEY=VALUE` on a line: blanks around `=`, values in quotation marks.

use super::error::{Wrong, short};
use ephor_model::limits;

/// A key as it was written, with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub key: String,
    pub value: String,
}

impl Pair {
    /// The key as it is looked up: its case does not matter.
    pub fn lower(&self) -> String {
        self.key.to_ascii_lowercase()
    }

    pub fn is(&self, key: &str) -> bool {
        self.key.eq_ignore_ascii_case(key)
    }
}

/// Reads a line.
pub(super) fn read(line: &str) -> Result<Vec<Pair>, Wrong> {
    let mut pairs = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        if pairs.len() >= limits::IMPORT_PAIRS {
            return Err(Wrong::TooManyPairs);
        }
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_.".contains(c))).unwrap_or(rest.len());
        let (key, behind) = rest.split_at(end);
        let value = behind.trim_start().strip_prefix('=').filter(|_| !key.is_empty());
        let Some(value) = value else {
            let word = rest.split_whitespace().next().unwrap_or(rest);
            return Err(Wrong::NotAPair(short(word)));
        };
        let value = value.trim_start();
        let (value, behind) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or_else(|| Wrong::OpenQuote(key.to_owned()))?,
            None if value.is_empty() => return Err(Wrong::NoValue(key.to_owned())),
            None => value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())),
        };
        if behind.starts_with(|c: char| !c.is_whitespace()) {
            return Err(Wrong::NotAPair(short(behind)));
        }
        pairs.push(Pair { key: key.to_owned(), value: value.to_owned() });
        rest = behind.trim_start();
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values() {
        let shown = |line: &str| match read(line) {
            Ok(pairs) => pairs.iter().map(|p| format!("{}|{}", p.key, p.value)).collect::<Vec<_>>().join(" "),
            Err(e) => e.to_string(),
        };
        assert_eq!(shown(" A=1  b = \"x y\"\tC.d=e=f "), "A|1 b|x y C.d|e=f");
        assert_eq!(shown(""), "");
        for (bad, part) in [
            ("A", "'A' is not KEY=VALUE"),
            ("A=1 B C=2", "'B' is not"),
            ("=3", "'=3' is not"),
            ("A=", "A has no value"),
            ("A=\"x", "does not end with one"),
            ("A=\"x\"y", "'y' is not"),
            ("Feature+=x", "'Feature+=x' is not"),
        ] {
            assert!(shown(bad).contains(part), "{bad}: {}", shown(bad));
        }
    }
}
