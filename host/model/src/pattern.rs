//! Names of files with `%` patterns, as Slurm's users write them.

use crate::limits::PATTERN_WIDTH;

/// What the patterns stand for.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// `%j`: the job's own id.
    pub job: u64,
    /// `%A`: id of its array; the job's own id where it is no element.
    pub array: u64,
    /// `%a`: its index in the array.
    pub index: Option<u32>,
    /// `%x`: its name.
    pub name: &'a str,
    /// `%u`: its user.
    pub user: &'a str,
    /// `%N`: the node.
    pub node: &'a str,
    /// Of a step's task; `None`: the job's own script or program.
    pub task: Option<TaskNames>,
}

/// What the patterns of a step's task stand for.
#[derive(Clone, Copy, Debug)]
pub struct TaskNames {
    /// `%s`: number of the step; `%J` is job and step, `5.0`.
    pub step: u32,
    /// `%t`: rank of the task.
    pub rank: u32,
    /// `%n`: the node's place among those of the job, from 0.
    pub place: u32,
}

/// Whether the tasks of a step have a file each, or each node one: then the node opens it, not whoever started the step.
pub fn differs_by_task(pattern: &str) -> bool {
    !pattern.contains('\\') && letters(pattern).any(|letter| matches!(letter, 't' | 'n' | 'N'))
}

/// The letters of all patterns, in order.
fn letters(pattern: &str) -> impl Iterator<Item = char> + '_ {
    let mut rest = pattern;
    std::iter::from_fn(move || {
        let at = rest.find('%')?;
        rest = rest[at + 1..].trim_start_matches(|c: char| c.is_ascii_digit());
        let letter = rest.chars().next()?;
        rest = &rest[letter.len_utf8()..];
        Some(letter)
    })
}

/// What `%a` gives for a job that is no array element, as in Slurm.
const NO_INDEX: u64 = 4_294_967_294;

/// Puts the names in place of the patterns. A number may say how wide numbers are at least (`%4j`), at most 10. A
/// pattern that is not known, and everything where a backslash occurs (which is dropped), stays as it is.
pub fn expand(pattern: &str, names: &Names<'_>) -> String {
    if pattern.contains('\\') {
        return pattern.replace('\\', "");
    }
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let width = rest[..digits].parse::<usize>().unwrap_or(if digits > 0 { PATTERN_WIDTH } else { 0 });
        let Some(letter) = rest[digits..].chars().next() else {
            out.push('%');
            break;
        };
        let number = |n: u64| format!("{n:0width$}", width = width.min(PATTERN_WIDTH));
        let text = match letter {
            '%' if digits == 0 => "%".to_owned(),
            'j' => number(names.job),
            'A' => number(names.array),
            'a' => number(names.index.map_or(NO_INDEX, u64::from)),
            't' => number(names.task.map_or(0, |task| task.rank.into())),
            // A name is one component: its slashes must not lead elsewhere.
            'x' => names.name.replace('/', "_"),
            'u' => names.user.to_owned(),
            'N' => names.node.to_owned(),
            letter => match (letter, names.task) {
                ('s', Some(task)) => number(task.step.into()),
                ('n', Some(task)) => number(task.place.into()),
                ('J', Some(task)) => format!("{}.{}", number(names.job), task.step),
                _ => {
                    out.push('%');
                    continue;
                }
            },
        };
        out.push_str(&text);
        rest = &rest[digits + letter.len_utf8()..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line of the file: pattern, a tab, what it gives for an element, a tab, what it gives for a single job.
    #[test]
    fn every_case_of_the_file() {
        let names = Names { job: 125, array: 123, index: Some(2), name: "a/b c", user: "ann", node: "n1", task: None };
        let single = Names { array: 125, index: None, ..names };
        let cases = include_str!("../tests/patterns.tsv");
        let mut seen = 0;
        for line in cases.lines().filter(|l| !l.starts_with('#')) {
            let [pattern, element, alone] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            assert_eq!(expand(pattern, &names), element, "{pattern} for an element");
            assert_eq!(expand(pattern, &single), alone, "{pattern} for a single job");
            seen += 1;
        }
        assert!(seen > 20);
    }

    #[test]
    fn tasks_of_steps_have_names_of_their_own() {
        let task = Some(TaskNames { step: 7, rank: 12, place: 1 });
        let names = Names { job: 125, array: 123, index: Some(2), name: "x", user: "ann", node: "n2", task };
        assert_eq!(expand("%J-%s-%3t-%n-%N-%A_%a-%%-%z", &names), "125.7-7-012-1-n2-123_2-%-%z");
        for (pattern, differs) in
            [("o-%t", true), ("%2n", true), ("%N", true), ("o-%j.%s", false), ("%%t", false), ("%", false)]
        {
            assert_eq!(differs_by_task(pattern), differs, "{pattern}");
        }
    }
}
