//! Which part of the caller's environment a job gets.

/// How the names of variables begin that describe one job: what is submitted from inside a job has its own.
const OF_ONE_JOB: &[&str] = &[
    "SLURM_JOB",
    "SLURM_ARRAY_",
    "SLURM_STEP",
    "SLURM_TASK",
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_NNODES",
    "SLURM_NODE",
    "SLURM_CPUS_",
    "SLURM_MEM_PER_",
    "SLURM_GPUS",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_GTIDS",
    "SLURM_RESTART_COUNT",
    "SLURM_SUBMIT_",
    "SLURM_EXPORT_ENV",
    "SLURM_TOPOLOGY_",
    "SLURMD_",
    "EPHOR_JOB_",
    "EPHOR_ARRAY_",
    "EPHOR_ATTEMPT",
];

fn is_of_one_job(name: &str) -> bool {
    OF_ONE_JOB.iter().any(|begin| name.starts_with(begin))
}

/// Writes the environment that `--export` asks for, as NUL-ended entries; no rule means all of it, but for what describes
/// the job that the caller runs in.
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
            if !name.is_empty() && !is_of_one_job(name) && !named.iter().any(|(n, _)| n == name) {
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
///
/// # Errors
/// A quote that is not closed.
pub fn split_list(text: &str) -> Result<Vec<String>, String> {
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
        let inside = ["SLURM_JOB_ID=5", "SLURM_NTASKS=2", "EPHOR_JOB_ID=5", "SLURM_TIME_FORMAT=%s", "EPHOR_SOCKET=/s"];
        let inside = inside.map(str::to_owned);
        let chosen_inside = |rule| String::from_utf8(select(rule, &inside).unwrap()).unwrap().replace('\0', " ");
        assert_eq!(chosen_inside(None), "SLURM_TIME_FORMAT=%s EPHOR_SOCKET=/s ");
        assert_eq!(chosen_inside(Some("SLURM_NTASKS,X=1")), "SLURM_NTASKS=2 X=1 ");
        assert!(select(Some("A,,B"), &caller).is_err());
        assert!(select(Some("=1"), &caller).is_err());
    }
}
