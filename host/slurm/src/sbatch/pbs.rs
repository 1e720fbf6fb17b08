//! `#PBS` lines of a script: the few options that scripts carry, as options of `sbatch`.

use super::table::Key;
use super::{PROGRAM, USAGE};
use crate::failure::Failure;
use crate::getopt::Given;

/// Reads the words of the `#PBS` lines.
///
/// # Errors
/// Options and resources that have no counterpart.
pub fn options(words: &[String]) -> Result<Vec<Given<Key>>, Failure> {
    let mut given = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(letter) = word.strip_prefix('-').and_then(|rest| rest.chars().next()) else {
            return Err(Failure::error(PROGRAM, format!("Invalid directive found in batch script: {word}"), USAGE));
        };
        let rest = &word[1 + letter.len_utf8()..];
        if letter == 'h' || letter == 'V' {
            let key = if letter == 'h' { Key::Hold } else { Key::Export };
            put(&mut given, key, (letter == 'V').then(|| "ALL".into()));
            continue;
        }
        let missing = || Failure::usage(PROGRAM, format!("option requires an argument -- '{letter}'"), USAGE);
        let value = match rest {
            "" => words.next().ok_or_else(missing)?.clone(),
            _ => rest.to_owned(),
        };
        match letter {
            'A' => put(&mut given, Key::Account, Some(value)),
            'N' => put(&mut given, Key::JobName, Some(value)),
            'q' => put(&mut given, Key::Partition, Some(value)),
            'o' => put(&mut given, Key::Output, Some(value)),
            'e' => put(&mut given, Key::Error, Some(value)),
            't' | 'J' => put(&mut given, Key::Array, Some(value)),
            'a' => put(&mut given, Key::Begin, Some(value)),
            'M' => put(&mut given, Key::MailUser, Some(value)),
            'm' => put(&mut given, Key::MailType, Some(mail(&value))),
            'v' => put(&mut given, Key::Export, Some(format!("ALL,{value}"))),
            'r' => put(&mut given, if value == "n" { Key::NoRequeue } else { Key::Requeue }, None),
            // Where output and errors go together they do so here too.
            'j' | 'S' | 'k' => {}
            'l' => resources(&value, &mut given)?,
            _ => return Err(Failure::usage(PROGRAM, format!("invalid option -- '{letter}'"), 1)),
        }
    }
    Ok(given)
}

fn put(given: &mut Vec<Given<Key>>, key: Key, value: Option<String>) {
    given.push(Given { key, long: "", value });
}

/// `abe` as names of events.
fn mail(letters: &str) -> String {
    let event = |c| match c {
        'a' => Some("FAIL"),
        'b' => Some("BEGIN"),
        'e' => Some("END"),
        _ => None,
    };
    let events: Vec<&str> = letters.chars().filter_map(event).collect();
    if events.is_empty() { "NONE".into() } else { events.join(",") }
}

/// `walltime=1:00:00,nodes=2:ppn=4,mem=4gb`.
fn resources(list: &str, given: &mut Vec<Given<Key>>) -> Result<(), Failure> {
    for item in list.split(',') {
        let (name, value) = item.split_once('=').unwrap_or((item, ""));
        let mut put = |key| put(given, key, Some(value.to_owned()));
        match name {
            "walltime" | "cput" => put(Key::Time),
            "mem" => put(Key::Mem),
            "pmem" => put(Key::MemPerCpu),
            "ncpus" => put(Key::CpusPerTask),
            "procs" => put(Key::Ntasks),
            "nodes" => {
                let mut parts = value.split(':');
                let count = parts.next().unwrap_or_default().to_owned();
                given.push(Given { key: Key::Nodes, long: "", value: Some(count) });
                for part in parts {
                    let Some(each) = part.strip_prefix("ppn=") else {
                        let text = format!("#PBS -l nodes=...:{part} has no counterpart; use #SBATCH --constraint");
                        return Err(Failure::error(PROGRAM, text, USAGE));
                    };
                    given.push(Given { key: Key::NtasksPerNode, long: "", value: Some(each.to_owned()) });
                }
            }
            _ => {
                let text = format!("#PBS -l {item} has no counterpart; use an option of sbatch");
                return Err(Failure::error(PROGRAM, text, USAGE));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_options() {
        let words: Vec<String> =
            "-N x -l walltime=1:00:00,nodes=2:ppn=3 -j oe -m ae".split(' ').map(str::to_owned).collect();
        let read: Vec<(Key, String)> =
            options(&words).unwrap().into_iter().map(|g| (g.key, g.value.unwrap_or_default())).collect();
        let expected = [
            (Key::JobName, "x"),
            (Key::Time, "1:00:00"),
            (Key::Nodes, "2"),
            (Key::NtasksPerNode, "3"),
            (Key::MailType, "FAIL,END"),
        ];
        assert_eq!(read, expected.map(|(key, value)| (key, value.to_owned())));
        assert_eq!(options(&["-Z".into(), "2".into()]).unwrap_err().lines[0], "sbatch: invalid option -- 'Z'");
    }
}
