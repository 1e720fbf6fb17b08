//! Lists of nodes in a site's files, written out within the bounds that hold for all of them together.

use super::error::{Found, Wrong};
use super::report::Place;
use ephor_model::limits;
use ephor_model::submit::hostlist;

/// Digits of one number of a list: more make no number of a node.
const DIGITS: usize = 18;

/// What is left of the names that lists may amount to.
#[derive(Debug)]
pub(super) struct Hosts {
    left: usize,
    /// Whether it was told that there are more.
    told: bool,
}

impl Hosts {
    pub fn new() -> Self {
        Self { left: limits::IMPORT_NAMES, told: false }
    }

    /// Writes a list out; `None`: it was wrong, and that is told.
    pub fn expand(&mut self, place: &Place, key: &str, list: &str, found: &mut Found) -> Option<Vec<String>> {
        if let Err(why) = reasonable(list) {
            found.value(place, key, list, why);
            return None;
        }
        match hostlist::expand(list) {
            Ok(names) => self.spend(place, names.len(), found).then_some(names),
            // The reason has the list in it, which may be as long as a file.
            Err(why) => {
                let told = if why.len() > limits::TEXT_BYTES { "it is not a list of nodes".into() } else { why };
                found.value(place, key, list, told);
                None
            }
        }
    }

    /// Counts names that are held; whether there is room for them.
    pub fn spend(&mut self, place: &Place, names: usize, found: &mut Found) -> bool {
        if let Some(left) = self.left.checked_sub(names) {
            self.left = left;
            return true;
        }
        if !self.told {
            found.add(place, Wrong::TooManyNames);
        }
        (self.left, self.told) = (0, true);
        false
    }
}

/// Refuses lists whose names would be too long, before there are thousands of them.
fn reasonable(list: &str) -> Result<(), String> {
    let (mut outside, mut digits, mut open) = (0, 0, false);
    for c in list.chars() {
        match c {
            // A bracket without anything in it counts too.
            '[' => (open, digits, outside) = (true, 0, outside + 1),
            ']' => (open, digits) = (false, 0),
            ',' if !open => (outside, digits) = (0, 0),
            _ if open => digits = if c.is_ascii_digit() { digits + 1 } else { 0 },
            _ => outside += c.len_utf8(),
        }
        if outside > limits::NAME_BYTES {
            return Err(format!("a name has at most {} bytes", limits::NAME_BYTES));
        }
        if digits > DIGITS {
            return Err(format!("a number has at most {DIGITS} digits"));
        }
    }
    Ok(())
}

/// Whether Ephor takes it for the name of an object or for a feature.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= limits::NAME_BYTES
        && name.chars().all(|c| c.is_alphanumeric() || "._-+@".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_bounded() {
        let place = Place { file: "f".into(), line: 1 };
        let (mut hosts, mut found) = (Hosts::new(), Found::default());
        let names = hosts.expand(&place, "Nodes", "rack[0-1]node[09-10]", &mut found).unwrap();
        assert_eq!(names.join(" "), "rack0node09 rack0node10 rack1node09 rack1node10");
        assert!(hosts.expand(&place, "Nodes", &format!("{}[1-9]", "n".repeat(256)), &mut found).is_none());
        assert!(hosts.expand(&place, "Nodes", &format!("n[{}1-9]", "0".repeat(18)), &mut found).is_none());
        assert!(hosts.expand(&place, "Nodes", "n[2-1]", &mut found).is_none());
        for _ in 0..5 {
            let _ = hosts.expand(&place, "Nodes", "n[0-999999]", &mut found);
        }
        let text = found.into_mistakes().to_string();
        let parts = ["at most 255 bytes", "at most 18 digits", "runs backwards", "more than 4000000 names together"];
        assert_eq!(text.lines().count(), parts.len(), "{text}");
        assert!(text.lines().zip(parts).all(|(line, part)| line.contains(part)), "{text}");
    }
}
