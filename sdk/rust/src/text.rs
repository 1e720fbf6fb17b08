//! Wording that policies share.

/// Most names that a text lists.
const MOST_NAMES: usize = 20;
/// Most bytes of such a list; the host takes texts of 4,096.
const MOST_BYTES: usize = 1_000;

/// Names with commas between them; long lists end in `and N more`.
pub fn list<S: AsRef<str>>(names: &[S]) -> String {
    let mut text = String::new();
    for (at, name) in names.iter().enumerate() {
        let name = name.as_ref();
        if at == MOST_NAMES || text.len() + name.len() > MOST_BYTES {
            text.push_str(&format!(" and {} more", names.len() - at));
            break;
        }
        if at > 0 {
            text.push_str(", ");
        }
        text.push_str(name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_cut_by_number_and_by_bytes() {
        let names: Vec<String> = (0..25).map(|n| format!("q{n}")).collect();
        assert_eq!(list(&names[..2]), "q0, q1");
        assert!(list(&names).ends_with("q19 and 5 more"));
        assert_eq!(list::<&str>(&[]), "");
        let long = "x".repeat(600);
        assert_eq!(list(&[&long, &long]), format!("{long} and 1 more"));
    }
}
