//! Conditions on other jobs, such as `afterok:12:13,afterany:14`.

use crate::id::JobId;
use crate::job::{Dependency, DependencyKind};
use crate::limits;

/// Reads a list of conditions: `,` means all of them, `?` any one. A bare id means `afterany`. Repeats collapse.
pub fn parse(text: &str) -> Result<(Vec<Dependency>, bool), String> {
    let any = text.contains('?');
    if any && text.contains(',') {
        return Err(format!("'{text}' mixes , (all) and ? (any); use one of them"));
    }
    let mut all: Vec<Dependency> = Vec::new();
    for part in text.split([',', '?']).map(str::trim) {
        let mut words = part.split(':');
        let first = words.next().unwrap_or_default();
        let (kind, ids) = if first.starts_with(|c: char| c.is_ascii_digit()) {
            (DependencyKind::AfterAny, part)
        } else {
            let kind = kind(first)?;
            let ids = part.get(first.len() + 1..).filter(|ids| !ids.is_empty());
            (kind, ids.ok_or_else(|| format!("'{part}' names no job; write {}:ID", kind.name()))?)
        };
        for id in ids.split(':') {
            let dependency = Dependency { kind, job: job(id)? };
            if !all.contains(&dependency) {
                all.push(dependency);
            }
            if all.len() > limits::DEPENDENCIES {
                return Err(format!("more than {} dependencies", limits::DEPENDENCIES));
            }
        }
    }
    Ok((all, any))
}

fn kind(word: &str) -> Result<DependencyKind, String> {
    let lower = word.to_ascii_lowercase();
    if let Some((kind, _)) = DependencyKind::NAMES.iter().find(|(_, name)| *name == lower) {
        return Ok(*kind);
    }
    if ["singleton", "aftercorr", "afterburstbuffer", "expand"].contains(&lower.as_str()) {
        return Err(format!("the dependency '{lower}' does not work yet; use after, afterany, afterok or afternotok"));
    }
    Err(format!("'{word}' is not a dependency; use after, afterany, afterok or afternotok, such as afterok:123"))
}

fn job(text: &str) -> Result<JobId, String> {
    if text.contains('+') {
        return Err(format!("'{text}': a delay after the start of another job does not work yet"));
    }
    // `123_*` is how an array is shown in a list of dependencies.
    let id = text.strip_suffix("_*").unwrap_or(text);
    if id.contains('_') {
        return Err(format!("'{text}': waiting for one element of an array does not work yet; name the whole array"));
    }
    match id.parse() {
        Ok(n) if n > 0 && id.bytes().all(|b| b.is_ascii_digit()) => Ok(JobId(n)),
        _ => Err(format!("'{text}' is not the id of a job")),
    }
}
