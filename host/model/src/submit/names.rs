//! The name that was probably meant: the nearest of a list, by edits.

/// Edits (insert, delete, replace) from one text to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replace = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The nearest candidate, where one is near enough that it may have been meant.
pub fn nearest<'a>(text: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Longer than any name: not worth the quadratic comparison.
    if text.len() > 64 {
        return None;
    }
    let bound = (text.chars().count() / 3).max(1);
    candidates.map(|c| (distance(text, c), c)).filter(|(d, _)| *d <= bound).min_by_key(|(d, _)| *d).map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_their_option() {
        let names = || ["time", "partition", "ntasks-per-node"].into_iter();
        assert_eq!(nearest("pertition", names()), Some("partition"));
        assert_eq!(nearest("tme", names()), Some("time"));
        assert_eq!(nearest("task-per-nodes", names()), Some("ntasks-per-node"));
        assert_eq!(nearest("blublu", names()), None);
    }
}
