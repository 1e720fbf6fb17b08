//! Licences as people ask for them: `solver:2,mesher`.

use super::quantity::parse_count;
use crate::limits;

/// Reads `NAME[:N],...`; `NAME=N` is an older form of the same. Without a number one is meant.
pub fn parse(text: &str) -> Result<Vec<(String, u32)>, String> {
    let mut found: Vec<(String, u32)> = Vec::new();
    if text.contains('|') {
        return Err(format!("'{text}' leaves a choice of licences, which does not work yet; name those to be taken"));
    }
    for part in text.split([',', ';']) {
        let (name, count) = part.rsplit_once([':', '=']).unwrap_or((part, "1"));
        let count = parse_count(count, 1).map_err(|e| format!("{e}; write licences like solver:2,mesher"))?;
        if name.is_empty() || name.len() > limits::NAME_BYTES {
            return Err(format!("'{part}' names no licence; write licences like solver:2,mesher"));
        }
        if found.iter().any(|(known, _)| known == name) {
            return Err(format!("licence '{name}' is asked for twice; write one number"));
        }
        found.push((name.to_owned(), count));
    }
    match found.len() > limits::LICENCES_PER_JOB {
        true => Err(format!("at most {} kinds of licences can be asked for", limits::LICENCES_PER_JOB)),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_read() {
        let read = |text| parse(text).map_err(|e| e.to_string());
        assert_eq!(read("solver:2,mesher"), Ok(vec![("solver".into(), 2), ("mesher".into(), 1)]));
        assert_eq!(read("a@server:3"), Ok(vec![("a@server".into(), 3)]));
        for (bad, part) in [("", "names no licence"), ("a:0", "write licences"), ("a,a:2", "twice"), ("a|b", "choice")]
        {
            assert!(parse(bad).unwrap_err().contains(part), "{bad}: {}", parse(bad).unwrap_err());
        }
    }
}
