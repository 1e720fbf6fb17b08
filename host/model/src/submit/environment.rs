//! Which part of the caller's environment a job gets.

/// Writes the environment that `--export` asks for, as NUL-ended entries; no rule means all of it.
pub fn select(rule: Option<&str>, caller: &[String]) -> Result<Vec<u8>, String> {
    let mut all = rule.is_none();
    let mut named: Vec<(String, String)> = Vec::new();
    for item in rule.map(split_list).transpose()?.unwrap_or_default() {
        match item.as_str() {
            "ALL" => all = true,
            "NONE" | "NIL" => {}
            "" => return Err("the list of variables has an empty entry".into()),
            _ => match item.split_once('=') {
                Some(("", _)) => return Err(format!("'{item}' has no name before the =")),
                Some((name, value)) => named.push((name.into(), value.into())),
                // A variable that the caller does not have is left out, as in Slurm.
                None => named.extend(value_of(&item, caller).map(|value| (item.clone(), value.to_owned()))),
            },
        }
    }
    let mut out = Vec::new();
    let mut put = |name: &str, value: &str| {
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        out.extend_from_slice(value.as_bytes());
        out.push(0);
    };
    if all {
        for (name, value) in caller.iter().filter_map(|entry| entry.split_once('=')) {
            if !name.is_empty() && !named.iter().any(|(n, _)| n == name) {
                put(name, value);
            }
        }
    }
    for (i, (name, value)) in named.iter().enumerate() {
        if !named[i + 1..].iter().any(|(n, _)| n == name) {
            put(name, value);
        }
    }
    Ok(out)
}

fn value_of<'a>(name: &str, caller: &'a [String]) -> Option<&'a str> {
    caller.iter().find_map(|entry| entry.split_once('=').filter(|(n, _)| *n == name)).map(|(_, value)| value)
}

/// Splits at commas outside quotes, and takes the quotes away.
fn split_list(text: &str) -> Result<Vec<String>, String> {
    let mut items = vec![String::new()];
    let mut quote = None;
    for c in text.chars() {
        match (c, quote) {
            (_, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            (',', None) => items.push(String::new()),
            // `items` is never empty: it begins with one and only grows.
            _ => items.last_mut().into_iter().for_each(|item| item.push(c)),
        }
    }
    match quote {
        Some(open) => Err(format!("the quote {open} is not closed")),
        None => Ok(items),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_choose_the_variables() {
        let caller = ["A=1".to_owned(), "B=2=3".to_owned(), "C=".to_owned()];
        let chosen = |rule| String::from_utf8(select(rule, &caller).unwrap()).unwrap().replace('\0', " ");
        assert_eq!(chosen(None), "A=1 B=2=3 C= ");
        assert_eq!(chosen(Some("NONE")), "");
        assert_eq!(chosen(Some("B,MISSING")), "B=2=3 ");
        assert_eq!(chosen(Some("ALL,A=9,K='x,y'")), "B=2=3 C= A=9 K=x,y ");
        assert_eq!(chosen(Some("A=5")), "A=5 ");
        assert!(select(Some("A,,B"), &caller).is_err());
        assert!(select(Some("=1"), &caller).is_err());
    }
}
